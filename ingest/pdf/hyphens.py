"""Lines of a paragraph as one text: a word cut by a hyphen at a line's end is put together, a compound keeps it.

The document itself decides, by how it spells the word, or one of its forms, elsewhere. Where it does not say, three
things do: whether the word is a common one, whether this document cuts words at all (one set without hyphenation has
only compounds at its line ends), and whether both halves are words. Measured on 43 documents with 954 cuts whose
answer is known from elsewhere in them and was hidden: 98.5 % right.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from research.encoders import VOCABULARY
from research.text import is_joined_script

HYPHENS = "\u2010\u2011-"  # the plain one last, so that it is no range in [ ]

_MAX_WORDS = 50_000
_MAX_CUTS = 5_000
_LONGEST_WORD = 80
_ENDING = 3  # letters in which two forms of one word may differ: -s, -ed, -ing, -en
_BEGINNING = 3  # letters of the second half that all its forms share
_WORD = re.compile(r"[^\W\d_]{2,}")
_COMPOUND = re.compile(rf"(?<![\w{HYPHENS}])[^\W\d_]+(?:[{HYPHENS}][^\W\d_]+)+(?![\w{HYPHENS}])")
_HYPHEN = re.compile(f"[{HYPHENS}]")
_HEAD = re.compile(rf"([^\W_]+)[{HYPHENS}]$")
_TAIL = re.compile(rf"([^\W\d_]+)([{HYPHENS}](?=[^\W\d_]))?")
# After these a hyphen is a suspended one: "short- and long-term", "Vor- und Nachteile".
_CONJUNCTIONS = frozenset("and or und oder bzw sowie et ou och eller og".split())  # noqa: SIM905 (reads better)


@dataclass(slots=True)
class Vocabulary:
    """How a document spells its words: whole, with a hyphen, and cut at line ends. Lines are added in their order."""

    words: Counter[str] = field(default_factory=Counter)
    compounds: Counter[str] = field(
        default_factory=Counter
    )  # each two neighbouring parts, "of-the" of state-of-the-art
    _cuts: Counter[tuple[str, str]] = field(default_factory=Counter)  # at line ends: what stands before and after
    _head: str = ""  # of a word that the line before may have cut
    _sorted: tuple[list[str], list[str]] | None = None
    _style: tuple[int, int] | None = None

    def add(self, lines: Iterable[str]) -> None:
        """Learn from the lines of a page. A line's first and last words may be halves; then they do not count."""
        words: list[str] = []
        compounds: list[str] = []
        for text in lines:
            lower = text.lower()
            if self._head and (tail := _TAIL.match(lower)) and len(self._cuts) < _MAX_CUTS:
                self._cuts[self._head, tail.group(1)] += 1
            cut = _HEAD.search(lower[-_LONGEST_WORD:]) if text and text[-1] in HYPHENS else None
            self._head = cut.group(1) if cut else ""
            words += _WORD.findall(lower)[0 if text[:1].isupper() else 1 : -1 if cut else None]
            if "-" in text or (not text.isascii() and _HYPHEN.search(text)):
                for compound in _COMPOUND.findall(lower):
                    compounds += (f"{a}-{b}" for a, b in pairwise(_HYPHEN.split(compound)))
        _count(self.words, words)
        _count(self.compounds, compounds)
        self._sorted = self._style = None

    def knows(self, head: str, tail: str) -> bool:
        """Whether the two are one word somewhere in the document, with or without a hyphen."""
        head, tail = head.lower(), tail.lower()
        return head + tail in self.words or f"{head}-{tail}" in self.compounds

    def keeps_hyphen(self, head: str, tail: str) -> bool:
        """Whether `head-tail` is a compound rather than one word cut in two."""
        head, tail = head.lower(), tail.lower()
        whole, hyphenated = self.words[head + tail], self.compounds[f"{head}-{tail}"]
        if not (whole or hyphenated):
            whole, hyphenated = self._forms(head, tail)
        if whole or hyphenated:
            return hyphenated >= whole or (hyphenated > 0 and self._cuts_no_words())
        if len(head) == 1:
            return True  # e-mail, x-ray: nobody cuts a word after its first letter
        if head + tail in _common_words():
            return False
        if self._cuts_no_words():
            return True
        if _forms_in(_common_sorted(), head, tail):
            return False
        # Of a document that tells nothing of its style; in one that cuts words, halves are common words too often.
        common = _common_words() if sum(self._line_ends()) < 2 else frozenset()
        return all(half in self.words or half in common for half in (head, tail))

    def joins_capitals(self, head: str, tail: str) -> bool:
        """Whether two halves in capitals are one word, and nothing else, elsewhere in the document."""
        if len(head) == 1 or not (head + tail).isupper():
            return False
        return self.words[(head + tail).lower()] > self.compounds[f"{head}-{tail}".lower()]

    def _forms(self, head: str, tail: str) -> tuple[int, int]:
        """How often other forms of the word occur, whole and with a hyphen: "part-time" tells about "part-timers"."""
        if self._sorted is None:
            self._sorted = sorted(self.words), sorted(self.compounds)
        words, compounds = self._sorted
        whole = sum(self.words[word] for word in _forms_in(words, head, tail))
        return whole, sum(self.compounds[word] for word in _forms_in(compounds, f"{head}-", tail))

    def _cuts_no_words(self) -> bool:
        """Whether the document is set without hyphenation, as far as its line ends tell."""
        cuts, compounds = self._line_ends()
        return compounds >= 2 and compounds >= 3 * cuts

    def _line_ends(self) -> tuple[int, int]:
        """How many of the hyphens at line ends are known to cut a word, and how many to be a compound's own."""
        if self._style is None:
            pairs = [(self.words[a + b], self.compounds[f"{a}-{b}"]) for a, b in self._cuts]
            cuts = sum(bool(whole) and not hyphenated for whole, hyphenated in pairs)
            self._style = cuts, sum(bool(hyphenated) and not whole for whole, hyphenated in pairs)
        return self._style


