"""Characters: what a PDF hands out, made into plain text without changing what stands on the page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from research.text import is_joined_script

_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_SPACES = dict.fromkeys(
    (0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
    " ",
)
_INVISIBLE: dict[int, str] = dict.fromkeys(
    (0x061C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF), ""
)
_CONTROL: dict[int, str] = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "")
# Symbol and Wingdings put their bullets into the private-use area.
_BULLETS: dict[int, str] = dict.fromkeys((0xF0A7, 0xF0B7, 0xF0A8, 0xF06E, 0xF0D8, 0xF0FC, 0xF076, 0xF02D, 0xF071), "-")
# A soft hyphen that comes out of a PDF was drawn: to the reader it is a hyphen.
_HYPHENS: dict[int, str] = {0xAD: "-"}
_TABLE: dict[int, str] = _CONTROL | _SPACES | _INVISIBLE | _LIGATURES | _BULLETS | _HYPHENS

_RUN_OF_SPACES = re.compile(r" {2,}")
_SURROGATES = re.compile("[\ud800-\udfff]")
_COMPOUND = re.compile(r"(?<![\w-])[^\W\d_]{2,}-[^\W\d_]{2,}(?![\w-])")
_WORD = re.compile(r"[^\W\d_]{2,}")
_MAX_WORDS = 50_000
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")
_LETTERS = re.compile(r"[^\W\d_]+")
_LETTER_HYPHEN = re.compile(r"([^\W_]+)[-\u2010]$")


def clean_text(raw: str) -> str:
    """One line's text: no control, zero-width or bidi characters, single spaces, NFC, ligatures spelt out."""
    if raw.isascii() and raw.isprintable():
        return _RUN_OF_SPACES.sub(" ", raw).strip()
    text = unicodedata.normalize("NFC", _SURROGATES.sub("\ufffd", raw.translate(_TABLE)))
    return _RUN_OF_SPACES.sub(" ", text).strip()


def clean_code(raw: str) -> str:
    """Like `clean_text`, but spaces keep their number: in code they mean something."""
    if raw.isascii() and raw.isprintable():
        return raw.rstrip()
    text = _SURROGATES.sub("\ufffd", raw.replace("\t", "    ").translate(_TABLE))
    return unicodedata.normalize("NFC", text).rstrip()


@dataclass(slots=True)
class Vocabulary:
    """The words a document holds whole, so that a word cut at a line's end can be put together as it is spelt."""

    words: set[str] = field(default_factory=set)
    compounds: set[str] = field(default_factory=set)

    def add(self, text: str) -> None:
        """Learn from one line. Its first and last words may be halves, so they do not count."""
        if len(self.words) < _MAX_WORDS:
            self.words.update(_WORD.findall(text.lower())[1:-1])
        if "-" in text and len(self.compounds) < _MAX_WORDS:
            self.compounds.update(_COMPOUND.findall(text.lower()))

    def knows(self, word: str) -> bool:
        """Whether the word stands uncut somewhere in the document."""
        return word.lower() in self.words

    def keeps_hyphen(self, head: str, tail: str) -> bool:
        """Whether `head-tail` is a compound rather than one word cut in two."""
        head, tail = head.lower(), tail.lower()
        if f"{head}-{tail}" in self.compounds:
            return True
        return head + tail not in self.words and head in self.words and tail in self.words


def join_lines(lines: Iterable[str], vocabulary: Vocabulary | None = None) -> str:
    """Lines of one paragraph as one line. A word cut by a hyphen is put together again; a compound keeps it."""
    parts: list[str] = []
    for line in lines:
        if not line:
            continue
        if parts:
            last = parts[-1]
            separator = _separator(last, line, vocabulary)
            if separator is None:
                parts[-1] = last[:-1]
            elif separator:
                parts.append(separator)
        parts.append(line)
    return "".join(parts)


def _separator(left: str, right: str, vocabulary: Vocabulary | None) -> str | None:
    """What stands between two lines: a space, nothing, or None where the hyphen before it goes as well."""
    cut = _LETTER_HYPHEN.search(left[-80:]) if left[-1] in "-\u2010" else None
    if cut and right[0].isalnum():
        head = cut.group(1)
        tail = _LETTERS.match(right)
        already_compound = cut.start() > 0 and left[-80:][cut.start() - 1] in "-\u2010"
        plain = right[0].islower() and head.isalpha() and len(head) > 1 and not already_compound
        if plain and not (vocabulary and tail and vocabulary.keeps_hyphen(head, tail.group())):
            return None
        return ""
    return "" if is_joined_script(left[-1]) and is_joined_script(right[0]) else " "


def is_rtl(text: str) -> bool:
    """Whether most letters run from right to left."""
    if text.isascii():
        return False
    return len(_RTL.findall(text)) * 2 > sum(map(str.isalpha, text))


def alnum_count(text: str) -> int:
    """How many letters and digits a text holds: the measure of what is lost or kept."""
    return sum(map(str.isalnum, text))
