"""What a server's refusal means: its status and its words become a kind of `ModelError` with the next step.

Servers agree on the shape of an answer, and on hardly anything about errors. What is told apart here is what a user or
a caller does something else about. Nothing that a server says is passed on with a key in it, or with what it was sent:
errors are logged, and a log holds no text of a document or a question.

What a model says is as untrusted as a document: made safe piece by piece, before anybody sees it.

Terminal escapes and control characters go, a key that a server repeats goes, thoughts that a model writes before its
answer (`<think>…</think>`) go. Whoever repeats himself for ever, or writes more than was asked for, is stopped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from research.errors import ContextTooLongError, ModelBusyError, ModelError, ModelProtocolError, ModelRefusedError
from research.secret import Key, Secret, scrub

LENGTH, REPETITION = "length", "repetition"

_MOST_CHARACTERS = 16  # a token; a server that ignores max_tokens is stopped here
_LOOK_EVERY = 40  # characters between two looks for repetition
_REPEATED = 240  # characters of nothing but the same thing
_TIMES = 4  # it must stand there at least
_LONGEST = 400  # characters of what is repeated

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b]{0,256}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-~]"
)
# The beginning of an escape whose end may be in the next piece.
_UNFINISHED = re.compile(r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,256}\x1b?|[ -/]*)|\x9b[0-?]*[ -/]*)\Z")
_LINE_END = re.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

_THOUGHT_BEGINS, _THOUGHT_ENDS = "<think>", "</think>"


class Guard:
    """Of one reply. `stopped` says why no more of it is wanted: "length" or "repetition"."""

    def __init__(self, max_tokens: int, key: Secret | None = None) -> None:
        self.stopped = ""
        self._room = max_tokens * _MOST_CHARACTERS
        self._begun = False
        self._cleaner = _Cleaner()
        self._thoughts = _Thoughts()
        self._key = key
        self._prefix = ""  # held back: it may be the beginning of the key
        self._tail = ""  # the last of what was given out
        self._unseen = 0  # characters of it that were not looked at yet

    @property
    def thought(self) -> bool:
        return self._thoughts.any

    def feed(self, text: str) -> str:
        """What may be passed on of what has come."""
        return self._limited(self._without_key(self._thoughts.without(self._cleaner.feed(text))))

    def end(self) -> str:
        """What was held back and is harmless after all."""
        text = self._thoughts.without(self._cleaner.end()) + self._thoughts.end()
        text, self._prefix = self._without_key(text) + self._prefix, ""
        return self._limited(text)

    def _limited(self, text: str) -> str:
        if not self._begun:  # with something that can be read
            text = text.lstrip()
            self._begun = bool(text)
        if len(text) > self._room:
            text, self.stopped = text[: self._room], LENGTH
        self._room -= len(text)
        self._tail = (self._tail + text)[-_LONGEST * _TIMES :]
        self._unseen += len(text)
        if self._unseen >= _LOOK_EVERY:
            self._unseen = 0
            if repeats_itself(self._tail):
                self.stopped = REPETITION
        return text

    def _without_key(self, text: str) -> str:
        if self._key is None:
            return text
        text, value = self._prefix + text, self._key.reveal()
        longest = min(len(text), len(value) - 1)
        self._prefix = next((value[:size] for size in range(longest, 0, -1) if text.endswith(value[:size])), "")
        return scrub(text.removesuffix(self._prefix), self._key)


class _Cleaner:
    """Takes out escapes, then control characters; every kind of line's end becomes the plain one."""

    def __init__(self) -> None:
        self._escape = ""  # held back: it may be the beginning of an escape
        self._return = ""  # held back: it may be the half of a line's end

    def feed(self, text: str) -> str:
        text = self._escape + text
        unfinished = _UNFINISHED.search(text)
        self._escape = unfinished[0] if unfinished else ""
        text = self._return + _ESCAPES.sub("", text.removesuffix(self._escape))
        self._return = "\r" if text.endswith("\r") else ""
        return _plain(text.removesuffix(self._return))

    def end(self) -> str:
        rest, self._escape, self._return = self._return + _ESCAPES.sub("", self._escape), "", ""
        return _plain(rest)


class _Thoughts:
    """Leaves out what stands in <think>…</think> at the very beginning; later it is text like any other."""

    def __init__(self) -> None:
        self.any = False
        self._held = ""
        self._state = "begin"

    def without(self, text: str) -> str:
        if self._state == "through":
            return text
        self._held += text
        if self._state == "begin":
            begun = self._held.lstrip()
            if begun.startswith(_THOUGHT_BEGINS):
                self._state, self.any = "inside", True
            elif not _THOUGHT_BEGINS.startswith(begun):
                self._state = "through"
                return self.end()
        if self._state == "inside":
            before, end, after = self._held.partition(_THOUGHT_ENDS)
            if end:
                self._state, self._held = "through", ""
                return after
            self._held = before[-len(_THOUGHT_ENDS) :]
        return ""

    def end(self) -> str:
        held, self._held = self._held, ""
        return "" if self._state == "inside" else held


def repeats_itself(text: str) -> bool:
    """Whether a text ends in the same thing over and over."""
    for period in range(1, min(_LONGEST, len(text) // _TIMES) + 1):
        if text[-1] != text[-1 - period]:
            continue
        times = max(_TIMES, -(-_REPEATED // period))
        if text.endswith(text[-period:] * times):
            return True
    return False


def _plain(text: str) -> str:
    return _CONTROL.sub("", _LINE_END.sub("\n", text))


_MOST_WORDS = 200  # characters of a server's own words
_SENT_BACK = 12  # characters in a row of what was sent that are no accident
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
    size = min(_SENT_BACK, len(sent))
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
