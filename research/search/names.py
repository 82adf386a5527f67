"""Names of documents in a question: one that is misspelt is found, and one that is named weighs nothing inside it.

"Neflix 2015" is searched with "Netflix" beside it.

Only words that stand on no page and in no name are looked at, and only words of file names and titles come into
question for them, of these only such as are names: a word that stands on other documents' pages as well ("health")
tells no document apart. A word of the language is no typing error, whatever name it looks like. What was written stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from research.models import Question, Rewrite
from research.search.legs import Ranked, Reranking
from research.search.rewriters import LEAST_LETTERS
from research.store import (
    Reader,
    analyze,
    name_matches,
    name_stems,
    named_words,
    normalize,
    share_of_named,
    term_statistics,
    written_names,
)

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
    named = name_matches(reader, sorted(added))
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
    held = named_words(reader, looked_up) if looked_up else {}
    alone = {
        at
        for at, token in enumerate(tokens)
        if stems[at]
        and any(stems[at] <= words for words in held.values())
        and all(share_of_named(reader, stem) >= _least_share(token, at) for stem in stems[at])
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
    weights = {term.word: term.idf for term in term_statistics(reader, analyze(question.wording))}
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
    for stem in name_stems(reader, word[0]):
        beginnings = (own_stem, *(word[: len(stem) + change] for change in (-1, 0, 1)))
        if min(OSA.distance(stem, beginning) for beginning in beginnings) <= most:
            names = [n for n in written_names(reader, stem, documents=_DOCUMENTS) if len(n) >= LEAST_LETTERS]
            if names and share_of_named(reader, stem) >= _A_NAME:
                yield from names


def is_a_word(word: str) -> bool:
    """Whether the vocabulary inside the package has it: some 20,000 words, names among them."""
    from research.encoders import VOCABULARY

    return f"\n{word}\n" in VOCABULARY.read_text("utf-8")
