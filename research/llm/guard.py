"""What a model says is as untrusted as a document: made safe piece by piece, before anybody sees it.

Terminal escapes and control characters go, a key that a server repeats goes, thoughts that a model writes before its
answer (`<think>…</think>`) go. Whoever repeats himself for ever, or writes more than was asked for, is stopped.
"""

from __future__ import annotations

import re

from research.secret import Secret, scrub

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
