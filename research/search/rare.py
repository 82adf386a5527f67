"""What a page is due for a rare word of the question, however long the page is.

BM25 weighs a word by the length of its page, to rank the pages that hold it against each other. Where only a few do
there is nothing to rank, but the sum with other legs still feels it: among near-empty pages an ordinary one is ten
times as long as the average, its only word of that kind counts a tenth, and pages whose cosine with a single word says
nothing stand before it. So a word that few pages hold counts on each of them at least

    min(1, 2 · share of the question's weight) / √pages · share of the pages without it

in full where it is half of the question, next to nothing where it is one of ten: a long question holds words that are
rare by chance. In a small index few pages are not rare. What is written as one (2024-03-17, bug_1549) is one word,
though the index holds its pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from research.store.catalog import counts
from research.store.catalog.catalog import Catalog
from research.store.fulltext import search
from research.store.fulltext.analyzer import words
from research.store.fulltext.search import Floors, Term

# On more pages the floor is below what BM25 gives a page of average length.
_FEW = 10
# Longer ones are sentences in a script without blanks, not names.
_MOST_PIECES = 8


def floors(catalog: Catalog, question: str, terms: Sequence[Term]) -> Floors:
    """The least that words of the question count on the few pages that hold them."""
    known = {term.word: term for term in terms if term.pages}
    most, total = sum(term.idf for term in terms), counts.pages(catalog)
    found: Floors = {}
    for written in _as_written(question, known):
        pages = search.few_pages(catalog, written, most=_FEW)
        if not pages:
            continue
        share = sum(known[word].idf for word in set(written)) / most
        floor = min(1.0, 2 * share) / len(pages) ** 0.5 * (1 - len(pages) / total)
        for word in set(written):
            least = found.setdefault(word, {})
            least.update((page_id, max(floor, least.get(page_id, 0.0))) for page_id in pages)
    return found


def _as_written(question: str, known: dict[str, Term]) -> Iterator[list[str]]:
    """The words that may be rare: alone, and joined as the question has them."""
    yield from ([term.word] for term in known.values() if term.pages <= _FEW)
    for token in dict.fromkeys(question.split()):
        pieces = words(token)
        if 1 < len(pieces) <= _MOST_PIECES and all(piece in known for piece in pieces):
            yield pieces
