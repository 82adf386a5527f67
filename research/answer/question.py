"""What a question asks for, by its words, and which language a text is in."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from pathlib import Path

from research.search import LANGUAGES
from research.store import STOP_WORDS, analyze, letters, normalize

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


Words = frozenset[str]

# What comes after is a pasted text; its beginning tells as much.
_MOST_LETTERS = 5000
_MOST_WORDS = 64

_LETTER = r"[^\W\d_]"
_NUMBER = r"\d+(?:,\d\d\d(?!\d))*(?:\.\d+)*"
_TOKEN = re.compile(rf"(?P<number>{_NUMBER})(?![^\W_])|[^\W_]+")
_PLAIN = re.compile(rf"[a-z]+|{_NUMBER}")
_BEYOND_ASCII = re.compile(r"[^\W\d_a-z]")
_PIECE = re.compile(rf"{_LETTER}+|\d+")
_NO_NAME = re.compile(r"(.)\1+")  # YYYY-MM-DD is a form to fill in
_TWICE = re.compile(r"((?:[^\W\d_a-z][\w&.’'-]*[ ]){1,6})\(([\w&.-]{2,20})\)")
_LEAST = 3  # letters or digits: smaller numbers and pieces ("Q2", "5 days") stand on any page
_ACRONYM = 0.5  # beside a name: the page may have it in full
NO_NAMES = 0.5  # so that one name of one weighs more than one of many
# English without small words is a list of key words, and other languages write other words with capitals.
_SMALL_WORDS = 0.2
_LEAST_SLIP = 5  # letters of a name that may be misspelt
# A stem may end otherwise than its words do: happi(happy), sensibl(sensibility).
_ENDING = 2
# What a question points with is no name: "In Table 3", "Appendix B".
_POINTING = "section chapter appendix annex part paragraph kapitel abschnitt anhang chapitre sección capítulo capitolo"


def words_in(question: str) -> Words:
    """The words that are searched, as full-text search compares them."""
    return frozenset(list(dict.fromkeys(analyze(question[:_MOST_LETTERS])))[:_MOST_WORDS])


def names_in(question: str) -> Mapping[str, float]:
    """The names and numbers of a question, as full-text search has them, with what each counts."""
    text = question[:_MOST_LETTERS]
    tokens = list(_TOKEN.finditer(text))
    small = sum(token.group().lower() in STOP_WORDS for token in tokens)
    capitals_tell = small >= _SMALL_WORDS * len(tokens)
    found: dict[str, float] = {}
    for token in tokens:
        for part, weight in _names(text, token, capitals_tell=capitals_tell):
            found.update((stem, weight) for stem in analyze(part) if stem not in found)
    return {stem: weight for stem, weight in found.items() if stem not in _pointing_words()}


def same_names(question: str) -> list[tuple[Words, Words]]:
    """The names that a question gives twice, "Westpac (WBC)": a page may have either."""
    return [
        (frozenset(analyze(match[1])), frozenset(analyze(match[2])))
        for match in _TWICE.finditer(question[:_MOST_LETTERS])
    ]


def _names(text: str, token: re.Match[str], *, capitals_tell: bool) -> list[tuple[str, float]]:
    """The parts of one word of a question that are names, each with its weight."""
    word = token.group()
    if token["number"]:
        return [(word, 1.0)] if sum(map(str.isdecimal, word)) >= _LEAST else []
    if any(map(str.isdecimal, word)):  # FY2017
        parts = [part for part in _PIECE.findall(word) if len(part) >= _LEAST]
        return [(part, 1.0 if part.isdecimal() else _ACRONYM) for part in parts]
    if len(word) < 2 or _NO_NAME.fullmatch(word.lower()):
        return []
    if word.isupper():
        return [(word, _ACRONYM)]
    before = text[: token.start()].rstrip()
    begins = not before or before[-1] in ".?!:"
    return [(word, 1.0)] if word[0].isupper() and not begins and capitals_tell else []


@lru_cache(maxsize=1)
def _pointing_words() -> Words:
    kinds = (word for language in LANGUAGES.values() for word in (language.pages, *language.kinds))
    return frozenset(analyze(" ".join((_POINTING, *kinds))))


def finder(words: Words) -> Callable[[str], Words]:
    """Tells which of the words stand in a text. Quicker than to analyse all of it: only what begins as one of these
    words does is looked at."""
    if not all(map(str.isascii, words)):
        return lambda text: words.intersection(analyze(text))
    begins = tuple({word[: max(2, len(word) - _ENDING)] for word in words if word[0].isalpha()})
    numbers = any(not word[0].isalpha() for word in words)

    def find(text: str) -> Words:
        alike = [
            word
            for word in set(_PLAIN.findall(folded(text)))
            if word.startswith(begins) or (numbers and word[0].isdecimal())
        ]
        return words.intersection(analyze(" ".join(alike)))

    return find


def folded(text: str) -> str:
    """`normalize`, but where only dashes and quotation marks are not ASCII: that is most pages, and it takes long."""
    lower = text.lower()
    return lower if lower.isascii() or not _BEYOND_ASCII.search(lower) else normalize(text)


def is_language(question: str) -> bool:
    """Whether a question has a word of the language beside its small ones, or is gibberish."""
    from research.search import is_a_word

    words = dict.fromkeys(letters(normalize(question[:_MOST_LETTERS])))
    return any(is_a_word(word) for word in list(words)[:_MOST_WORDS] if word not in STOP_WORDS and len(word) >= _LEAST)


def has_misspelt(name: str, text: str) -> bool:
    """Whether a word of a text, as `folded` leaves it, is one slip away from a name: health from "Helth"."""
    if len(name) < _LEAST_SLIP or not name.isalpha():
        return False
    alike = re.findall(rf"(?<!{_LETTER}){re.escape(name[0])}{_LETTER}{{{len(name) - 2},}}", text)
    from rapidfuzz.distance import OSA

    # One letter more, less or another, or two changed places.
    return any(OSA.distance(name, stem, score_cutoff=1) <= 1 for stem in analyze(" ".join(dict.fromkeys(alike))))
