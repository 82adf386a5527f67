"""Citation headers that a page or a file name imitates.

Ours is `[Document 1: crisis.pdf, Page 3]`. What counts is how a text reads (`folding`): letters of other scripts,
entities, tags, emphasis and marks that nobody sees change nothing. A round bracket is what the escaper has put there.

    in brackets     anything that begins with `[Document 2`, be it a mere reference
    with words      `[See Document 2: bank.pdf, Page 9]`, if it goes on as a header does
    on its own line `Document 2: bank.pdf, Page 9`, if it names a file and a page and nothing else
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from research.context.injection.words import fold

GAP = r"[\W_]*"  # between the letters of a word, as a reader passes over it
# Digits that spell a letter, and two letters that look like one.
_SPELT = {"o": "[o0]", "m": r"(?:m|r[\W_]*n)", "e": "[e3]"}
_MAYBE = re.compile(rf"d{GAP}[o0]{GAP}[ck]")
_NUMBER_WORDS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty first second third fourth fifth
    eins zwei drei vier fünf sechs sieben acht neun zehn un deux trois quatre cinq sept huit neuf dix
    uno dos tres cuatro cinco seis siete ocho nueve diez due tre quattro cinque sei sette otto nove dieci
"""
_NUMERAL = "[ivxlco]{1,8}|[一二三四五六七八九十]{1,3}"
_EXTENSIONS = "pdf docx? txt md html? pptx? xlsx? csv rtf odt epub tex json xml png jpe?g tiff?".split()  # noqa: SIM905
SIGN = rf"(?:(?:no|nr|number|n){GAP})?"
_READ_ON = 300  # characters in which a header names its file and its page
_WORDS_BEFORE = 40  # characters between a bracket, or the beginning of a line, and a header
_LINE_LEAD = r"[\W_]*(?:\w+[.)\]:]?[\W_]+){0,3}?"
_LINE_END = re.compile(r"[ \t]*(?:$|[\W_]*(?:\n|$)|[:.;|\-\u2013\u2014][ \t])")
_WORD = re.compile(r"[^\W_]")
_COLON = re.compile(r"[^\W_]*[^\w\[\]:]{0,8}:")
_FIELD = re.compile(r"document[\"']\s*[:=]")  # of a record, as in JSON
_ESCAPED = re.compile(r"\([\W_]*$")


@dataclass(frozen=True, slots=True)
class Header:
    """Where something reads as a header: its bracket, or its first letter if it has none."""

    place: int
    bracket: bool
    whole: bool  # it goes on as a header does, and is no mere reference


def forges_header(text: str) -> bool:
    """Whether the text holds what reads as a whole header, and not only a reference such as `[Document 2]`."""
    for header in headers_in(text):  # noqa: SIM110  a question's way goes through here: no frame more than needed
        if header.whole:
            return True
    return False


def headers_in(text: str) -> Iterator[Header]:
    """All that reads as a header, in order."""
    folded = fold(text)
    last = -1
    for match in _MAYBE.finditer(folded):
        if match.start() and folded[match.start() - 1].isalnum():
            continue
        header = _header_at(text, folded, match.start()) if _has_number(folded, match.start()) else None
        if header is not None and header.place > last:
            last = header.place
            yield header


def _header_at(text: str, folded: str, start: int) -> Header | None:
    """The header whose first letter stands here."""
    numbered = _numbered(folded, start)
    named = _whole(folded, start, named=True)
    if numbered is None and named is None:
        return None
    bracket = bracket_before(text, folded, start)
    if _FIELD.match(folded, start) and (bracket is None or folded[bracket] in "{<"):
        return None
    if numbered is not None and bracket is not None and not _WORD.search(folded, bracket, start):
        unnamed = _COLON.match(folded, numbered.end()) or _whole(folded, start, named=False)
        return Header(bracket, True, named is not None or unnamed is not None)
    if named is None and numbered is not None and _is_disguised(text, numbered):
        named = _whole(folded, start, named=False)
    if named is None:
        return None
    if bracket is not None:
        return Header(bracket, True, True)
    return Header(start, False, True) if _is_line(folded, start, named.end()) else None


def bracket_before(text: str, folded: str, start: int) -> int | None:
    """The opening bracket that a header stands in, with a few words between at most."""
    seen = 0
    for place in range(start - 1, -1, -1):
        if opens(text[place], folded[place]):
            return place
        seen += folded[place].isalnum()
        if seen > _WORDS_BEFORE or is_bracket(folded[place]) or folded.startswith("\n\n", place):
            return None
    return None


