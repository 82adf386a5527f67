"""Looks where the question points: "page 12", "slides 3 to 5", "the cover page", "Figure 4", "Seite 7", "рис. 2".

No leg can know that page 12 is meant: its number need not stand on it, and a scan or a chart may hold no words at all.
So a reference is looked up in the documents that the legs found first. A page that is referred to is worth as much as
the best page of its document, and stands before it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from research.models import Question
from research.search.legs import Boosted, Ranked

if TYPE_CHECKING:
    from research.store import Reader

NAME = "page-references"

LAST = -1
"""The number of a document's last page, whatever it is."""

# "pages 3 to 90" refers to no page in particular.
_MOST_PAGES = 12
# What comes after is a pasted text, whose references are its own.
_MOST_LETTERS = 5000
# Documents after these are hardly what the question is about, and each costs a look-up.
_DOCUMENTS = 5


@dataclass(frozen=True, slots=True)
class Language:
    """How a language refers to pages, figures and tables. All words in lower case, in every form that occurs."""

    pages: str  # before or after a number
    short: str = ""  # the same with a full stop
    kinds: Sequence[str] = ()  # each: the spellings of one kind of numbered thing, in text and in captions
    to: str = ""
    also: str = ""  # and, or
    numbers: str = ""  # 1, 2, 3 … in words
    ordinals: Sequence[str] = ()  # each: the forms of first, second, third …
    last: str = ""
    cover: str = ""  # what makes a page the first
    cover_pages: str = ""  # single words for it
    large: str = ""  # what follows an amount of money, and no reference


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
LANGUAGES: Mapping[str, Language] = {code: Language(**entry) for code, entry in _TABLES.items()}

# "How do I chart 3 patients", "when we table 2 motions": after one of these an English kind is a verb.
_BEFORE_A_VERB = "i we you they"
# "front page news" is no page of a document.
_AFTER_A_PAGE = "news story stories headline headlines article articles"


_NUMBERED = r"(?:no\.|nr\.?|n[°º]|№|number\b|\#)?"


@dataclass(frozen=True, slots=True)
class Caption:
    kind: str  # "figure", in lower case
    number: str  # "4", "3-1"


@dataclass(frozen=True, slots=True)
class PageReferences:
    """What a question points at: page numbers, printed or physical, and numbered figures and the like."""

    pages: tuple[int, ...] = ()
    captions: tuple[Caption, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pages or self.captions)


class PageReferencesBooster:
    """The booster of the pages that a question refers to."""

    name = NAME

    def boost(self, question: Question, reader: Reader, ranked: Sequence[Ranked]) -> Boosted:
        """The pages referred to stand before the best of their document; pages that no leg found may join."""
        references = references_in(question.wording)
        if not references:
            return Boosted(ranked)
        best: dict[str, float] = {}
        for page in ranked:
            best.setdefault(page.doc_id, page.score)
        doc_ids = list(best)[:_DOCUMENTS]
        referred = reader.lookups.numbered_pages(doc_ids, references.pages)
        for caption in references.captions:
            referred |= reader.lookups.captioned_pages(doc_ids, _spellings(caption.kind), caption.number)
        lifted = [Ranked(page_id, doc_id, best[doc_id]) for page_id, doc_id in sorted(referred.items())]
        others = [page for page in ranked if page.page_id not in referred]
        rank = {page.page_id: n for n, page in enumerate(ranked)}
        # Lifted pages come first among equals, in the order that the legs gave them.
        lifted.sort(key=lambda page: rank.get(page.page_id, len(rank)))
        return Boosted(sorted([*lifted, *others], key=lambda page: -round(page.score, 6)), frozenset(referred))


def references_in(question: str) -> PageReferences:
    lower = question[:_MOST_LETTERS].lower()
    digits = any(letter.isdecimal() for letter in lower)
    pages: dict[int, None] = {}
    captions: dict[Caption, None] = {}
    for code, language in LANGUAGES.items():
        if any(hint in lower for hint in _hints(language, digits=digits)):
            patterns = _patterns(code)
            pages.update(dict.fromkeys(patterns.pages_in(lower)))
            captions.update(dict.fromkeys(Caption(*match) for match in patterns.caption.findall(lower)))
    return PageReferences(tuple(pages) if len(pages) <= _MOST_PAGES else (), tuple(captions))


