"""Which document a question means: by the words of its name and title, of its first pages, or by being the only one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from research.search.document_parts import PartQuestion
from research.search.legs import Ranked
from research.store import (
    FrontPage,
    Reader,
    analyze,
    documents_with,
    front_pages,
    named_words,
    phrase_pages,
    share_of_named,
    term_statistics,
    words_on,
)

# Documents that share a name: each of them may be meant. More, and none is.
_MOST_DOCUMENTS = 3
# Documents of the ranking that may be meant without being named.
_LOOKED_AT = 5
# How much of the weight of a question's words must name the document, by its name or its first pages.
_NAMED = 0.85
_HALF_NAMED = 0.5
_MOST_WORDS = 12
_IN_A_ROW = 3  # words from here on must stand so; fewer do by chance
_PHRASE_PAGES = 1000
# "The paper", without a name: the best document, if its best page is so much better than that of the next.
_STANDS_OUT = 1.25
# A single word names a document if so much of its pages belong to documents named so.
_A_NAME = 0.5


@dataclass(frozen=True, slots=True)
class Names:
    """The words of a question that may name a document, with their weights, and which of them each document's name has.

    Words of no page and no name are misspelt, or of another language: they tell nothing, and are left out.
    """

    words: Mapping[str, float]
    held: Mapping[str, set[str]]  # doc_id → words
    unknown: int  # words left out

    @classmethod
    def of(cls, reader: Reader, rest: Sequence[str]) -> Names:
        stems = list(dict.fromkeys(stem for word in rest for stem in analyze(word)))
        if len(stems) > _MOST_WORDS:  # a sentence, no name
            return cls({}, {}, len(stems))
        pairs = {first + second: {first, second} for first, second in pairwise(stems)}  # Best Buy: BESTBUY_2023.pdf
        named = named_words(reader, [*stems, *pairs])
        held = {
            doc_id: {stem for word in found for stem in pairs.get(word, {word})} & set(stems)
            for doc_id, found in named.items()
        }
        used = set().union(*held.values())
        terms = term_statistics(reader, stems)
        words = {term.word: term.idf for term in terms if term.pages or term.word in used}
        return cls(words, held, len(stems) - len(words))

    def share(self, words: Collection[str]) -> float:
        """Of the weight of all words."""
        return sum(self.words[word] for word in words) / sum(self.words.values())


def documents_meant(
    reader: Reader, asked: PartQuestion, ranked: Sequence[Ranked], about: Mapping[str, float]
) -> list[str]:
    """The documents that a question for a part may mean; none if that cannot be told. `about`: those that its
    conversation is about, with what each counts."""
    best: dict[str, float] = {}
    for page in ranked:
        best.setdefault(page.doc_id, page.score)
    names = Names.of(reader, asked.rest)
    if names.words:
        return _named(reader, names, asked.document, list(best))
    if asked.rest:  # a name that no document has
        return []
    if len(best) == 1:
        return list(best)
    talked_of = sorted(about, key=lambda doc_id: -about[doc_id])[:1]
    return _of_that_kind(reader, asked.document) or talked_of or _standing_out(best)


def documents_called(reader: Reader, rest: Sequence[str], kinds: Sequence[str], ranking: Sequence[str]) -> list[str]:
    """The documents that have all of the words in their names, if one of them is used for hardly anything else."""
    names = Names.of(reader, rest)
    full = {doc_id: 1.0 for doc_id, held in names.held.items() if len(held) == len(names.words)}
    if names.unknown or not full or max(share_of_named(reader, word) for word in names.words) < _A_NAME:
        return []
    return _best_of(reader, full, kinds, ranking)


def documents_with_section(
    reader: Reader, asked: PartQuestion, ranking: Sequence[str]
) -> list[tuple[str, set[str], set[str]]]:
    """For a question that names a section: documents that may be meant, and of each the words of the question, and
    those of them that neither its name nor its first pages hold, so that they must be the section's."""
    names = Names.of(reader, asked.rest)
    named = sorted(names.held, key=lambda doc_id: -names.share(names.held[doc_id]))
    likely = named[:_MOST_DOCUMENTS] or _of_that_kind(reader, asked.document)
    if not likely and (asked.document or len(ranking) == 1):
        likely = list(ranking[:1])
    fronts = _on_first_pages(reader, names, likely)
    words = set(names.words)
    return [(doc_id, words, words - names.held.get(doc_id, set()) - fronts[doc_id]) for doc_id in likely]


