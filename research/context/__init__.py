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
    from research.context.fit import LEAST_BODY_TOKENS, Fitted, Plan, fit_items
    from research.context.injection.detector import packed_signals, signals_of, stored_signals
    from research.context.injection.headers import forges_header, headers_in
    from research.context.page import CUT_MARK, document_outline, join_page_breaks, outline_of, section_path
    from research.context.pipeline import (
        Context,
        Found,
        Sieve,
        Source,
        Stage,
        Thresholds,
        find,
        least_scores,
        notes_on,
        sifted,
    )
    from research.context.render import (
        AnswerView,
        CitedItems,
        CitedPages,
        Note,
        QuoteView,
        Shown,
        SourceView,
        answer_html,
        answer_view,
        coverage_notes,
        documents_note,
        header,
        item_of,
        page_name,
        research_context,
        source_of,
        standing,
    )
    from research.context.tokens import TokenCounter, open_table
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "page": "CUT_MARK document_outline join_page_breaks outline_of section_path",
            "": "tokens",
            "escape": (
                "DOCUMENTS_HEADING MEMORY_HEADING code_block code_span imitates_item label message name "
                "one_line page_text plain section"
            ),
            "fit": "Fitted LEAST_BODY_TOKENS Plan fit_items",
            "injection.detector": "packed_signals signals_of stored_signals",
            "injection.headers": "forges_header headers_in",
            "pipeline": "Context Found Thresholds Sieve Source Stage find least_scores notes_on sifted",
            "render": (
                "AnswerView CitedItems CitedPages Note QuoteView Shown SourceView answer_html answer_view "
                "coverage_notes documents_note header item_of page_name research_context source_of standing"
            ),
            "tokens": "TokenCounter open_table",
        },
    )
