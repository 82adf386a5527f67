"""What a server's refusal means: its status and its words become a kind of `ModelError` with the next step.

Servers agree on the shape of an answer, and on hardly anything about errors. What is told apart here is what a user or
a caller does something else about. Nothing that a server says is passed on with a key in it, or with what it was sent:
errors are logged, and a log holds no text of a document or a question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from research.errors import ContextTooLongError, ModelBusyError, ModelError, ModelProtocolError, ModelRefusedError
from research.llm.guard import Guard
from research.secret import Key, Secret, scrub

_MOST_WORDS = 200  # characters of a server's own words
_REPEATED = 12  # characters in a row of what was sent that are no accident
_BUSY = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
_UNKNOWN_MODEL = {"model_not_found", "invalid_model", "unknown_model"}
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "insufficient_balance"}

# llama.cpp says so with 500, others with 400 or 422, and each in words of its own.
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|too long|too many tokens|reduce the length"
    r"|(?:input|prompt|tokens?)\b.{0,40}\bexceeds?\b.{0,40}\b(?:tokens|maximum|limit)"
    r"|input.{0,60}too large|too large to process|(?:less|fewer) than \d+ tokens|input length",
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
class Advice:
    """What the user does about a server of one use."""

    address: str  # where something else than such a server answers
    slow: str
    unreachable: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The head of a response; of one that is no answer also its body."""

    status: int
    headers: Mapping[str, str]  # names in small letters
    body: str = ""

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

    @property
    def is_too_long(self) -> bool:
        if self.status == 413 or self.code in {"context_length_exceeded", "exceed_context_size_error"}:
            return True
        return self.status in {400, 422, 500} and not self.is_page and _TOO_LONG.search(self.body) is not None

    @property
    def knows_no_model(self) -> bool:
        return self.status == 404 or self.code in _UNKNOWN_MODEL

    @property
    def takes_no_pictures(self) -> bool:
        said = str(self.error.get("message", ""))
        return self.status in {400, 415, 422, 500} and bool(_PICTURES.search(said)) and "support" in said

    @property
    def is_busy(self) -> bool:
        """Whether to try the same again after a while."""
        final = self.code in _NO_MONEY or self.takes_no_pictures or self.is_too_long
        return self.status in _BUSY and not final

    def words(self, key: Secret | None, sent: str = "") -> str:
        """What the server says itself: on one short line, without the key, up to where it repeats what was sent."""
        if self.is_page:
            title = re.search(r"<title[^>]*>([^<]{1,200})", self.body, re.IGNORECASE)
            said: Any = title[1] if title else "a web page"
        else:
            said = next((self.error[name] for name in _WORDS_KEYS if self.error.get(name)), self.body)
            if isinstance(said, list) and said and isinstance(said[0], dict) and isinstance(said[0].get("msg"), str):
                said = said[0]["msg"]
        return shown(said if isinstance(said, str) else json.dumps(said), key, sent)


def shown(words: str, key: Secret | None, sent: str = "") -> str:
    """Foreign words as a part of a message."""
    guard = Guard(len(words) + 1)
    words = " ".join(scrub(guard.feed(words) + guard.end(), key).split())
    size = min(_REPEATED, len(sent))
    windows = range(len(words) - size + 1) if size else ()
    end = min(_MOST_WORDS, next((at for at in windows if words[at : at + size] in sent), len(words)))
    return words if len(words) <= end else f"{words[:end]}…"


def refusal(answered: Answered, host: str, key: Key, advice: Advice, sent: str = "") -> ModelError:
    """Make the error for a response; only that a model is not there needs more than the response itself."""
    status, words = answered.status, answered.words(key.secret, sent)
    said = f"{host} answered {status}: {words}" if words else f"{host} answered {status}"
    if 300 <= status < 400:
        return _moved(answered, host)
    if status in {401, 403, 407}:
        return _unauthorised(said, host, key)
    if answered.is_too_long:
        return _too_long(answered, host)
    if answered.is_busy:
        wait = answered.retry_after
        busy = ModelBusyError(said, hint=f"try again in {wait:.0f} s" if wait else "try again in a while")
        busy.retry_after = wait or 0.0
        return busy
    hint = advice.address
    if status == 402 or answered.code in _NO_MONEY:
        hint = f"see your account at {host}"
    elif answered.takes_no_pictures:
        hint = "this model takes no pictures: leave model_images out, or name another model"
    return (ModelProtocolError if answered.is_page else ModelRefusedError)(said, hint=hint)


def _unauthorised(said: str, host: str, key: Key) -> ModelRefusedError:
    if key.withheld:
        hint = f"{key.withheld} is not sent unencrypted to another machine; {key.own} is, or take https"
        return ModelRefusedError(f"{host} wants a key ({said})", hint=hint)
    if key.secret is None:
        return ModelRefusedError(f"{host} wants a key ({said})", hint=f"export {key.own}=…")
    hint = f"see that {key.variable or key.own} is the key for {host}"
    hint += f"; {key.own} is for it alone" if key.variable not in ("", key.own) else ""
    return ModelRefusedError(f"{host} does not accept the key ({said})", hint=hint)


def _moved(answered: Answered, host: str) -> ModelRefusedError:
    """Never followed: the key, the question and the passages are for the host that the user named."""
    from urllib.parse import urlsplit

    try:
        there = urlsplit(answered.headers.get("location", "")).hostname or host
    except ValueError:
        there = "elsewhere"
    return ModelRefusedError(
        f"{host} sends on to another address ({shown(there, None)}), which is not followed",
        hint="name the address itself, perhaps with https:// or another path",
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
