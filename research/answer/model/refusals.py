"""What a server's refusal means: its status and its words become a kind of `ModelError` with the next step.

Servers agree on the shape of an answer, and on hardly anything about errors. What is told apart here is what a user or
a caller does something else about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from research.answer.model.event_stream import WRONG_SERVER
from research.answer.model.guard import Guard
from research.errors import (
    ContextTooLongError,
    ModelBusyError,
    ModelError,
    ModelProtocolError,
    ModelRefusedError,
)
from research.secret import KEY_VARIABLE, Secret, scrub

MOST_BODY = 1 << 16  # bytes of an error that are read

_MOST_WORDS = 200  # characters of a server's own words
_BUSY = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
_UNKNOWN_MODEL = {"model_not_found", "invalid_model", "unknown_model"}
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"}

_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|prompt is too long|too many tokens|reduce the length"
    r"|(?:input|prompt|tokens?)\b.{0,40}\bexceeds?\b.{0,40}\b(?:tokens|maximum|limit)",
    re.IGNORECASE | re.DOTALL,
)
_WINDOW = re.compile(
    r"(?:maximum context length (?:is|of)|context (?:length|window|size) (?:is|of)|available context size \("
    r"|tokens allowed \(|tokens >)\s*(\d[\d,]{1,11})|(\d[\d,]{1,11})(?: tokens?)? maximum",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"(\d[\d,]{0,11})(?: tokens)? (?:in the messages|input tokens)", re.IGNORECASE)
_PICTURES = re.compile(r"\b(?:images?|image_url|vision|multimodal)\b", re.IGNORECASE)
_WORDS_KEYS = ("message", "detail", "error", "msg", "reason")


@dataclass(frozen=True, slots=True)
class Answered:
    """A response that is no answer."""

    status: int
    headers: Mapping[str, str]  # names in small letters
    body: str

    @property
    def is_page(self) -> bool:
        return "html" in self.headers.get("content-type", "") or self.body.lstrip()[:1] == "<"

    @property
    def error(self) -> Mapping[str, Any]:
        """The `error` of its JSON, or the JSON itself where there is none."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        if isinstance(found, list):
            found = found[0] if found else {}
        inner = found.get("error", found) if isinstance(found, dict) else {}
        return inner if isinstance(inner, dict) else {"message": inner}

    @property
    def code(self) -> str:
        return str(self.error.get("code") or self.error.get("type") or "")

    @property
    def retry_after(self) -> float | None:
        """Seconds, if the server names them."""
        value = self.headers.get("retry-after", "")
        try:
            return max(0.0, float(value))
        except ValueError:
            pass
        try:
            from datetime import datetime

            date = parsedate_to_datetime(value)
            return max(0.0, (date - datetime.now(date.tzinfo)).total_seconds())
        except (ValueError, TypeError):
            return None

    def words(self, key: Secret | None) -> str:
        """What the server says itself: short, on one line, without the key."""
        if self.is_page:
            title = re.search(r"<title[^>]*>([^<]{1,200})", self.body, re.IGNORECASE)
            said = title[1] if title else "a web page"
        else:
            found = next((self.error[name] for name in _WORDS_KEYS if self.error.get(name)), self.body)
            said = found if isinstance(found, str) else json.dumps(found)
        return shown(said, key)


def shown(words: str, key: Secret | None) -> str:
    """Foreign words as a part of a message."""
    guard = Guard(len(words) + 1)
    words = " ".join(scrub(guard.feed(words) + guard.end(), key).split())
    return words if len(words) <= _MOST_WORDS else f"{words[:_MOST_WORDS]}…"


def is_busy(answered: Answered) -> bool:
    """Whether to try the same again after a while."""
    final = answered.code in _NO_MONEY or takes_no_pictures(answered) or is_too_long(answered)
    return answered.status in _BUSY and not final


