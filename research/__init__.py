"""ctx as a library: open an index, ask it, get cited context.

    from research import Index

    with Index.open(".ctx") as index:
        context = index.ask("What caused the crisis?", max_tokens=4000)

`ingest.ingest` fills an index. ChromaClient, SearchEngine and ContextBuilder are the contract of seed 004.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

__version__ = "0.2.0"

if TYPE_CHECKING:
    from research.answer import AnswerWriter, CheckedAnswer, ModelClient, WrittenAnswer, open_model, write_answer
    from research.contract import ContextBuilder, SearchEngine, SearchResult
    from research.errors import (
        BusyError,
        ContextAssemblyError,
        ContextTooLongError,
        CtxError,
        DocumentError,
        EncoderNotAllowed,
        EncoderUnavailable,
        IndexUnusableError,
        InvalidContextTypeError,
        ModelBusyError,
        ModelError,
        ModelProtocolError,
        ModelRefusedError,
        ModelTimeoutError,
        ModelUnavailableError,
        NewerIndexError,
        NothingFoundError,
        OcrError,
        OlderIndexError,
        PackageRequestError,
        PolicyError,
        ProblemError,
        RedactionError,
        SomaClientError,
        SomeFilesFailedError,
        StoppedError,
        TurnTooLongError,
        UntrustedError,
        UsageError,
    )
    from research.filters import Filters
    from research.index import Index
    from research.models import Coverage, LegScore, ResearchContext, SourceDocument
    from research.request import AskRequest
    from research.sources import ContextAssembler, FormattedContext
    from research.store import ChromaClient
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "answer": "AnswerWriter CheckedAnswer ModelClient WrittenAnswer open_model write_answer",
            "contract": "ContextBuilder SearchEngine SearchResult",
            "errors": (
                "BusyError ContextAssemblyError ContextTooLongError CtxError DocumentError "
                "EncoderNotAllowed EncoderUnavailable IndexUnusableError InvalidContextTypeError "
                "ModelBusyError ModelError ModelProtocolError ModelRefusedError ModelTimeoutError "
                "ModelUnavailableError NewerIndexError NothingFoundError OcrError OlderIndexError PackageRequestError "
                "PolicyError ProblemError RedactionError SomaClientError SomeFilesFailedError "
                "StoppedError TurnTooLongError UntrustedError UsageError"
            ),
            "filters": "Filters",
            "index": "Index",
            "models": "Coverage LegScore ResearchContext SourceDocument",
            "request": "AskRequest",
            "sources": "ContextAssembler FormattedContext",
            "store": "ChromaClient",
        },
    )
