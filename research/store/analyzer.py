"""From text to the words that full-text search compares: folded, split, stemmed.

Pages and questions pass through the same function, so it alone decides what matches what.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from research.text import UNSPACED

# To be raised with every change that gives any text other words: full-text search is then made anew.
RULES = 1

# Function words that stand on nearly every page; they would only slow the search and blur the ranking.
STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are aren as at be because been before being below
    between both but by can cannot could couldn d did didn do does doesn doing don down during each few for from
    further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn
    it its itself just ll m may me might more most mustn my myself no nor not now of off on once only or other
    ought our ours ourselves out over own re s same shall she should shouldn so some such t than that the their
    theirs them themselves then there these they this those through to too under until up upon us ve very was
    wasn we were weren what when where which while who whom why will with won would wouldn you your yours
    yourself yourselves
    """.split()  # noqa: SIM905 (one word a line would hide the list)
)

# Vowel signs of the Indic scripts and their kin, which `\w` does not count as parts of a word.
SIGNS = "".join(chr(c) for c in range(0x0483, 0x1D00) if unicodedata.category(chr(c)).startswith("M"))
# Scripts written without spaces are indexed as overlapping pairs of characters.
_TOKEN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)|(?P<number>\d+(?:,\d\d\d(?!\d))*(?:\.\d+)*)|"
    rf"(?P<word>(?:[^\W\d_{UNSPACED}][{SIGNS}]*)+)",
    re.UNICODE,
)
# Accents, Hebrew and Arabic vowel points, and characters that only tell how to break or join a word.
_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670\u00ad\u200c\u200d\u2060\ufeff]+"
)
# Signs that unfold to letters or digits and would grow onto the word before: Windows™, 120².
_ATTACHED = re.compile("[™℠²³¹⁰-₉¼-¾⅐-⅞]")
_LETTERS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def analyze(text: str) -> list[str]:
    """The words of a text in order, stop words left out."""
    found: list[str] = []
    for match in _TOKEN.finditer(normalize(text)):
        token = match.group()
        kind = match.lastgroup
        if kind == "word":
            if token not in STOP_WORDS:
                found.append(stem(token))
        elif kind == "number":
            found.append(_number(token))
        elif len(token) == 1:
            found.append(token)
        else:
            found.extend(token[i : i + 2] for i in range(len(token) - 1))
    return found


def analyze_name(name: str) -> list[str]:
    """The words of a file name: split at punctuation, camel case and letter/digit borders."""
    return analyze(_apart(name))


def name_parts(name: str) -> list[str]:
    """The same as they are written, digits left out."""
    return letters(_apart(name))


def letters(text: str) -> list[str]:
    """The runs of letters in a text, as it writes them."""
    return _LETTERS.findall(text)


def _apart(name: str) -> str:
    return _CAMEL.sub(" ", name.replace("_", " "))


def normalize(text: str) -> str:
    """Case, width and accents folded away; other scripts keep their marks."""
    if text.isascii():
        return text.lower()
    # Folded after unfolding: ™ and ℃ bring capitals.
    decomposed = unicodedata.normalize("NFKD", _ATTACHED.sub(r" \g<0> ", text)).casefold()
    return unicodedata.normalize("NFC", _MARKS.sub("", decomposed))


def _number(token: str) -> str:
    # 1,234.50 and 1234.50 are one number, 2,3 are two; a decimal point stays.
    plain = token.replace(",", "")
    return plain.rstrip(".") or token


def version() -> str:
    """Of all that decides which words a text has. Pages analysed by another version are not found by their words.

    Python's own tables of characters are left out: what they say of a character stays, new characters aside, and an
    index that two Pythons use in turn would be made anew by each.
    """
    import Stemmer

    return f"{RULES}:{Stemmer.version()}"


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a word that is folded already."""
    return str(_stemmer().stemWord(word))


@lru_cache(maxsize=1)
def _stemmer():  # type: ignore[no-untyped-def]
    import Stemmer  # a compiled module, loaded with the first word only

    return Stemmer.Stemmer("english", 0)
