"""ctx as a library: open an index, ask it, get cited context.

    from research import Index

    with Index.open(".ctx") as index:
        context = index.ask("What caused the crisis?", max_tokens=4000)

`ingest.ingest` fills an index. ChromaClient, SearchEngine and ContextBuilder are the contract of seed 004.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from research.answer.answering import AnswerWriter, CheckedAnswer
    from research.answer.model.client import ModelClient
    from research.answer.model.registry import open_model
    from research.answer.written import WrittenAnswer, write_answer
    from research.contract import ContextBuilder, SearchEngine, SearchResult
    from research.errors import (
        AddressError,
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
        PackageRequestError,
        PolicyError,
        ProblemError,
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
    from research.sources.assembler import ContextAssembler
    from research.sources.records import FormattedContext
    from research.store.client import ChromaClient

__version__ = "0.1.0"

_HOMES = {
    "AddressError": "research.errors",
    "AnswerWriter": "research.answer.answering",
    "BusyError": "research.errors",
    "CheckedAnswer": "research.answer.answering",
    "ChromaClient": "research.store.client",
    "ContextAssembler": "research.sources.assembler",
    "ContextAssemblyError": "research.errors",
    "ContextBuilder": "research.contract",
    "ContextTooLongError": "research.errors",
    "Coverage": "research.models",
    "CtxError": "research.errors",
    "DocumentError": "research.errors",
    "EncoderNotAllowed": "research.errors",
    "EncoderUnavailable": "research.errors",
    "AskRequest": "research.request",
    "Filters": "research.filters",
    "FormattedContext": "research.sources.records",
    "Index": "research.index",
    "IndexUnusableError": "research.errors",
    "InvalidContextTypeError": "research.errors",
    "LegScore": "research.models",
    "ModelBusyError": "research.errors",
    "ModelClient": "research.answer.model.client",
    "ModelError": "research.errors",
    "ModelProtocolError": "research.errors",
    "ModelRefusedError": "research.errors",
    "ModelTimeoutError": "research.errors",
    "ModelUnavailableError": "research.errors",
    "NewerIndexError": "research.errors",
    "NothingFoundError": "research.errors",
    "OcrError": "research.errors",
    "PackageRequestError": "research.errors",
    "PolicyError": "research.errors",
    "ProblemError": "research.errors",
    "RedactionError": "research.errors",
    "ResearchContext": "research.models",
    "SearchEngine": "research.contract",
    "SearchResult": "research.contract",
    "SomaClientError": "research.errors",
    "SomeFilesFailedError": "research.errors",
    "SourceDocument": "research.models",
    "StoppedError": "research.errors",
    "TurnTooLongError": "research.errors",
    "UntrustedError": "research.errors",
    "UsageError": "research.errors",
    "WrittenAnswer": "research.answer.written",
    "open_model": "research.answer.model.registry",
    "write_answer": "research.answer.written",
}

__all__ = [
    "AddressError",
    "AnswerWriter",
    "AskRequest",
    "BusyError",
    "CheckedAnswer",
    "ChromaClient",
    "ContextAssembler",
    "ContextAssemblyError",
    "ContextBuilder",
    "ContextTooLongError",
    "Coverage",
    "CtxError",
    "DocumentError",
    "EncoderNotAllowed",
    "EncoderUnavailable",
    "Filters",
    "FormattedContext",
    "Index",
    "IndexUnusableError",
    "InvalidContextTypeError",
    "LegScore",
    "ModelBusyError",
    "ModelClient",
    "ModelError",
    "ModelProtocolError",
    "ModelRefusedError",
    "ModelTimeoutError",
    "ModelUnavailableError",
    "NewerIndexError",
    "NothingFoundError",
    "OcrError",
    "PackageRequestError",
    "PolicyError",
    "ProblemError",
    "RedactionError",
    "ResearchContext",
    "SearchEngine",
    "SearchResult",
    "SomaClientError",
    "SomeFilesFailedError",
    "SourceDocument",
    "StoppedError",
    "TurnTooLongError",
    "UntrustedError",
    "UsageError",
    "WrittenAnswer",
    "__version__",
    "open_model",
    "write_answer",
]


def __getattr__(name: str) -> Any:
    """Load a name's module with its first use, so that `import research` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'research' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
