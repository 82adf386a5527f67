"""Rewriters: what changes the text that is searched. Each has a name, can be switched off, and says what it did.

A rewriter may change the text that the legs get (`before`). Once that has been searched, it may have the pages inside
some of the documents found ranked by another text (`rerankings`): they share the places that their document has, so no
other document moves.

A rewriter is imported when a question holds a word that could concern it, so that other questions pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from research.errors import UsageError
from research.models import Question, Rewrite
from research.search.legs import Ranked, Reranking
from research.settings import REWRITERS

if TYPE_CHECKING:
    from research.store.catalog.reader import Reader


# Up to so many first pages of a document stand out, if the score falls by so much after them. On filings, where nearly
# all answers are in the statements, the longer question agrees about such pages.
_STANDING_OUT = 3
_GAP = 0.03
# So many pages of the other text may come before the best one kept; then they take turns.
_AHEAD = 5

# Shorter words are a letter away from too many others to be a slip of a name.
LEAST_LETTERS = 5

# Pieces of words, one of which a question must hold before the rewriter is loaded. A test holds them against what the
# rewriters look for.
FORM_HINTS = ("answer", "round", "respon", "reply", "state that", "state so", "say that", "say so", "json", "decimal")
FINANCE_HINTS = (
    "margin", "profit", "ebit", "ratio", "turn", "inventory", "payable", "outstanding", "cash", "asset", "equity",
    "capital", "debt", "liabilities", "interest", "tax", "capex", "pp&e", "payout", "revenue",
    "DSO", "DPO", "ROA", "ROE", "ROIC", "ROCE", "FCF", "PPE", "PPNE", "COGS",
    "top line", "bottom line",
)  # fmt: skip


COLLECTION_HINTS = (
    "docu", "docs", "doku", "paper", "papi", "file", "fich", "datei", "archiv", "arquiv", "bestand", "pdf", "repor",
    "rappor", "relat", "relaz", "berich", "inform", "artic", "artik", "artíc", "artig", "book", "boek", "buch", "büch",
    "livr", "libr", "manua", "manue", "handb", "handl", "stud", "étud", "etud", "publi", "pubbli",
    "testi", "sourc", "quell", "letter",
    "presenta", "contract", "preprint", "thes", "filing", "unterlag", "aufs", "schrift", "text", "doc",
    "文", "論", "论", "报", "資", "资", "書", "レポ", "ファイ", "報",
)  # fmt: skip


# A question that begins so asks for something else.
_NOT_FOR_DOCUMENTS = (
    "how ",
    "why ",
    "when ",
    "who ",
    "wie ",
    "warum ",
    "wann ",
    "wer ",
    "comment ",
    "pourquoi ",
    "hoe ",
)


def may_ask_for_documents(question: str) -> bool:
    """Told quickly, before what reads such questions is loaded."""
    lower = question.lower()
    return not lower.startswith(_NOT_FOR_DOCUMENTS) and any(hint in lower for hint in COLLECTION_HINTS)


def may_name_a_ratio(question: str, own_tables: Sequence[str] = ()) -> bool:
    """Told quickly, before the tables are read."""
    text = f"{question} {question.lower()}"
    return bool(own_tables) or any(hint in text for hint in FINANCE_HINTS)


@dataclass(frozen=True, slots=True)
class Rewriters:
    """The rewriters that are switched on, in their order. `vocabulary` names the user's own tables."""

    names: Sequence[str] = ()
    vocabulary: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        check_names(self.names)

    def before(self, question: str, reader: Reader) -> tuple[str, list[Rewrite]]:
        """The text to search, and what was done to make it of the question."""
        rewrites = []
        for name in self.names:
            done = _BEFORE[name](question, reader) if name in _BEFORE else None
            if done is not None and done.after != question:
                rewrites.append(done)
                question = done.after
        return question, rewrites

    def rerankings(
        self, question: Question, rewrites: Sequence[Rewrite], reader: Reader, ranked: Sequence[Ranked]
    ) -> list[Reranking]:
        """What to rank anew after the question was searched by the text that `rewrites` made. Best page first."""
        text = question.wording
        found: list[Reranking | None] = []
        corrected = next((done for done in rewrites if done.name == "names"), None)
        if corrected is not None:
            from research.search.rewriters.names import as_written

            found.append(as_written(corrected, reader, ranked))
        elif "names" in self.names:
            from research.search.rewriters.names import without_names

            found.append(without_names(question, reader, ranked))
        if "finance" in self.names and may_name_a_ratio(text, self.vocabulary):
            from research.search.rewriters.finance import expand

            named = next((each for each in found if each is not None and each.named), None)
            if named is not None:  # it has chosen the documents, and tells their lines no better apart
                text, ranked = named.question, [page for page in ranked if page.doc_id in named.documents]
            found.append(expand(text, reader, ranked, self.vocabulary))
        return [reranking for reranking in found if reranking is not None]

    def merge(self, plain: Sequence[Ranked], other: Sequence[Ranked], reranking: Reranking) -> list[Ranked]:
        """The plain ranking, in which the pages of each document reranked stand in the order of the other one.

        A page takes the score of the place it comes to. Pages that only the other text found push the last ones of
        their document to the end. Where nothing of the plain ranking is to be kept, the documents share their places:
        which of two editions comes first is then up to the other text, too.
        """
        if reranking.named:
            return _as_named(plain, other, reranking)
        if not reranking.keep_best:
            return _shared_places(plain, other, frozenset(reranking.documents))
        places = {doc_id: iter(_order(doc_id, plain, other)) for doc_id in reranking.documents}
        merged = [
            Ranked(next(places[page.doc_id]), page.doc_id, page.score) if page.doc_id in places else page
            for page in plain
        ]
        least = min((page.score for page in plain), default=0.0)
        return merged + [Ranked(page_id, doc_id, least) for doc_id, rest in places.items() for page_id in rest]


