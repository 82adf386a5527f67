"""Rewriters: what changes the text that is searched. Each has a name, can be switched off, and says what it did.

There are two kinds of moments. *Before* the search a rewriter may change the text that the legs get. *After* it, once
the plain question has chosen its documents, a rewriter may have the pages inside some of them ranked by a longer
question: the documents keep the places that the plain question gave them.

A rewriter is imported when a question holds a word that could concern it, so that other questions pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from research.errors import UsageError
from research.models import Rewrite
from research.search.legs import Ranked
from research.settings import REWRITERS

if TYPE_CHECKING:
    from research.store.catalog.reader import Reader


# Pieces of words, one of which a question must hold before the rewriter is loaded. A test holds them against what the
# rewriters look for.
FORM_HINTS = ("answer", "round", "respon", "reply", "state that", "state so", "say that", "say so", "json", "decimal")
FINANCE_HINTS = (
    "margin", "profit", "ebit", "ratio", "turn", "inventory", "payable", "outstanding", "cash", "asset", "equity",
    "capital", "debt", "liabilities", "interest", "tax", "capex", "pp&e", "payout", "revenue",
    "DSO", "DPO", "ROA", "ROE", "ROIC", "ROCE", "FCF", "PPE", "PPNE", "COGS",
)  # fmt: skip


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

    def may_expand(self, question: str) -> bool:
        """Whether `expand` is worth asking; where not, nothing beyond the best pages need be ranked."""
        if "finance" not in self.names:
            return False
        text = f"{question} {question.lower()}"
        return bool(self.vocabulary) or any(hint in text for hint in FINANCE_HINTS)

    def expand(self, question: str, reader: Reader, ranked: Sequence[Ranked]) -> Rewrite | None:
        """A longer question by which to rank the pages of some of the documents found, best page first."""
        if not self.may_expand(question):
            return None
        from research.search.rewriters.finance import expand

        return expand(question, reader, ranked, self.vocabulary)

    def merge(self, plain: Sequence[Ranked], expanded: Sequence[Ranked], rewrite: Rewrite) -> list[Ranked]:
        """The plain ranking, in which the pages of the rewrite's documents stand in the order of the expanded one."""
        from research.search.rewriters.finance import merge

        return merge(plain, expanded, rewrite.documents)


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

    unknown = unknown_words(reader, question)
    if not unknown:
        return None
    from research.search.rewriters.names import with_corrections

    return with_corrections(question, reader, unknown)


_BEFORE: dict[str, Callable[[str, Reader], Rewrite | None]] = {"answer-form": _answer_form, "names": _names}