def _spellings(kind: str) -> tuple[str, ...]:
    """All ways in which captions write a kind, in every language that has the word."""
    kinds = (spelled.split() for language in LANGUAGES.values() for spelled in language.kinds)
    return tuple(dict.fromkeys(word for spelled in kinds if kind in spelled for word in spelled))


def _hints(language: Language, *, digits: bool) -> Iterator[str]:
    """Pieces, one of which a question must hold to refer to a page: without digits only whole words can."""
    yield from language.pages.split()
    yield from language.cover_pages.split()
    if digits:
        # A single letter with a full stop ends every other sentence.
        shorts = ((f" {s}.", f"({s}.") if len(s) == 1 else (f"{s}.",) for s in language.short.split())
        yield from (hint for hints in shorts for hint in hints)
        yield from (word for kind in language.kinds for word in kind.split())


@dataclass(frozen=True, slots=True)
class _Patterns:
    """What one language's references look like in a question in lower case."""

    pages: re.Pattern[str]
    span: re.Pattern[str]
    nth: re.Pattern[str]
    caption: re.Pattern[str]
    values: Mapping[str, int]  # of words

    def pages_in(self, question: str) -> Iterator[int]:
        for referred in self.pages.finditer(question):
            for span in self.span.finditer(referred["numbers"]):
                first = self._number(span["first"])
                last = self._number(span["last"]) if span["last"] else first
                yield from range(first, min(last, first + _MOST_PAGES) + 1)
        for match in self.nth.finditer(question):
            yield self._number(match["digits"] or match["word"]) if match["digits"] or match["word"] else 1

    def _number(self, text: str) -> int:
        return int(text) if text.isdecimal() else self.values[text]


@lru_cache(maxsize=len(LANGUAGES))
def _patterns(code: str) -> _Patterns:
    """Made for the first question that may refer to something: most do not, and a cold start is dear."""
    language = LANGUAGES[code]
    numbers = {word: n for n, word in enumerate(language.numbers.split(), start=1)}
    ordinals = {form: n for n, forms in enumerate(language.ordinals, start=1) for form in forms.split()}
    ordinals |= dict.fromkeys(language.cover.split(), 1) | dict.fromkeys(language.last.split(), LAST)
    page = _any(language.pages.split())
    number = rf"(?:\d{{1,4}}|{_any(numbers)})\b"
    to = rf"\s*(?:[-–—]|{_any(language.to.split())}(?!\w))\s*(?:{page}\s*)?"
    also = rf"\s*(?:,?\s*{_any(language.also.split())}\b|,|&)\s*(?:{page}\s*)?"
    pages = (
        # A quotation mark before it is somebody's example of an answer: list them like ['Page 2', 'Page 4'].
        rf"(?<![\w.'\"“‘])(?:{page}\b|{_any(language.short.split())}\.)\s*{_NUMBERED}\s*"
        rf"(?P<numbers>{number}(?:(?:{to}|{also}){number})*)"
    )
    nth = (
        rf"\b(?:(?P<digits>\d{{1,3}})(?:st|nd|rd|th|\.|e|ª|-я|-й)|(?P<word>{_any(ordinals)}))\s+{page}\b"
        rf"(?!\s+{_any(_AFTER_A_PAGE.split())}\b)|\b{_any(language.cover_pages.split())}\b"
    )
    large = _any([word for each in LANGUAGES.values() for word in each.large.split()])
    verbs = "".join(rf"(?<!\b{word}\s)" for word in _BEFORE_A_VERB.split())
    kinds = [word for kind in language.kinds for word in kind.split()]
    caption = (
        rf"{verbs}\b({_any(kinds)})\.?\s*{_NUMBERED}\s*"
        rf"(\d+(?:[.\-–]\d+)*)\b(?!\s*(?:%|{large}\b))"
    )
    span = rf"(?P<first>{number})(?:{to}(?P<last>{number}))?"
    values = numbers | ordinals
    return _Patterns(re.compile(pages), re.compile(span), re.compile(nth), re.compile(caption), values)


def _any(words: Collection[str]) -> str:
    """A pattern for one of the words, longest first because the first that fits is taken; for none, one that fails."""
    if not words:
        return r"(?!)"
    return "(?:" + "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word))) + ")"