def _as_named(plain: Sequence[Ranked], other: Sequence[Ranked], reranking: Reranking) -> list[Ranked]:
    """Every page of a document that the question names counts as if it held the name, and by the question without it:
    the more, the more of the question is the name and the fewer documents it names. So pages are told apart by what is
    asked, and not by how often they name their document."""
    share = min(1.0, 2 * reranking.named / reranking.meant)
    scores = {page.page_id: reranking.named + (1 - reranking.named) * page.score for page in other}
    mixed = (
        page._replace(score=(1 - share) * page.score + share * scores.get(page.page_id, page.score)) for page in plain
    )
    return sorted(mixed, key=lambda page: -round(page.score, 6))


def _shared_places(plain: Sequence[Ranked], other: Sequence[Ranked], documents: frozenset[str]) -> list[Ranked]:
    """The plain ranking, in which the pages of these documents stand in the order of the other one."""
    own = [page for page in [*other, *plain] if page.doc_id in documents]
    order = iter({page.page_id: page.doc_id for page in own}.items())
    merged = [Ranked(*next(order), page.score) if page.doc_id in documents else page for page in plain]
    least = min((page.score for page in plain), default=0.0)
    return merged + [Ranked(page_id, doc_id, least) for page_id, doc_id in order]


def _order(doc_id: str, plain: Sequence[Ranked], other: Sequence[Ranked]) -> list[int]:
    """The pages of one document: those that stand out, then by the better of two ranks, the plain one with a delay."""
    own = [page for page in plain if page.doc_id == doc_id]
    fall = {n: own[n - 1].score - own[n].score for n in range(1, min(len(own), _STANDING_OUT + 1))}
    staying = max((n for n, gap in fall.items() if gap >= _GAP), default=0)
    rank = {page.page_id: n + _AHEAD - 0.5 for n, page in enumerate(own, start=1)}
    found = (page.page_id for page in other if page.doc_id == doc_id)
    rank.update((page_id, min(n, rank.get(page_id, n))) for n, page_id in enumerate(found, start=1))
    rank.update((page.page_id, n - staying) for n, page in enumerate(own[:staying]))
    return sorted(rank, key=lambda page_id: rank[page_id])


def check_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in REWRITERS:
            raise UsageError(f"unknown rewriter {name!r}", hint="known rewriters: " + ", ".join(REWRITERS))


def _answer_form(question: str, reader: Reader) -> Rewrite | None:
    lower = question.lower()
    if not any(hint in lower for hint in FORM_HINTS):
        return None
    from research.search.rewriters.answer_form import without_form

    return without_form(question)


def _names(question: str, reader: Reader) -> Rewrite | None:
    from research.store.fulltext.search import unknown_words

    unknown = [word for word in unknown_words(reader, question) if len(word) >= LEAST_LETTERS]
    if not unknown:
        return None
    from research.search.rewriters.names import with_corrections

    return with_corrections(question, reader, unknown)


def _collection(question: str, reader: Reader) -> Rewrite | None:
    if not may_ask_for_documents(question):
        return None
    from research.search.rewriters.collection import topic_alone

    return topic_alone(question)


_BEFORE: dict[str, Callable[[str, Reader], Rewrite | None]] = {
    "answer-form": _answer_form,
    "collection": _collection,
    "names": _names,
}