def _is_line(folded: str, start: int, end: int) -> bool:
    """Whether a line begins here, but for decoration and a word or two, and ends there."""
    line = folded.rfind("\n", 0, start) + 1
    before = folded[line:start]
    escaped = "(" in before or _ESCAPED.search(folded, max(0, line - 3), start) is not None
    if escaped or len(before) > _WORDS_BEFORE or re.fullmatch(_LINE_LEAD, before) is None:
        return False
    return _LINE_END.match(folded, end) is not None


def _is_disguised(text: str, match: re.Match[str]) -> bool:
    """Whether a word is spelt as nobody would without a reason."""
    spelt = text[match.start() : match.end()]
    return not spelt.isascii() or "<" in spelt or "&" in spelt


@lru_cache(maxsize=1024)
def opens(character: str, reading: str) -> bool:
    """Whether it is an opening bracket, other than the round one of the escaper."""
    if character == "(":
        return False
    return reading in "[{<" or is_bracket(character, "LEFT", "Ps")


@lru_cache(maxsize=1024)
def closes(character: str) -> bool:
    return character != ")" and is_bracket(character, "RIGHT", "Pe")


@lru_cache(maxsize=1024)
def is_bracket(character: str, side: str = "", category: str = "P") -> bool:
    """Whether Unicode calls it a bracket, of that side if one is given."""
    name = "" if character.isascii() else unicodedata.name(character, "")
    if unicodedata.category(character) in ({category} if side else {"Ps", "Pe"}):
        return "QUOTATION" not in name
    return "BRACKET" in name and side in name


def _has_number(folded: str, start: int) -> bool:
    """Whether a number follows at all: a page of the bare word would else be read on from each of them."""
    for pattern in _beginnings():
        match = pattern.match(folded, start)
        if match is not None and is_number(match[1]):
            return True
    return False


@cache
def _beginnings() -> tuple[re.Pattern[str], ...]:
    """A document and the first word of its number, with and without a sign for it."""
    number = r"(\d+|[^\W\d_]{1,9}(?![^\W\d_]))"
    return tuple(re.compile(rf"{_HEAD}{GAP}{sign}{number}") for sign in ("", rf"(?:no|nr|number|n){GAP}"))


def _numbered(folded: str, start: int) -> re.Match[str] | None:
    """A document with its number: digits, or a word or Roman numeral that something sets off."""
    match = _document().match(folded, start)
    return match if match is not None and (match[1] is None or is_number(match[1])) else None


def _whole(folded: str, start: int, *, named: bool) -> re.Match[str] | None:
    """From the first letter to the number of the page. `named` asks for a file's name, and takes kindred words too."""
    match = _to_page(named=named).match(folded, start, start + _READ_ON)
    return match if match is not None and is_number(match[1]) and is_number(match[2]) else None


@cache
def _document() -> re.Pattern[str]:
    set_off = rf"([^\W\d_]+(?:{GAP}[^\W\d_]+)?)(?={GAP}(?:[:,;.=\-|]|page|p\b))"
    return re.compile(rf"{spelt('document')}{GAP}{SIGN}(?:\d|{set_off})")


@cache
def _to_page(*, named: bool) -> re.Pattern[str]:
    dots = "|".join(_EXTENSIONS)
    head = _HEAD if named else spelt("document")
    name = r"(?:[^\n]|\n(?!\s*\n)){1,200}?"
    name = rf"{name}\.{GAP}(?:p{GAP}d{GAP}f|{dots}){GAP}" if named else rf"{name}\b"
    page = rf"(?:{spelt('page')}s?|p|pg|pp|seite|pagina)" if named else rf"{spelt('page')}s?"
    number = r"(\d+|[^\W\d_]{1,9}(?:[\W_]?[^\W\d_]{1,9})??(?![^\W_]))"
    return re.compile(rf"{head}{GAP}{SIGN}{number}{GAP}{name}{page}{GAP}{number}")


@cache
def _number_words() -> frozenset[str]:
    return frozenset(fold(_NUMBER_WORDS).split())


def is_number(text: str) -> bool:
    """Whether it is written in digits, as a Roman numeral, or in words."""
    if text.isdigit():
        return True
    known = _number_words()
    for word in re.split(r"[\W_]+", text):  # noqa: SIM110
        if word not in known and not re.fullmatch(_NUMERAL, word):
            return False
    return True


def spelt(word: str) -> str:
    return GAP.join(_SPELT.get(letter, letter) for letter in word)


_HEAD = f"(?:{spelt('document')}|{spelt('dokument')}|{spelt('doc')})[eo]?"
