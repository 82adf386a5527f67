"""Names of documents in a question: one that is misspelt is found, and one that is named weighs nothing inside it.

"Neflix 2015" is searched with "Netflix" beside it.

Only words that stand on no page and in no name are looked at, and only words of file names and titles come into
question for them, of these only such as are names: a word that stands on other documents' pages as well ("health")
tells no document apart. A word of the language is no typing error, whatever name it looks like. What was written stays.

Which document a question means: by the words of its name and title, of its first pages, or by being the only one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from research.models import Question, Rewrite
from research.search.legs import Ranked, Reranking
from research.search.rewriters import LEAST_LETTERS
from research.store import Reader, analyze, lookups, normalize

if TYPE_CHECKING:
    from research.search.document_parts import PartQuestion

NAME = "names"

_TOKEN = re.compile(r"[^\W_]+(?:[.'’&-][^\W_]+)*")
_MOST_STEMS = 64
_DOCUMENTS_NAMED = 12  # that share a name; more, and it says little
_A_NAME_ALONE = 0.5

_LETTERS_FOR_TWO_EDITS = 8
# A pasted text may hold hundreds of words that no page has; a question has one or two.
_MOST_WORDS = 4
# The share of a word's pages that are in documents named so, from which on it is a name.
_A_NAME = 0.8
# Whose pages are scored again. A name that more documents share says little.
_DOCUMENTS_RANKED = 5
# Names that share a stem are written in few ways.
_DOCUMENTS = 20


@dataclass(frozen=True, slots=True)
class Naming:
    """Documents that a question names, and the stems of the words that do."""

    documents: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()


def with_corrections(question: str, reader: Reader, unknown: Sequence[str]) -> Rewrite | None:
    """The question with the name that each unknown word seems to mean written after it; None if none means one."""
    corrections: dict[str, str] = {}
    for word in unknown[:_MOST_WORDS]:
        meant = _name_meant(normalize(word), reader)
        if meant:
            corrections[word] = meant
    if not corrections:
        return None
    after = question
    for word, meant in corrections.items():
        after = re.sub(rf"\b{re.escape(word)}\b", lambda found, meant=meant: f"{found[0]} {meant}", after)  # type: ignore[misc]
    why = ", ".join(f"{word} is on no page; a document is named {meant}" for word, meant in corrections.items())
    return Rewrite(NAME, question, after, why)


def as_written(done: Rewrite, reader: Reader, ranked: Sequence[Ranked]) -> Reranking | None:
    """A name chooses a document; which of its pages come first is left to the question as it was written."""
    added = set(analyze(done.after)) - set(analyze(done.before))
    named = reader.words.name_matches(sorted(added))
    documents = dict.fromkeys(page.doc_id for page in ranked if page.doc_id in named)
    chosen = tuple(documents)[:_DOCUMENTS_RANKED]
    return Reranking(done.before, chosen, keep_best=False) if chosen else None


def naming(question: Question, reader: Reader) -> Naming:
    """The documents that a question names, and the words it does so by.

    A word of a document's file name or title is a name if it is written as one and most of the pages that hold it are
    of documents called so ("Boeing"); two words are, if the document's name is both of them joined ("Best Buy" and
    BESTBUY.pdf). Numbers and years name nothing by themselves.
    """
    known: Naming | None = question.memo.known("naming")
    if known is not None:
        return known
    tokens = [token.removesuffix("'s").removesuffix("’s") for token in _TOKEN.findall(question.wording)]
    stems = [frozenset(analyze(token)) if token.isalpha() and len(token) > 2 else frozenset() for token in tokens]
    joined = [
        frozenset(analyze(first + second)) if first.isalpha() and second.isalpha() else frozenset()
        for first, second in pairwise(tokens)
    ]
    looked_up = sorted({stem for found in (*stems, *joined) for stem in found})[:_MOST_STEMS]
    held = reader.lookups.named_words(looked_up) if looked_up else {}
    alone = {
        at
        for at, token in enumerate(tokens)
        if stems[at]
        and any(stems[at] <= words for words in held.values())
        and all(reader.words.share_of_named(stem) >= _least_share(token, at) for stem in stems[at])
    }
    found: dict[str, set[int]] = {}
    for doc_id, words in held.items():
        pairs = {at for at, stem in enumerate(joined) if stem and stem <= words}
        places = {at for at in alone if stems[at] <= words} | {at + n for at in pairs for n in (0, 1)}
        if places:
            found[doc_id] = places
    most = max(map(len, found.values()), default=0)
    best = {doc_id: places for doc_id, places in found.items() if len(places) == most}
    named = Naming()
    if 0 < len(best) <= _DOCUMENTS_NAMED:
        meant = (analyze(tokens[at]) for places in best.values() for at in places)
        named = Naming(tuple(best), frozenset().union(*meant))
    return question.memo.put("naming", named)


def _least_share(token: str, at: int) -> float:
    """How much of the pages with a word must be of documents called so, for it to be a name: less, if it is written as
    one, with a capital inside the question, or is no word of the language."""
    if (token[0].isupper() and at > 0) or not is_a_word(normalize(token)):
        return _A_NAME_ALONE
    return _A_NAME if token[0].isupper() else 2.0  # which no word has


def without_names(question: Question, reader: Reader, ranked: Sequence[Ranked]) -> Reranking | None:
    """A name chooses the document; which of its pages come first is up to the rest of the question."""
    named = naming(question, reader)
    documents = tuple(dict.fromkeys(page.doc_id for page in ranked if page.doc_id in named.documents))
    rest = " ".join(word for word in question.wording.split() if not _is_name(word, named.words))
    if not documents or not analyze(rest):
        return None
    weights = {term.word: term.idf for term in reader.words.statistics(analyze(question.wording))}
    share = sum(weights.get(word, 0.0) for word in named.words) / (sum(weights.values()) or 1.0)
    return Reranking(rest, documents, named=share, meant=len(named.documents))


def _is_name(word: str, names: Collection[str]) -> bool:
    stems = analyze(word.removesuffix("'s").removesuffix("’s"))
    return bool(stems) and set(stems) <= set(names)


def _name_meant(word: str, reader: Reader) -> str | None:
    """The one word of names and titles that is a slip away from this one."""
    if is_a_word(word):
        return None
    from rapidfuzz.distance import OSA

    most = 2 if len(word) >= _LETTERS_FOR_TWO_EDITS else 1
    edits = {normalize(name): OSA.distance(word, normalize(name)) for name in _candidates(word, most, reader)}
    near = [name for name, distance in edits.items() if distance == min(edits.values()) <= most]
    return near[0] if len(near) == 1 else None  # between two names nobody can tell


def _candidates(word: str, most: int, reader: Reader) -> Iterator[str]:
    """Names that may be meant, as they are written. Their stems are stored, which are the beginnings of words."""
    from rapidfuzz.distance import OSA

    [own_stem] = analyze(word)
    for stem in reader.words.name_stems(word[0]):
        beginnings = (own_stem, *(word[: len(stem) + change] for change in (-1, 0, 1)))
        if min(OSA.distance(stem, beginning) for beginning in beginnings) <= most:
            names = [n for n in reader.words.written_names(stem, documents=_DOCUMENTS) if len(n) >= LEAST_LETTERS]
            if names and reader.words.share_of_named(stem) >= _A_NAME:
                yield from names


def is_a_word(word: str) -> bool:
    """Whether the vocabulary inside the package has it: some 20,000 words, names among them."""
    return f"\n{word}\n" in _vocabulary()


@cache
def _vocabulary() -> str:
    from research.encoders import VOCABULARY

    return VOCABULARY.read_text("utf-8")


# Documents that share a name: each of them may be meant. More, and none is.
_MOST_DOCUMENTS = 3
# Documents of the ranking that may be meant without being named.
_LOOKED_AT = 5
# How much of the weight of a question's words must name the document, by its name or its first pages.
_NAMED = 0.85
_HALF_NAMED = 0.5
_MOST_WORDS_OF_A_NAME = 12
_IN_A_ROW = 3  # words from here on must stand so; fewer do by chance
_PHRASE_PAGES = 1000
# "The paper", without a name: the best document, if its best page is so much better than that of the next.
_STANDS_OUT = 1.25
# A single word names a document if so much of its pages belong to documents named so.
_NAMES_A_DOCUMENT = 0.5


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
        if len(stems) > _MOST_WORDS_OF_A_NAME:  # a sentence, no name
            return cls({}, {}, len(stems))
        pairs = {first + second: {first, second} for first, second in pairwise(stems)}  # Best Buy: BESTBUY_2023.pdf
        named = reader.lookups.named_words([*stems, *pairs])
        held = {
            doc_id: {stem for word in found for stem in pairs.get(word, {word})} & set(stems)
            for doc_id, found in named.items()
        }
        used = set().union(*held.values())
        terms = reader.words.statistics(stems)
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
    first, second = [*best.values()][:2]
    standing_out = list(best)[:1] if first >= _STANDS_OUT * second > 0 else []
    return _of_that_kind(reader, asked.document) or talked_of or standing_out


def documents_called(reader: Reader, rest: Sequence[str], kinds: Sequence[str], ranking: Sequence[str]) -> list[str]:
    """The documents that have all of the words in their names, if one of them is used for hardly anything else."""
    names = Names.of(reader, rest)
    full = {doc_id: 1.0 for doc_id, held in names.held.items() if len(held) == len(names.words)}
    if names.unknown or not full or max(reader.words.share_of_named(word) for word in names.words) < _NAMES_A_DOCUMENT:
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
    return (
        bool(kinds) or len(words) > 1 or all(reader.words.share_of_named(word) >= _NAMES_A_DOCUMENT for word in words)
    )


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
    first = [front.page_id for front in reader.lookups.front_pages([doc_id]).get(doc_id, []) if front.words][:1]
    if names.unknown or not first:
        return False
    if len(names.words) >= _IN_A_ROW:
        return first[0] in reader.words.phrase_pages([list(names.words)], [doc_id], limit=_PHRASE_PAGES)
    held = reader.lookups.words_on(first, names.words).get(first[0], set())
    return any(reader.lookups.documents_with(word, most=2) == [doc_id] for word in held)


def _on_first_pages(reader: Reader, names: Names, doc_ids: Sequence[str]) -> dict[str, set[str]]:
    """Which of the words stand on a document's covers and the first page after them, where it says what it is."""
    fronts: dict[str, list[lookups.FrontPage]] = {}
    for doc_id, pages in reader.lookups.front_pages(doc_ids).items():
        covers = list(takewhile(lambda page: not page.has_text, pages))
        fronts[doc_id] = pages[: len(covers) + 1]
    on_page = reader.lookups.words_on([front.page_id for pages in fronts.values() for front in pages], names.words)
    return {
        doc_id: set().union(*(on_page.get(front.page_id, set()) for front in fronts.get(doc_id, [])))
        for doc_id in doc_ids
    }


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
    found = list(reader.lookups.named_words(stems))
    return found if most is None or len(found) <= most else []
