"""Numbered citations: the header, the text under it, keeping the two apart, and the context that the contract has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from research.context.escape import cited, name
from research.models import (
    VISUAL_MATCH,
    DroppedSource,
    Item,
    Ref,
    ResearchContext,
    SourceDocument,
    page_link,
    section_of,
    withheld_of,
)

if TYPE_CHECKING:
    from research.context.pipeline import Context


class CitedPages:
    """`[Document 1: crisis.pdf, Page 3]` above each page's text."""

    def joint(self, before: Item | None, item: Item) -> str:
        return "\n\n" if before else ""

    def entry(self, item: Item, number: int) -> str:
        return f"{self.header(item, number)}\n{self.body(item.text)}"

    def end(self, items: Sequence[Item]) -> str:
        return ""

    def header(self, item: Item, number: int) -> str:
        return f"[Document {number}: {name(str(item.metadata['filename']))}, Page {item.ref.part}]"

    def body(self, text: str) -> str:
        return cited(text)


def research_context(context: Context, max_tokens: int) -> ResearchContext:
    """What the contract's callers get."""
    fitted, found = context.fitted, context.found
    return ResearchContext(
        formatted_text=fitted.text,
        sources=[source_of(item) for item in fitted.items],
        total_tokens=fitted.tokens,
        truncated=fitted.truncated,
        query=found.question.text,
        max_tokens=max_tokens,
        dropped=[dropped_of(item) for item in fitted.dropped],
        coverage=found.coverage,
        timings=found.timings,
        searched=found.searched,
        rewrites=found.rewrites,
        answered_by=found.answered_by,
        confidence=found.confidence,
    )


def source_of(item: Item) -> SourceDocument:
    facts = item.metadata
    section_path, parent_heading = section_of(item)
    return SourceDocument(
        doc_id=item.ref.key,
        filename=str(facts["filename"]),
        page=int(item.ref.part),
        extension=str(facts["extension"]),
        thumbnail_path=str(facts["thumb_path"]) or None,
        image_path=str(facts["image_path"]) or None,
        timestamp=item.created_at,
        section_path=section_path or None,
        parent_heading=parent_heading or None,
        markdown_content=item.text,
        relevance_score=item.score,
        page_label=str(facts["page_label"]),
        source_path=str(facts["source_path"]),
        title=item.title,
        cut=item.cut,
        ocr=bool(facts["ocr"]),
        ocr_engine=str(facts["ocr_engine"]),
        visual_match=VISUAL_MATCH in item.labels,
        regions=item.regions,
        legs=dict(item.legs),
        suspicious=list(item.signals),
        ref=str(item.ref),
        raw_score=item.raw_score,
        link=page_link(str(facts["source_path"]), int(item.ref.part)),
        file_id=str(facts.get("file_id", "")),
        passages=list(item.passages),
        pages=list(item.pages) or [int(item.ref.part)],
        withheld=withheld_of(item),
        structure=item.structure if item.structure and item.structure.text == item.text else None,  # of what is shown
    )


def dropped_of(item: Item) -> DroppedSource:
    facts, page = item.metadata, int(item.ref.part)
    link = page_link(str(facts["source_path"]), page)
    return DroppedSource(item.ref.key, str(facts["filename"]), page, item.score, str(item.ref), link)


def item_of(source: SourceDocument) -> Item:
    """A source of the contract as far as a renderer and the budget need it."""
    return Item(
        ref=Ref("page", source.doc_id, str(source.page)),
        title=source.title,
        text=source.markdown_content,
        score=source.relevance_score,
        metadata={"filename": source.filename},
        cut=source.cut,
    )
