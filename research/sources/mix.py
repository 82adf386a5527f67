"""Several sources in one cited answer: what the pipeline is given beside them.

    rank → each thing once, and what two sources say alike once → pages get their passages → fit → numbered citations

Confidence is the likelier of two: that a page answers, judged as always, and the calibrated score of the best item that
is no page. Quotes come from pages alone: only they have passages with a place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from research.answer.confidence import confidence_of
from research.context.injection.item_headers import forges_item_header
from research.context.pipeline import Context, PassageFinder, Stage
from research.context.render.mixed import CitedItems, mixed_context
from research.models import Confidence, Coverage, Item, Question, ResearchContext
from research.search.calibration import FLOOR
from research.sources.assembler import checked_types
from research.sources.disarm import code_block, code_lines
from research.sources.duplicates import without_duplicates
from research.sources.items import ItemsSource
from research.sources.records import Candidate, ContextItem

if TYPE_CHECKING:
    from research.sources.base import Source

_FORGED = "forged_header"  # as the detector calls it
_FILES = 8  # of a commit that are named


@dataclass(frozen=True, slots=True)
class Mix:
    """What the pipeline takes for several sources."""

    types: tuple[str, ...]
    sources: list[Source]

    @property
    def renderer(self) -> CitedItems:
        return CitedItems()

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (_likely, unique, dressed) if len(self.types) > 1 else (unique, dressed)

    def passages(self, find: PassageFinder) -> PassageFinder:
        """The finder of passages on pages, for pages among other things."""

        def passages(question: Question, items: list[Item]) -> list[Item]:
            pages = [item for item in items if item.ref.kind == "page"]
            found = {str(item.ref): item for item in find(question, pages)} if pages else {}
            return [found.get(str(item.ref), item) for item in items]

        return passages

    def judge(self, question: Question, items: Sequence[Item], coverage: Coverage) -> Confidence:
        of_pages = confidence_of(question, [item for item in items if item.ref.kind == "page"], coverage)
        best = max((item.score for item in items if item.ref.kind != "page"), default=0.0)
        return max(of_pages, Confidence.of(best), key=lambda each: each.value)

    def rendered(self, context: Context, max_tokens: int) -> ResearchContext:
        return mixed_context(context, max_tokens, self.types)


def types_of(given: Sequence[str]) -> tuple[str, ...]:
    """Each once, documents first: what they cannot see is what an answer's coverage tells. Raises
    InvalidContextTypeError."""
    return tuple(sorted(checked_types(given), key=lambda name: name != "documents"))


def sources_of(
    types: Sequence[str],
    documents: Callable[[], Source],
    memories: Callable[[], Source],
    items: Callable[[type[Any]], Source],
) -> list[Source]:
    """The sources of these types; nothing of another one is loaded."""
    found = {"documents": documents, "memories": memories}
    return [found[name]() if name in found else items(_item_source(name)) for name in types]


def _item_source(name: str) -> type[ItemsSource]:
    from importlib import import_module

    made: type[ItemsSource] = getattr(import_module(f"research.sources.{name}"), f"{name.capitalize()}Source")
    return made


def unique(items: list[Item]) -> list[Item]:
    """Without what another source says alike with a higher score. Code and a commit of one file are two things here:
    who asks for both wants the thing and its history."""
    candidates = [_candidate(item) for item in items]
    kept = {id(each.item) for each in without_duplicates(candidates, same_file=False)}
    return [item for item, each in zip(items, candidates, strict=True) if id(each.item) in kept]


def dressed(items: list[Item]) -> list[Item]:
    """The items as they are shown: code in a block, a commit with its author and files; what imitates a header of an
    item is marked."""
    return [_marked(_dressed(item)) for item in items]


def _likely(items: list[Item]) -> list[Item]:
    return [item for item in items if item.score >= FLOOR]


def _dressed(item: Item) -> Item:
    facts = item.metadata
    if item.ref.kind == "code":
        return replace(item, text=code_block(code_lines(item.text), str(facts.get("language", ""))))
    if item.ref.kind == "commit":
        files = str(facts.get("files", "")).split("\n")
        named = ", ".join(files[:_FILES]) + (", …" if len(files) > _FILES else "")
        about = [f"{name}: {told}" for name, told in (("Author", facts.get("author")), ("Files", named)) if told]
        return replace(item, text="\n\n".join(filter(None, (item.text, "\n".join(about)))))
    return item


def _marked(item: Item) -> Item:
    if _FORGED in item.signals or not forges_item_header(f"{item.text}\n\n{item.title}"):
        return item
    return replace(item, signals=(_FORGED, *item.signals))


def _candidate(item: Item) -> Candidate:
    source = "document" if item.ref.kind == "page" else item.ref.kind
    shown = ContextItem(source, "", item.score, {}, score=item.score, ref=str(item.ref))
    told = {"experience": item.ref.key, "value": str(item.metadata.get("experience", ""))}
    return Candidate(shown, item.text, experience=told.get(source, ""))
