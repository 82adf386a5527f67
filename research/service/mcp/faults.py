"""What an agent is told when a call fails: what is wrong, and what to call next.

Errors of ours are written for whoever types commands, so their hints are put into the words of the tools. What may name
a place on the machine or quote an exception is left out; the log has it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from research.errors import (
    AddressError,
    BusyError,
    CtxError,
    EncoderUnavailable,
    IndexUnusableError,
    NewerIndexError,
    NothingFoundError,
    UntrustedError,
)
from research.service.mcp.budget import cut_error

LOOK = "call list_documents to see what there is"
DOCTOR = "try again; if it stays so, ask the user to run: ctx doctor"

_IN_TOOLS = (
    (re.compile(r"see (?:them all|the documents) with: ctx list"), "call list_documents to see them all"),
    (re.compile(r"see where they lie with: ctx list\b.*"), LOOK),
    (re.compile(r"see(?: what is there)?: ctx list"), LOOK),
    (re.compile(r"see the tags with: ctx tag"), "list_documents shows which tags there are"),
    (re.compile(r"\bthe filter doc\b"), "documents"),
    (
        re.compile(r"\b(?:draw it|finish|try again) with: ctx ingest PATH(?: --retry)?"),
        "ask the user to ingest it again",
    ),
)
# Absolute paths, but for their last name. An agent has no use for the rest, and it may be somebody's.
_PATH = re.compile(r"(?<![\w.:/])/(?:[^\s/'\"]+/)+(?=[^\s/'\"])")
_UNSAID: tuple[tuple[type[CtxError], str, str], ...] = (
    (NewerIndexError, "the index was written by a newer ctx", "ask the user to upgrade ctx"),
    (IndexUnusableError, "the index cannot be used now", DOCTOR),
    (UntrustedError, "the index is not trusted", "ask the user to run: ctx status"),
    (EncoderUnavailable, "a model that the index needs cannot run", "ask the user to run: ctx doctor"),
    (AddressError, "a model that the index needs does not answer", DOCTOR),
)


@dataclass(frozen=True, slots=True)
class Words:
    """How errors are told: by the words of the tools there are."""

    can_ingest: bool = False

    def empty(self) -> NothingFoundError:
        """Of an index without documents. Where it is says nothing to an agent."""
        how = "add documents with the tool ingest" if self.can_ingest else "ask the user to run: ctx ingest PATH"
        return NothingFoundError("the index holds no documents yet", hint=how)

    def told(self, error: BaseException) -> str:
        """One or two sentences."""
        if not isinstance(error, CtxError):
            return cut_error(
                f"Something went wrong inside ctx ({type(error).__name__}). This is no fault of the call; {DOCTOR}."
            )
        message, hint = next(((said, step) for kind, said, step in _UNSAID if isinstance(error, kind)), ("", ""))
        if not message:
            message, hint = error.message, error.hint
        if isinstance(error, BusyError):
            hint = "it is being written; call again in some seconds"
        return cut_error(_sentence(message) + (f" Next: {_sentence(self._in_tools(hint))}" if hint else ""))

    def _in_tools(self, hint: str) -> str:
        for words, instead in _IN_TOOLS:
            hint = words.sub(instead, hint)
        return hint


def _sentence(text: str) -> str:
    text = _PATH.sub("", text).strip()
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."
