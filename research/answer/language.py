"""Which language a text is in, as far as its script and commonest words tell: a question or an answer may be in another
one than the pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

_COMMONEST = {
    "English": "the of and to in is that for it with as was on are by be this at from or which not has have",
    "German": "der die das und ist von mit den dem des zu ein eine einen einem nicht für auf im sind wird werden bei "
    "oder was wie ich man gibt hat haben wurde",
    "French": "le la les des et est un une du dans pour qui que par sur avec au aux pas sont ce cette ou il elle ont "
    "comment",
    "Spanish": "el la los las es un una del para por con que en se su como cómo más al son este esta hay",
    "Italian": "il lo gli della del di che un una per con non sono nel alla dei delle si come questo hanno",
    "Dutch": "de het een van en is in op te dat voor met zijn niet aan door ook worden bij of naar wie wordt heeft",
    "Portuguese": "os as do da dos das em um uma para com não que por são no na ao mais ou como foi têm",
}
# A question begins with them, and hardly anything in another language does.
_ASKING = {
    "English": "what who whom whose when where why how does did",
    "German": "wer wann wo warum wieso weshalb wieviel wieviele welche welcher welches welchen welchem wofür womit",
    "French": "quel quelle quels quelles combien pourquoi quand où quoi",
    "Spanish": "qué cuál cuáles cual cuales quién quiénes quien cuándo cuánto cuántos cuántas cuantos cuantas dónde",
    "Italian": "quanti quante quale quali perché cosa dove chi",
    "Dutch": "wat hoe waar wanneer waarom welke welk hoeveel",
    "Portuguese": "quantos quantas quais quem onde",
}
_COMMON = {name: frozenset(f"{words} {_ASKING[name]}".split()) for name, words in _COMMONEST.items()}
_FIRST = {word: name for name, words in _ASKING.items() for word in words.split()}
_LETTERS = re.compile(r"[^\W\d_]+")
_SCRIPTS = {
    "Chinese or Japanese": re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"),
    "Korean": re.compile("[\uac00-\ud7af]"),
    "Cyrillic letters": re.compile("[\u0400-\u04ff]"),
    "Greek": re.compile("[\u0370-\u03ff]{3}"),
    "Arabic letters": re.compile("[\u0600-\u06ff]"),
    "Hebrew": re.compile("[\u0590-\u05ff]"),
    "Devanagari letters": re.compile("[\u0900-\u097f]"),
    "Thai": re.compile("[\u0e00-\u0e7f]"),
}
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
