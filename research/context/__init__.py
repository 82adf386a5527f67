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
    from research.context.excerpt import CUT_MARK
    from research.context.fit import LEAST_BODY_TOKENS, Fitted, Plan, fit_items
    from research.context.html import grown, html_blocks, html_text
    from research.context.injection.detector import packed_signals, signals_of, stored_signals
    from research.context.injection.headers import forges_header, headers_in
    from research.context.page_breaks import join_page_breaks
    from research.context.pipeline import (
        Context,
        Found,
        Retrieved,
        Sieve,
        Source,
        Stage,
        Thresholds,
        find,
        labelled,
        sifted,
    )
    from research.context.render import CitedItems, CitedPages, header, item_of, research_context, source_of
    from research.context.sections import document_outline, outline_of, section_path
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
            "excerpt": "CUT_MARK",
            "fit": "Fitted LEAST_BODY_TOKENS Plan fit_items",
            "html": "grown html_blocks html_text",
            "injection.detector": "packed_signals signals_of stored_signals",
            "injection.headers": "forges_header headers_in",
            "page_breaks": "join_page_breaks",
            "pipeline": "Context Found Thresholds Retrieved Sieve Source Stage find labelled sifted",
            "render": "CitedItems CitedPages header item_of research_context source_of",
            "sections": "document_outline outline_of section_path",
            "tokens": "TokenCounter open_table",
        },
    )
