"""Several sources in one cited answer: what the pipeline is given beside them.

    rank → each thing once, and what two sources say alike once → pages get their passages → fit → numbered citations

Confidence is about the first quote: of a page it is as documents judge them, of anything else the calibrated score of
what is quoted, by how much of what that has of the question stands in the quote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from research.answer import confidence_of, quotes_from
from research.context import CitedItems, Context, Stage, code_block, imitates_item, research_context
from research.models import Confidence, Coverage, Item, Question, Quote, ResearchContext
from research.sources.assembler import checked_types
from research.sources.sections import files_of
from research.units import Structure, Unit

if TYPE_CHECKING:
    from research.context import Source

_FORGED = "forged_header"  # as the detector calls it
_FILES = 8  # of a commit that are named


@dataclass(slots=True)
class Mix:
    """What the pipeline takes for one question to several sources."""

    types: tuple[str, ...]
    sources: list[Source]
    asked: Question = field(default_factory=lambda: Question(""))  # as it was judged; its notes are doubts about pages
    documents: Confidence = field(default_factory=lambda: Confidence.of(0.0))  # of the pages alone
    sure: Confidence = field(default_factory=lambda: Confidence.of(0.0))  # of all that was found

    @property
    def renderer(self) -> CitedItems:
        return CitedItems()

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (dressed,)

    def judge(self, question: Question, items: Sequence[Item], coverage: Coverage) -> Confidence:
        """How sure the best quote is; where there is none, the best that nobody has forged."""
        self.asked = replace(question, notes=[])
        self.documents = confidence_of(self.asked, [item for item in items if item.ref.kind == "page"], coverage)
        others = (item.score for item in items if item.ref.kind != "page" and not item.signals)
        self.sure = Confidence.of(max(self.documents.value, *others, 0.0))
        self.sure = self.quoted(items, items)[1]
        return self.sure

    def quoted(self, shown: Sequence[Item], whole: Sequence[Item]) -> tuple[list[Quote], Confidence, list[str]]:
        """The quotes, how sure the first of them is, and doubts, if that is of a page."""
        quotes = quotes_from(shown, whole, self.asked.wording, self.documents.value)
        other = bool(quotes) and not quotes[0].page
        sure = Confidence.of(quotes[0].score) if other else self.documents if quotes else self.sure
        return quotes, sure, [] if other and sure.level != "none" else self.asked.notes

    def rendered(self, context: Context, max_tokens: int) -> ResearchContext:
        return research_context(context, max_tokens, self.types)


def types_of(given: Sequence[str]) -> tuple[str, ...]:
    """Each once, documents first: what they cannot see is what an answer's coverage tells. Raises
    InvalidContextTypeError."""
    return tuple(sorted(checked_types(given), key=lambda name: name != "documents"))


def dressed(items: list[Item]) -> list[Item]:
    """The items as they are shown: code in a block, a commit with its author and files; what imitates a header of an
    item is marked."""
    return [
        replace(item, signals=(_FORGED, *item.signals))
        if _FORGED not in item.signals and imitates_item(f"{item.text}\n\n{item.title}")
        else item
        for item in map(_dressed, items)
    ]


def _dressed(item: Item) -> Item:
    facts = item.metadata
    if item.ref.kind == "code":
        return replace(item, text=code_block(item.text, str(facts.get("language", ""))))
    if item.ref.kind == "commit":
        files = files_of(item)
        named = ", ".join(files[:_FILES]) + (", …" if len(files) > _FILES else "")
        about = [f"{name}: {told}" for name, told in (("Author", facts.get("author")), ("Files", named)) if told]
        units, text = item.units, "\n\n".join(filter(None, (item.text, "\n".join(about))))
        if units and len(text) > len(item.text):  # what stands below the message is of it, and no answer
            units = [*units, Unit(len(item.text) + 2, len(text), "heading", units[-1].block + 1, units[-1].section)]
        return replace(item, text=text, structure=Structure(text, units=units))
    return item
