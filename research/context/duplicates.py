"""What several sources say alike is said once: by the item with the highest calibrated score.

    same experience   an experience, and a value told in its words
    same file         code of a file, and a commit that changed it, if `same_file` asks for that
    same text         words that are 90 % the same, and the same numbers, names and negations

Texts are compared across sources; within one, only what is the same word for word is a duplicate: two memories that
differ in a version are two. 90 % alike is what rapidfuzz calls a ratio of 90. That alone would join "The limit is 30"
and "The limit is 60", so what tells such texts apart must not differ. Of two hundred items most pairs are told apart
before that, by their lengths and by the neighbouring words they share.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from operator import attrgetter

from research.models import Item

ALIKE = 90.0
"""The least ratio, of a hundred, of two texts that say the same."""

_SHORTER = ALIKE / (200 - ALIKE)  # of the longer one's length: else no ratio reaches that
_COMPARED = 2500  # characters of a text; what is longer is compared by its beginning, and by its length
_SHARED = 0.5  # of the pairs of neighbouring words of one text that stand in the other as well, at least
_MARKED = 120  # words from the beginning whose pairs are marked
_BITS = 1024  # in which they are
_A_SENTENCE = 4  # words; so many more may say something new
_A_NAME = 4  # letters; a shorter one may be found in any text
# Where words are not parted by spaces, each character counts as one.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_]+")
_IN_NUMBERS = re.compile(r"(\d)[.,:](?=\d)")
_TELLING = re.compile(r"\d|[A-Z]")
_DIGITS = re.compile(r"\d")
_NEGATIONS = frozenset(
    """not no never none cannot cant dont doesnt didnt isnt arent wasnt werent wont wouldnt shouldnt couldnt mustnt
    hasnt havent hadnt without nobody nothing neither nor""".split()  # noqa: SIM905
)


class _Text:
    """A text as it is compared: in small letters, its words divided by single spaces."""

    __slots__ = ("_telling", "_words", "count", "length", "marked", "marks", "plain", "size", "source", "text")

    def __init__(self, text: str, source: str = "") -> None:
        spaced = " ".join(text[: 4 * _COMPARED].split())
        # don't and 1,000 are written in many ways
        self.text = _IN_NUMBERS.sub(r"\1", spaced[:_COMPARED].replace("'", "").replace("’", ""))
        self.size = len(spaced)
        self.source = source
        found = _WORD.findall(self.text.casefold())
        self.count = len(found)
        self.plain = " ".join(found)
        self.length = len(self.plain)
        hashes = [hash(word) for word in found[:_MARKED]]
        marks = 0
        for pair in zip(hashes, hashes[1:] or hashes, strict=False):
            marks |= 1 << (hash(pair) % _BITS)
        self.marks = marks
        self.marked = marks.bit_count()
        self._words: frozenset[str] | None = None
        self._telling: frozenset[str] | None = None

    @property
    def words(self) -> frozenset[str]:
        if self._words is None:
            self._words = frozenset(self.plain.split())
        return self._words

    @property
    def telling(self) -> frozenset[str]:
        """Words that must not differ: numbers, names, negations. Few pairs come so far that it is asked for."""
        if self._telling is None:
            named = (word.casefold() for word in _WORD.findall(self.text) if _TELLING.search(word))
            self._telling = frozenset(named) | (self.words & _NEGATIONS)
        return self._telling


_length = attrgetter("length")


class _Kept:
    """Those that stay so far, and what a further one may say again."""

    def __init__(self, *, same_file: bool) -> None:
        self._same_file = same_file
        self._texts: list[_Text] = []  # by length
        self._whole: set[str] = set()
        self._experiences: set[tuple[str, str]] = set()
        self._files: dict[str, _Files] = {"code": _Files(), "commit": _Files()}

    def says(self, item: Item, text: _Text) -> bool:
        kind, experience = item.ref.kind, _experience(item)
        other = {"experience": "value", "value": "experience"}.get(kind, "")
        if experience and (other, experience) in self._experiences:
            return True
        counterpart = {"code": "commit", "commit": "code"}.get(kind, "")
        if self._same_file and counterpart and self._files[counterpart].has_any(_files(item)):
            return True
        if not text.plain:
            return False
        return text.plain in self._whole or any(say_the_same(text, kept) for kept in self._near(text))

    def add(self, item: Item, text: _Text) -> None:
        insort(self._texts, text, key=_length)
        self._whole.add(text.plain)
        self._experiences.add((item.ref.kind, _experience(item)))
        if self._same_file and item.ref.kind in self._files:
            self._files[item.ref.kind].add(_files(item))

    def _near(self, text: _Text) -> Iterator[_Text]:
        """Of other sources, and of a length and with words that let them be alike."""
        last = bisect_right(self._texts, text.length / _SHORTER, key=_length)
        marks, marked, source = text.marks, text.marked, text.source
        for kept in self._texts[bisect_left(self._texts, text.length * _SHORTER, key=_length) : last]:
            if (marks & kept.marks).bit_count() >= _SHARED * min(marked, kept.marked) and kept.source != source:
                yield kept


def _experience(item: Item) -> str:
    """The id that an experience and a value of its words share."""
    return item.ref.key if item.ref.kind == "experience" else str(item.metadata.get("experience") or "")


def _files(item: Item) -> frozenset[str]:
    """That it is about: of code its own, by the path it is told by and from the root; of a commit those it touched."""
    facts = item.metadata
    if item.ref.kind == "code":
        own = {str(facts.get(name) or "") for name in ("file_path", "path")} | {item.ref.key}
        return frozenset(own - {""})
    files = {str(name) for name in facts.get("files_changed") or ()}
    if repository := str(facts.get("repository") or "").rstrip("/"):
        files |= {f"{repository}/{name}" for name in files}
    return frozenset(files)


class _Files:
    """Paths, of which one may be told from the root and the other from the folder of its repository."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._ends: set[str] = set()  # every end of each, from a slash on

    def add(self, paths: frozenset[str]) -> None:
        for path in paths:
            if path not in self._paths:
                self._paths.add(path)
                self._ends.update(_ends(path))

    def has_any(self, paths: frozenset[str]) -> bool:
        """The same path; or an end of one that is told from the root, of two folders' names at least."""
        return any(
            path in self._paths or ("/" in path and path in self._ends) or not self._paths.isdisjoint(_ends(path))
            for path in paths
        )