def _named(reader: Reader, names: Names, kinds: Sequence[str], ranking: Sequence[str]) -> list[str]:
    """The documents whose names, or else whose first pages, hold nearly all of the words."""
    shares = {doc_id: names.share(held) for doc_id, held in names.held.items()}
    full = {doc_id: share for doc_id, share in shares.items() if share >= _NAMED}
    if not full or not _is_a_name(reader, names, full, kinds):
        full = _by_first_pages(reader, names, shares, kinds, ranking)
    return _best_of(reader, full, kinds, ranking)


def _is_a_name(reader: Reader, names: Names, full: Collection[str], kinds: Sequence[str]) -> bool:
    """Whether the words are more than one, or of a question that speaks of a document, or hardly used elsewhere."""
    words = set().union(*(names.held[doc_id] for doc_id in full))
    return bool(kinds) or len(words) > 1 or all(share_of_named(reader, word) >= _A_NAME for word in words)


def _by_first_pages(
    reader: Reader, names: Names, shares: Mapping[str, float], kinds: Sequence[str], ranking: Sequence[str]
) -> dict[str, float]:
    """Those documents whose names and first pages hold the words: all of them if the question speaks of no document,
    and then it must also name one by half, or by its first page: with a word that is its alone, or all in a row."""
    likely = [*sorted(shares, key=lambda doc_id: -shares[doc_id])[:_LOOKED_AT], *ranking[:_LOOKED_AT]]
    fronts = _on_first_pages(reader, names, list(dict.fromkeys(likely)))
    found = {doc_id: names.share(names.held.get(doc_id, set()) | words) for doc_id, words in fronts.items()}
    full = {doc_id: share for doc_id, share in found.items() if share >= (_NAMED if kinds else 1 - 1e-9)}
    if kinds:
        return full
    return {
        doc_id: share
        for doc_id, share in full.items()
        if shares.get(doc_id, 0.0) >= _HALF_NAMED or _heads_first_page(reader, names, doc_id)
    }


def _heads_first_page(reader: Reader, names: Names, doc_id: str) -> bool:
    """Whether the words stand there as a name does."""
    first = [front.page_id for front in front_pages(reader, [doc_id]).get(doc_id, []) if front.words][:1]
    if names.unknown or not first:
        return False
    if len(names.words) >= _IN_A_ROW:
        return first[0] in phrase_pages(reader, [list(names.words)], [doc_id], limit=_PHRASE_PAGES)
    held = words_on(reader, first, names.words).get(first[0], set())
    return any(documents_with(reader, word, most=2) == [doc_id] for word in held)


def _on_first_pages(reader: Reader, names: Names, doc_ids: Sequence[str]) -> dict[str, set[str]]:
    """Which of the words stand on a document's covers and the first page after them, where it says what it is."""
    fronts = {doc_id: _opening(pages) for doc_id, pages in front_pages(reader, doc_ids).items()}
    on_page = words_on(reader, [front.page_id for pages in fronts.values() for front in pages], names.words)
    return {
        doc_id: set().union(*(on_page.get(front.page_id, set()) for front in fronts.get(doc_id, [])))
        for doc_id in doc_ids
    }


def _opening(pages: Sequence[FrontPage]) -> list[FrontPage]:
    covers = list(takewhile(lambda page: not page.has_text, pages))
    return [*covers, *pages[len(covers) : len(covers) + 1]]


def _best_of(reader: Reader, shares: Mapping[str, float], kinds: Sequence[str], ranking: Sequence[str]) -> list[str]:
    """Those with the largest share, of these such as are named by the kind of document, in the order of the ranking."""
    most = max(shares.values(), default=0.0)
    best = [doc_id for doc_id, share in shares.items() if share >= most - 1e-9]
    if len(best) > 1:
        kind = set(_of_that_kind(reader, kinds, most=None))
        best = [doc_id for doc_id in best if doc_id in kind] or best
    places = {doc_id: place for place, doc_id in enumerate(ranking)}
    best.sort(key=lambda doc_id: (places.get(doc_id, len(places)), doc_id))
    return best if len(best) <= _MOST_DOCUMENTS else []


def _of_that_kind(reader: Reader, kinds: Sequence[str], *, most: int | None = 1) -> list[str]:
    """The documents named "handbook", where a question speaks of the handbook; none if they are more than `most`."""
    stems = [stem for kind in kinds for stem in analyze(kind)]
    found = list(named_words(reader, stems))
    return found if most is None or len(found) <= most else []


def _standing_out(best: Mapping[str, float]) -> list[str]:
    first, second, *_ = best.items()
    return [first[0]] if first[1] >= _STANDS_OUT * second[1] > 0 else []
