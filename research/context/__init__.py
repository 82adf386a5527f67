"""From what was found to what is shown: the one pipeline, the one fitter, the one escaper, and the renderers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.context.escape import (
        DOCUMENTS_HEADING,
        MEMORY_HEADING,
        code_block,
        code_span,
        imitates_item,
        label,
        message,
        name,
        one_line,
        page_text,
        plain,
        section,
    )
    from research.context.fit import CUT_MARK, LEAST_BODY_TOKENS, Fitted, Plan, fit_items
    from research.context.injection.detector import packed_signals, signals_of, stored_signals
    from research.context.injection.headers import forges_header, headers_in
    from research.context.outline import document_outline, outline_of
    from research.context.page_breaks import join_page_breaks
    from research.context.pipeline import Context, Found, Least, Sieve, Stage, find, sifted
    from research.context.render.cited import CitedPages, item_of, research_context, source_of
    from research.context.render.html import grown, html_blocks, html_text
    from research.context.render.mixed import CitedItems, header, mixed_context
    from research.context.sections import section_path
    from research.context.source import Retrieved, Source, labelled
    from research.context.tokens import TokenCounter, open_table
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "": "tokens",
            "escape": (
                "DOCUMENTS_HEADING MEMORY_HEADING code_block code_span imitates_item label message name "
                "one_line page_text plain section"
            ),
            "fit": "CUT_MARK Fitted LEAST_BODY_TOKENS Plan fit_items",
            "injection.detector": "packed_signals signals_of stored_signals",
            "injection.headers": "forges_header headers_in",
            "outline": "document_outline outline_of",
            "page_breaks": "join_page_breaks",
            "pipeline": "Context Found Least Sieve Stage find sifted",
            "render.cited": "CitedPages item_of research_context source_of",
            "render.html": "grown html_blocks html_text",
            "render.mixed": "CitedItems header mixed_context",
            "sections": "section_path",
            "source": "Retrieved Source labelled",
            "tokens": "TokenCounter open_table",
        },
    )