def _ends(path: str) -> set[str]:
    """What an absolute path ends with: `/a/b/c.py` with `b/c.py`."""
    if not path.startswith("/"):
        return set()
    parts = path.strip("/").split("/")
    return {"/".join(parts[start:]) for start in range(1, len(parts) - 1)}


def without_duplicates(items: Sequence[Item], *, same_file: bool = False) -> list[Item]:
    """In the order they came, without those that one of a higher score says already. Of equal ones the first stays."""
    texts = [_Text(item.text, item.ref.kind) for item in items]
    kept = _Kept(same_file=same_file)
    stays: set[int] = set()
    for at in sorted(range(len(items)), key=lambda at: -items[at].score):
        if not kept.says(items[at], texts[at]):
            kept.add(items[at], texts[at])
            stays.add(at)
    return [item for at, item in enumerate(items) if at in stays]


def say_the_same(one: _Text, other: _Text) -> bool:
    """Whether all that tells them apart is the same, and they are alike."""
    short, long = (one, other) if one.count <= other.count else (other, one)
    if _lacks(long, short):
        return False
    if long.count - short.count < _A_SENTENCE and _lacks(short, long):
        return False
    if min(one.size, other.size) > _COMPARED and min(one.size, other.size) < _SHORTER * max(one.size, other.size):
        return False
    from rapidfuzz import fuzz

    return fuzz.ratio(one.plain, other.plain, score_cutoff=ALIKE) > 0.0


def _lacks(one: _Text, other: _Text) -> bool:
    """Whether it does not have what tells the other one apart. To whoever changes marks 3.5 and 3 5 are one number, and
    max_tokens and maxtokens one name."""
    missing = other.telling - one.words
    if not missing:
        return False
    together = one.plain.replace(" ", "")
    if any(not word.isdigit() and (len(word) < _A_NAME or word not in together) for word in missing):
        return True
    return any(word.isdigit() for word in missing) and _DIGITS.findall(one.text) != _DIGITS.findall(other.text)