def is_too_long(answered: Answered) -> bool:
    if answered.status not in {400, 413, 422, 500}:
        return False
    return answered.code in {"context_length_exceeded", "exceed_context_size_error"} or (
        not answered.is_page and bool(_TOO_LONG.search(answered.body))
    )


def knows_no_model(answered: Answered) -> bool:
    return answered.status == 404 or answered.code in _UNKNOWN_MODEL


def takes_no_pictures(answered: Answered) -> bool:
    said = str(answered.error.get("message", ""))
    return answered.status in {400, 415, 422, 500} and bool(_PICTURES.search(said)) and "support" in said


def refusal(answered: Answered, host: str, key: Secret | None) -> ModelError:
    """The error for a response, whatever it is; only that a model is not there needs more than the response itself."""
    status, words = answered.status, answered.words(key)
    said = f"{host} answered {status}: {words}" if words else f"{host} answered {status}"
    if 300 <= status < 400:
        return _moved(answered, host)
    if status in {401, 403, 407}:
        return _unauthorised(said, host, key)
    if is_too_long(answered):
        return _too_long(answered, host)
    if is_busy(answered):
        wait = answered.retry_after
        busy = ModelBusyError(said, hint=f"try again in {wait:.0f} s" if wait else "try again in a while")
        busy.retry_after = wait or 0.0
        return busy
    kind = ModelProtocolError if answered.is_page else ModelRefusedError
    return kind(said, hint=_next_step(answered, host))


def no_such_model(model: str, host: str, served: list[str]) -> ModelRefusedError:
    """`served` are the names it has; with none, or with this one among them, the address is wrong."""
    if not served or model in served:
        return ModelRefusedError(f"{host} has no chat completions at this address", hint=WRONG_SERVER)
    most = ", ".join(served[:8]) + (f" and {len(served) - 8} more" if len(served) > 8 else "")
    return ModelRefusedError(f"{host} has no model {model!r}; it has {most}", hint=f"ctx ask … --model {served[0]}")


def _unauthorised(said: str, host: str, key: Secret | None) -> ModelRefusedError:
    if key is None:
        return ModelRefusedError(f"{host} wants a key ({said})", hint=f"export {KEY_VARIABLE}=…")
    return ModelRefusedError(
        f"{host} does not accept the key ({said})", hint=f"see that {KEY_VARIABLE} is the key for {host}"
    )


def _next_step(answered: Answered, host: str) -> str:
    if answered.status == 402 or answered.code in _NO_MONEY:
        return f"see your account at {host}"
    if takes_no_pictures(answered):
        return "this model takes no pictures: leave model_images out, or name another model"
    return WRONG_SERVER if answered.is_page or answered.status in {404, 405, 501} else ""


def _moved(answered: Answered, host: str) -> ModelRefusedError:
    """Never followed: the key, the question and the passages are for the host that the user named."""
    from urllib.parse import urlsplit

    try:
        there = urlsplit(answered.headers.get("location", "")).hostname or host
    except ValueError:
        there = "elsewhere"
    return ModelRefusedError(
        f"{host} sends on to another address ({shown(there, None)}), which is not followed",
        hint="set model_url to the address itself, perhaps with https:// or another path",
    )


def _too_long(answered: Answered, host: str) -> ContextTooLongError:
    error = answered.error
    found = _WINDOW.search(answered.body)
    window = error.get("n_ctx") or (int((found[1] or found[2]).replace(",", "")) if found else 0)
    counts = _COUNTED.search(answered.body)
    counted = error.get("n_prompt_tokens") or (int(counts[1].replace(",", "")) if counts else 0)
    takes = f"it takes {window:,} tokens" if isinstance(window, int) and window else "it does not say how long"
    return ContextTooLongError(
        f"the prompt is too long for the model at {host}: {takes}",
        window=window if isinstance(window, int) else 0,
        prompt_tokens=counted if isinstance(counted, int) else 0,
        hint="lower --max-tokens, or set model_context to what the model takes",
    )
