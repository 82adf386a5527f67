"""A turn as it comes, and the context that is built for it.

    {"tenant_id": …, "session_id": …, "persona_id": …, "system_prompt": …, "user_message": …, "history": […]}

Everything may be missing. Who is asking is never guessed: an id that is neither text nor a number is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from research.conversation.history import text_of
from research.errors import UsageError

_IDS = ("tenant_id", "session_id", "persona_id")


@dataclass(frozen=True, slots=True)
class Turn:
    tenant_id: str | None = None
    session_id: str | None = None
    persona_id: str | None = None
    system_prompt: str = ""
    user_message: str = ""
    history: Sequence[Any] = ()  # oldest first, as it was given; only its end is ever looked at

    @classmethod
    def of(cls, envelope: Mapping[str, Any] | Turn) -> Turn:
        if isinstance(envelope, Turn):
            return envelope
        if not isinstance(envelope, Mapping):
            raise UsageError(f"a turn is a document, not {type(envelope).__name__}", hint=_EXAMPLE)
        ids = {name: _id(name, envelope.get(name)) for name in _IDS}
        return cls(
            **ids,
            system_prompt=text_of(envelope.get("system_prompt")),
            user_message=text_of(envelope.get("user_message")),
            history=_history(envelope.get("history")),
        )


@dataclass(frozen=True, slots=True)
class ContextResult:
    """What seed 001 calls the result: memories, the part of the history that fits, and how it came about."""

    snippets: list[dict[str, Any]]
    history: list[dict[str, Any]]
    debug: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """`messages` are for a language model, in order. `token_counts` are its parts: system, history, snippets, user, and
    `overhead`, which is what roles and separators cost; together they are `prompt_tokens`."""

    system_prompt: str
    messages: list[dict[str, Any]]
    token_counts: dict[str, int]
    debug: dict[str, Any]
    snippets: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def prompt_tokens(self) -> int:
        return sum(self.token_counts.values())

    @property
    def result(self) -> ContextResult:
        return ContextResult(self.snippets, self.history, self.debug)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "system_prompt": self.system_prompt,
            "messages": self.messages,
            "token_counts": self.token_counts,
            "prompt_tokens": self.prompt_tokens,
            "snippets": self.snippets,
            "debug": self.debug,
        }


_EXAMPLE = '{"session_id": "…", "user_message": "…", "history": [{"role": "user", "content": "…"}]}'


def _id(name: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{name} must be text, not {type(value).__name__}", hint=_EXAMPLE)


def _history(given: object) -> Sequence[Any]:
    if given is None:
        return ()
    if isinstance(given, str | bytes | Mapping):
        return (given,)
    if isinstance(given, Sequence):
        return given
    return list(given) if isinstance(given, Iterable) else ()
