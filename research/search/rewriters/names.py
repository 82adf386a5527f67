"""Finds the document whose name is misspelt: "Neflix 2015" is searched with "Netflix" beside it.

Only words that stand on no page and in no name are looked at, and only words of file names and titles come into
question for them, of these only such as are names: a word that stands on other documents' pages as well ("health")
tells no document apart. A word of the language is no typing error, whatever name it looks like. What was written stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from research.models import Rewrite
from research.search.legs import Ranked, Reranking
from research.search.rewriters.base import LEAST_LETTERS
from research.store.catalog.reader import Reader
from research.store.fulltext.analyzer import analyze, normalize
from research.store.fulltext.search import name_matches, name_stems, share_of_named, written_names

NAME = "names"

_LETTERS_FOR_TWO_EDITS = 8
# A pasted text may hold hundreds of words that no page has; a question has one or two.
_MOST_WORDS = 4
# The share of a word's pages that are in documents named so, from which on it is a name.
_A_NAME = 0.8
# Whose pages are scored again. A name that more documents share says little.
_DOCUMENTS_RANKED = 5
# Names that share a stem are written in few ways.
_DOCUMENTS = 20


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
    from research.encoders.minilm.files import VOCABULARY

    return f"\n{word}\n" in VOCABULARY.read_text("utf-8")
