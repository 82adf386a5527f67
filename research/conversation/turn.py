"""A turn as it comes, and the context that is built for it.

    {"tenant_id": …, "session_id": …, "persona_id": …, "system_prompt": …, "user_message": …, "history": […]}

Everything may be missing. Who is asking is never guessed: an id that is neither text nor a number is an error. A
history may be long, and may hold anything: messages without text, with lists for text, with calls of tools, with roles
nobody knows. Only as much of it is read, from its end, as can become part of a prompt.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from research.errors import UsageError

LIMIT = 20  # messages at most
_BLANKS = 50  # entries that are passed over, for each one that may be kept, before the search is given up
_IDS = ("tenant_id", "session_id", "persona_id")
_ROLES = ("system", "user", "assistant", "tool", "developer", "function")
_RESULTS = ("tool", "function")  # answers of tools, which stand only behind the message that called them
_EXAMPLE = '{"session_id": "…", "user_message": "…", "history": [{"role": "user", "content": "…"}]}'


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
        return cls(
            **{name: _id(name, envelope.get(name)) for name in _IDS},
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A message, where it stands in the history, and what of it costs tokens."""

    place: int
    message: dict[str, Any]
    text: str  # its content, and the calls of tools it holds


@dataclass(frozen=True, slots=True)
class Window:
    """The end of a history in groups, oldest first: what must be kept or left out together is one group."""

    groups: list[list[Entry]] = field(default_factory=list)
    length: int = 0  # of the whole history
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def entries(self) -> list[Entry]:
        return [entry for group in self.groups for entry in group]


def window(history: Sequence[Any], limit: int = LIMIT) -> Window:
    """The last `limit` messages there are."""
    found: list[Entry] = []
    skipped: Counter[str] = Counter()
    least = max(0, len(history) - limit * (1 + _BLANKS))
    for place in range(len(history) - 1, least - 1, -1):
        if len(found) >= limit:
            break
        entry, note = _entry(place, history[place])
        if note:
            skipped[note] += 1
        if entry is not None:
            found.append(entry)
    return Window(_groups(found[::-1], skipped), len(history), skipped)


def text_of(content: object) -> str:
    """Any content as text. Of a list, as models take it, the parts that are text; others are named in brackets."""
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    if isinstance(content, str | Mapping):
        return _part(content)
    if isinstance(content, Sequence):
        return "\n".join(part for part in map(_part, content) if part)
    return "" if content is None else str(content)


def spoken(entry: object) -> tuple[str, str] | None:
    """Who said what, for a summary; None if nothing was said."""
    if isinstance(entry, str):
        return ("user", entry.strip()) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    text = text_of(entry.get("content")).strip()
    return (_role(entry) or "user", text) if text else None


def _role(message: Mapping[str, Any]) -> str:
    """Empty for one that nobody knows."""
    role = message.get("role")
    known = role.strip().lower() if isinstance(role, str) else ""
    return known if known in _ROLES else ""


def _entry(place: int, given: object) -> tuple[Entry | None, str]:
    """An entry of the history as a message, and a word for what was strange about it."""
    if isinstance(given, str):
        given = {"role": "user", "content": given}
    if not isinstance(given, Mapping):
        return None, "not_a_message"
    text, calls = text_of(given.get("content")), _calls(given)
    if not text.strip() and not calls:
        return None, "without_content"
    role = _role(given)
    message: dict[str, Any] = {"role": role or "user", "content": text}
    if isinstance(given.get("name"), str) and given["name"]:
        message["name"] = given["name"]
    if role == "assistant" and calls:
        message["tool_calls"] = calls
    if role in _RESULTS and isinstance(given.get("tool_call_id"), str):
        message["tool_call_id"] = given["tool_call_id"]
    called = json.dumps(calls, ensure_ascii=False, default=str) if "tool_calls" in message else ""
    return Entry(place, message, f"{text}\n{called}" if called else text), "" if role else "unknown_role"


def _calls(message: Mapping[str, Any]) -> list[Any]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list | tuple) else []


def _groups(entries: Sequence[Entry], skipped: Counter[str]) -> list[list[Entry]]:
    """A model refuses the answer of a tool without the call before it, and a call without its answers."""
    groups: list[list[Entry]] = []
    for entry in entries:
        if entry.message["role"] not in _RESULTS:
            groups.append([entry])
        elif groups and "tool_calls" in groups[-1][0].message:
            groups[-1].append(entry)
        else:
            skipped["tool_without_call"] += 1
    return [group for group in groups if _answered(group, skipped)]


def _answered(group: list[Entry], skipped: Counter[str]) -> bool:
    """Whether a group can stand as it is. A call that nobody answered is taken off; with no words either, it goes."""
    call = group[0]
    if len(group) > 1 or "tool_calls" not in call.message:
        return True
    skipped["call_without_answer"] += 1
    message = {name: value for name, value in call.message.items() if name != "tool_calls"}
    group[0] = Entry(call.place, message, message["content"])
    return bool(message["content"].strip())


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    return f"[{part['type']}]" if isinstance(part.get("type"), str) else ""
