"""Server-sent events of a chat completion, taken apart: bytes become events, events become chunks.

Everything is limited and nothing is believed: a line, a whole stream, the type of every field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from research.answer.model.client import Chunk, Usage
from research.errors import ModelProtocolError

DONE = "[DONE]"
WRONG_SERVER = "see that model_url is the address of an OpenAI-compatible server; most end in /v1"

_MOST_LINE = 1 << 20  # bytes
_MOST_STREAM = 1 << 26
_LINE_END = re.compile(rb"\r\n|\n|\r(?=[^\n])")


class EventDecoder:
    """Bytes as they come, cut anywhere, become the data of events."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._data: list[str] = []
        self._read = 0

    def feed(self, received: bytes) -> Iterator[str]:
        self._read += len(received)
        self._buffer += received
        start = 0
        for match in _LINE_END.finditer(self._buffer):
            yield from self._line(bytes(self._buffer[start : match.start()]))
            start = match.end()
        del self._buffer[:start]
        if len(self._buffer) > _MOST_LINE or self._read > _MOST_STREAM:
            raise ModelProtocolError("the server sends more than an answer can be", hint=WRONG_SERVER)

    def end(self) -> Iterator[str]:
        """What stands without an empty line after it at the end."""
        yield from self._line(bytes(self._buffer).rstrip(b"\r"))
        yield from self._line(b"")
        self._buffer.clear()

    def _line(self, line: bytes) -> Iterator[str]:
        if not line:
            if self._data:
                data, self._data = "\n".join(self._data), []
                yield data
            return
        name, _, value = line.decode("utf-8", "replace").partition(":")
        if name in {"data", "error"}:  # llama.cpp has called an error so
            self._data.append(value.removeprefix(" "))


def parse_event(data: str) -> Mapping[str, Any]:
    """The JSON object of an event. Raises ModelProtocolError for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ModelProtocolError("the server answered with something that is no JSON", hint=WRONG_SERVER) from None
    if not isinstance(found, dict):
        raise ModelProtocolError("the server answered with JSON that is no reply of a model", hint=WRONG_SERVER)
    return found


def chunk_of(event: Mapping[str, Any]) -> Chunk | None:
    """Of an event of a stream, or of a whole reply; None for one that is neither, as some servers send between."""
    choices = event.get("choices")
    usage = _usage(event.get("usage"))
    if not isinstance(choices, list):
        return Chunk(usage=usage) if usage else None
    choice = choices[0] if choices and isinstance(choices[0], dict) else {}
    said = choice.get("delta") or choice.get("message") or {}
    if not isinstance(said, dict):
        return None
    text = _text(said.get("content")) or _text(said.get("refusal")) or _text(choice.get("text"))
    reason = choice.get("finish_reason")
    thought = any(said.get(name) for name in ("reasoning_content", "reasoning", "thinking"))
    return Chunk(text, reason if isinstance(reason, str) else "", usage, thought)


def _text(content: object) -> str:
    """A text, or the texts among the parts of one."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(part for part in parts if isinstance(part, str))


def _usage(counted: object) -> Usage | None:
    if not isinstance(counted, dict):
        return None
    prompt, completion = counted.get("prompt_tokens"), counted.get("completion_tokens")
    if not all(isinstance(count, int) and count >= 0 for count in (prompt, completion)):
        return None
    return Usage(int(prompt or 0), int(completion or 0))
