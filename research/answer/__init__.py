"""Answers: quotes from the sources, and the check of a written answer's citations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.answer.answering import AnswerWriter, CheckedAnswer, ModelClient, OpenAIModel, open_model, prompt_for
    from research.answer.check import CheckedSentence
    from research.answer.claims.statement import Reading, read
    from research.answer.confidence import confidence_of, whole
    from research.answer.prompt import Prompt
    from research.answer.quotes import differing_figures, names_share, quotes_from
    from research.answer.written import WrittenAnswer, write_answer
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "answering": "AnswerWriter CheckedAnswer ModelClient OpenAIModel open_model prompt_for",
            "check": "CheckedSentence",
            "claims.statement": "Reading read",
            "confidence": "confidence_of whole",
            "prompt": "Prompt",
            "quotes": "differing_figures names_share quotes_from",
            "written": "WrittenAnswer write_answer",
        },
    )
