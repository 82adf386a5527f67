"""Which language a text is in, as far as its script and commonest words tell: a question or an answer may be in another
one than the pages."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection
from pathlib import Path

_TABLE: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))
_ASKING = _TABLE["asking"]
_COMMON = {name: frozenset(f"{words} {_ASKING[name]}".split()) for name, words in _TABLE["common"].items()}
_FIRST = {word: name for name, words in _ASKING.items() for word in words.split()}
_SCRIPTS = {name: re.compile(letters) for name, letters in _TABLE["scripts"].items()}
_LETTERS = re.compile(r"[^\W\d_]+")
_READ = 4000  # characters that are looked at
_SURE = 2  # common words, and more than of any other language
_MANY = 20  # letters of a script
_PROSE = 8  # of them that make a page one of its language; a table or a program has some by chance


def language_of(text: str, sure: int = _SURE) -> str:
    """The language of a text, or of its script the most likely one; "" if the text does not tell."""
    text = text[:_READ]
    letters = sum(map(str.isalpha, text))
    for name, pattern in _SCRIPTS.items():
        if 3 * len(pattern.findall(text)) > letters > 0:
            return name
    words = Counter(_LETTERS.findall(text.lower()))
    counts = Counter({name: sum(words[word] for word in common) for name, common in _COMMON.items()})
    (best, most), (_, second) = counts.most_common(2)
    return best if most >= sure and most > second else ""


def other_languages(question: str, pages: Collection[str]) -> tuple[str, str] | None:
    """The language of a question and the one of its pages, if all that tell have another: their words cannot be
    compared."""
    words = _LETTERS.findall(question[:_READ].lower())
    own = next((_FIRST[word] for word in words[:1] if word in _FIRST), "") or language_of(question)
    told = {name: None for page in pages if (name := language_of(page, _PROSE))}
    if not own or not told or own in told:
        return None
    other = next(iter(told))
    if any(
        _is_spoken(own, _COMMON.get(own, frozenset()).intersection(words) - _COMMON.get(other, frozenset()), page)
        for page in pages
    ):
        return None
    return own, other


def _is_spoken(language: str, words: frozenset[str], page: str) -> bool:
    """Whether a page speaks it as well: half of these words of it, or many of its letters."""
    if language in _SCRIPTS:
        return len(_SCRIPTS[language].findall(page[:_READ])) >= _MANY
    return 2 * len(words.intersection(_LETTERS.findall(page.lower()))) >= len(words)