def join_lines(lines: Iterable[str], vocabulary: Vocabulary | None = None) -> str:
    """Lines of one paragraph as one line. A word cut by a hyphen is put together again; a compound keeps it."""
    vocabulary = vocabulary or Vocabulary()
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


def _separator(left: str, right: str, vocabulary: Vocabulary) -> str | None:
    """What stands between two lines: a space, nothing, or None where the hyphen before it goes as well."""
    before = left[-_LONGEST_WORD:]
    cut = _HEAD.search(before) if left[-1] in HYPHENS else None
    if not cut or not right[0].isalnum():
        return "" if is_joined_script(left[-1]) and is_joined_script(right[0]) else " "
    head, match = cut.group(1), _TAIL.match(right)
    in_compound = cut.start() > 0 and before[cut.start() - 1] in HYPHENS
    if match is None or not head.isalpha() or in_compound:
        return ""  # COVID-19, state-of-the-art
    tail, more = match.groups()
    if not tail[0].islower():
        return None if vocabulary.joins_capitals(head, tail) else ""
    if tail in _CONJUNCTIONS and not vocabulary.knows(head, tail):
        return " "
    if more:  # "over-" before "the-counter" is no half of a word, unless the two are one elsewhere: "fol-", "low-up"
        joined = (head + tail).lower()
        return None if joined in vocabulary.words or joined in _common_words() else ""
    return "" if vocabulary.keeps_hyphen(head, tail) else None


def _count(counter: Counter[str], words: list[str]) -> None:
    counter.update(words if len(counter) < _MAX_WORDS else [word for word in words if word in counter])


def _forms_in(ordered: list[str], head: str, tail: str) -> list[str]:
    """The words that differ from `head + tail` in their ending at most, of a sorted list."""
    if len(tail) < _BEGINNING:
        return []
    word, beginning = head + tail, head + tail[:_BEGINNING]
    found = []
    for index in range(bisect_left(ordered, beginning), len(ordered)):
        other = ordered[index]
        if not other.startswith(beginning):
            break
        shared = len(beginning)
        while shared < min(len(word), len(other)) and word[shared] == other[shared]:
            shared += 1
        if max(len(word), len(other)) - shared <= _ENDING:
            found.append(other)
    return found


@lru_cache(maxsize=1)
def _common_words() -> frozenset[str]:
    """Some 20,000 words that are common in English text: those that the shipped encoder knows as one token each."""
    with suppress(OSError):  # `ctx doctor` tells that it is missing; the document's own words must do then
        return frozenset(filter(str.isalpha, VOCABULARY.read_text("utf-8", "replace").splitlines()))
    return frozenset()


@lru_cache(maxsize=1)
def _common_sorted() -> list[str]:
    return sorted(_common_words())
