"""Somebody else's text made safe to be shown, on a terminal or a page.

Text from documents, file names and error reasons may hold terminal escapes, direction overrides that reverse what is
read, or characters nobody sees. Whatever is shown passes through `one_line`, `phrase` or `block`.
"""

from __future__ import annotations

import re

_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE = "\u00ad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
_JOINERS = "\u200c\u200d"  # Persian and emoji need them; they stay in running text
_CONTROL = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_SURROGATES = "\ud800-\udfff"
_BREAKS = "\n\v\f\r\x1c-\x1e\x85\u2028\u2029"

_UNSAFE_IN_LINE = re.compile(f"[{_CONTROL}\t{_BREAKS}{_DIRECTION}{_INVISIBLE}{_JOINERS}{_SURROGATES}]")
_LINE_END = re.compile("\r\n|[\v\f\r\x85\u2028\u2029]")
_HIDDEN = re.compile(f"[{_DIRECTION}{_INVISIBLE}]")
_UNSAFE_IN_BLOCK = re.compile(f"[{_CONTROL}{_SURROGATES}]")


def one_line(text: str) -> str:
    """A name, heading or reason on one line; whatever is not plainly visible is spelled out (`\\n`, `\\x1b`)."""
    return _UNSAFE_IN_LINE.sub(_spelled, text)


def phrase(text: str) -> str:
    """Running text on one line: breaks and tabs become single spaces, the rest is as in `one_line`."""
    return one_line(" ".join(block(text).split()))


def block(text: str) -> str:
    """Running text with its lines and tabs; invisible and direction characters go, controls are spelled out."""
    text = _HIDDEN.sub("", _LINE_END.sub("\n", text))
    return _UNSAFE_IN_BLOCK.sub(_spelled, text)


def _spelled(match: re.Match[str]) -> str:
    code = ord(match.group())
    named = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}.get(code)
    if named:
        return named
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
