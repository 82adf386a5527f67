"""Telephone numbers. They have no check digit, so their shape has to say it, or the words before them.

Taken without a word: +49 …, 0049 …, (212) 555-0132, 212-555-0132, and groups that begin with a 0 as national numbers
do. Everything else (612 345 678 might be a sum of money) only behind "phone", "Tel.", "call me on" and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from research.governance.findings import Finding, Labels

# Figures with what people put between them; possessive, and a zone begins only where a word does.
_ZONE = re.compile(r"(?<![\w.,])(?:\+ ?)?\(?\+?\d[\d ().\-/]{5,}+")
_PIECES = re.compile(r" [/|] | {2,}+|(?<=\d) - (?=\d)|/(?=0)|(?<=\d) (?=\((?!0\))\d)")  # between two numbers in a row
_EXTENSION = re.compile(r"(?i) ?(?:x|ext\.?|extension|#|durchwahl|dw\.?|poste|wew\.?) ?\d{1,6}(?!\d)")
_DAY, _MONTH = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])"
_DATE = re.compile(
    rf"(?:{_DAY}[./-]{_MONTH}|{_MONTH}[./-]{_DAY})[./-](?:\d{{4}}|\d{{2}})|\d{{4}}[./-]{_MONTH}[./-]{_DAY}"
)
_DATES = re.compile(rf"(?:{_DAY}[./ -]{_MONTH}[./ -](?:19|20)\d\d|(?:19|20)\d\d[./-]{_MONTH}[./-]{_DAY})(?!\d)")
_YEARS = re.compile(r"(?:19|20)\d{2}(?:[ /-]{1,3}(?:19|20)?\d{2}){1,8}+")
_LETTER = re.compile(r"[^\W\d_]")
_BEFORE = 64  # characters in which a word may say what it is
_MOST = 40  # characters of a number with all its signs


class _Number(NamedTuple):
    text: str
    groups: tuple[str, ...]
    digits: str

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.groups))

    @property
    def like_thousands(self) -> bool:
        """1 234 567, as sums of money are written."""
        inside = re.sub(r"[\d+]", "", self.text)
        return (
            set(inside) <= {" ", "."} and len(self.groups[0]) <= 3 and all(len(group) == 3 for group in self.groups[1:])
        )


def phones(text: str, labels: Labels) -> Iterator[Finding]:
    for zone in _ZONE.finditer(text):
        whole = _trimmed(text, *zone.span())
        found = [whole] if _fits(text, *whole, labels) else _pieces(text, *zone.span())
        for begin, end in found:
            if found == [whole] or _fits(text, begin, end, labels):
                extension = _EXTENSION.match(text, end)
                yield Finding(begin, extension.end() if extension else end, "phone")


def _fits(text: str, begin: int, end: int, labels: Labels) -> bool:
    number = _number(text[begin:end]) if end - begin <= _MOST else None
    if number is None or _is_something_else(number):
        return False
    return _is_phone(number) or _is_labelled(number, text, begin, labels)


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """A zone cut where one number may end and the next begin."""
    cuts = [start, *(at for match in _PIECES.finditer(text, start, end) for at in match.span()), end]
    if len(cuts) == 2:
        return []
    return [_trimmed(text, begin, stop) for begin, stop in zip(cuts[::2], cuts[1::2], strict=True)]


def _trimmed(text: str, begin: int, end: int) -> tuple[int, int]:
    """Without the signs at its edges."""
    while end > begin and not text[end - 1].isdigit():
        end -= 1
    while begin < end and text[begin] in " .-/)":
        begin += 1
    if text[begin] == "(" and text.count("(", begin, end) > text.count(")", begin, end):
        begin += 1  # it closes behind the number
    return begin, end


def _number(text: str) -> _Number | None:
    groups = tuple(re.findall(r"\d+", text))
    digits = "".join(groups)
    joined = re.sub(r" ([/-]) ", r"\1", text)
    if not 6 <= len(digits) <= 17 or text.count("(") != text.count(")") or re.search(r"[ .\-/]{3}|\({2}", joined):
        return None
    return _Number(text, groups, digits)


def _is_something_else(number: _Number) -> bool:
    plain = number.text.strip("()")
    if _DATE.fullmatch(plain) or _YEARS.fullmatch(plain) or _DATES.match(plain):
        return True
    return number.groups[0] in {"978", "979"} and len(number.digits) == 13  # a book


def _is_phone(number: _Number) -> bool:
    text, digits, shape = number.text, number.digits, number.shape
    if text.lstrip("(").startswith("+"):
        return 8 <= len(digits) <= 15 and digits[0] != "0" and not (len(digits) < 10 and number.like_thousands)
    if digits.startswith("00"):
        return digits[2:3] not in {"0", ""} and (10 if len(shape) > 1 else 12) <= len(digits) <= 16
    if digits.startswith("0") or text.startswith("(0"):
        return _is_national(number)
    return _is_north_american(number)


def _is_national(number: _Number) -> bool:
    """0 and the area, then the number, with something in between."""
    shape = number.shape
    if not 9 <= len(number.digits) <= 12 or len(shape) < 2 or len(shape) > 6 or min(shape) < 2:
        return False
    signs = set(re.sub(r"\d", "", number.text))
    if "." in signs and (signs != {"."} or len(set(shape[1:])) > 1):
        return False
    return not _counts_up(number.groups)


def _counts_up(groups: tuple[str, ...]) -> bool:
    values = [int(group) for group in groups]
    return len(values) > 2 and all(after - before == 1 for before, after in pairwise(values))


def _is_north_american(number: _Number) -> bool:
    groups = number.groups[1:] if number.groups[0] == "1" else number.groups
    shape = tuple(map(len, groups))
    signs = set(re.sub(r"\d", "", number.text))
    if shape == (3, 3, 4) and groups[0][0] in "23456789" and groups[1][0] in "23456789":
        return bool(signs & set("-.(")) and not ({"/"} & signs)
    # (11) 91234-5678: an area in brackets and a dash; brackets alone might be a loss in a table.
    return number.text.startswith("(") and "-" in signs and 2 <= shape[0] <= 3 and 8 <= len(number.digits) <= 12


def _is_labelled(number: _Number, text: str, begin: int, labels: Labels) -> bool:
    if not 6 <= len(number.digits) <= 15 or (len(number.digits) < 7 and len(number.groups) < 2):
        return False
    before = max(0, begin - _BEFORE)
    if not _LETTER.search(text, max(before, begin - 8), begin):
        return False  # a row of figures in a table; the search for words would be the dearest part of it
    return bool(labels.phone.search(text, before, begin) or labels.call.search(text, before, begin))
