"""Text in any language: where sentences end, which scripts have no blanks, how foreign text is stored and safely shown.

Text from documents, file names and error reasons may hold terminal escapes, direction overrides that reverse what is
read, or characters nobody sees. Whatever is shown passes through `one_line`, `phrase` or `block`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO

from research.errors import UsageError

END_MARKS = ".!?…"  # a blank or a line's end follows, or this was an abbreviation or a number
WIDE_END_MARKS = "。！？"  # of Chinese and Japanese; the next sentence follows at once
CLOSING_MARKS = "\"')\\]»”’"  # may stand between a sentence's last mark and the blank; escaped for use in [ ]
_WIDE_CLOSING_MARKS = f"{CLOSING_MARKS}」』）"

SENTENCE_BREAK = re.compile(
    rf"(?:(?<=[{END_MARKS}])|(?<=[{END_MARKS}][{CLOSING_MARKS}]))\s+"
    rf"|(?:(?<=[{WIDE_END_MARKS}])(?![{_WIDE_CLOSING_MARKS}])|(?<=[{WIDE_END_MARKS}][{_WIDE_CLOSING_MARKS}]))\s*"
)
"""What stands between two sentences: the blanks, or nothing after 。！？. Begins where the sentence before ends."""

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3040-\u30ff\u31f0-\u31ff"
_HANGUL = "\uac00-\ud7af"
_SOUTH_EAST_ASIAN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_WIDE_SIGNS = "\u2e80-\u2fdf\u3001-\u303f\u3100-\u312f\u31a0-\u31ff\uff00-\uffef"  # radicals, punctuation, Bopomofo

UNSPACED = f"{_SOUTH_EAST_ASIAN}{_KANA}{_HAN}{_HANGUL}"
"""Ranges, for use in [ ], of the scripts whose words are not found by blanks; full-text search takes pairs of their
characters. Korean has blanks, but endings grow onto its words."""

_JOINED = re.compile(f"[{_HAN}{_KANA}{_WIDE_SIGNS}]")


def is_joined_script(char: str) -> bool:
    """Whether lines of this character's script are put together without a blank: Han, Kana, and their punctuation.

    Not all of `UNSPACED`: Korean puts blanks between words, Thai and its neighbours between phrases.
    """
    return bool(_JOINED.match(char))


def embedding_text(context: str, text: str) -> str:
    """What an encoder is given for a passage, and what its tokens are counted on: title and section, then the text."""
    return f"{context}\n{text}" if context else text


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


def storable(text: str) -> str:
    """The text without what cannot be stored: half a surrogate pair, NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def stored_time(time: datetime) -> str:
    """A time in UTC, of one length, so that times are ordered as texts are."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def kind_name(value: object) -> str:
    """What a value of JSON is called where something else was expected."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def json_lines(stream: BinaryIO, longest: int) -> Iterator[tuple[int, dict[str, Any] | UsageError]]:
    """The objects of JSON Lines with the numbers of their lines, from 1. A line that cannot be read, or has more bytes
    than `longest`, costs itself alone. Blank ones are passed over."""
    number = 0
    while line := stream.readline(longest + 2):
        number, whole = number + 1, line
        while line and not line.endswith(b"\n"):  # a very long one is not held in memory
            line = stream.readline(longest)
        raw = (whole.removeprefix(b"\xef\xbb\xbf") if number == 1 else whole).strip()
        if raw:
            try:
                yield number, _json_object(raw, longest)
            except UsageError as error:
                yield number, error


def _json_object(raw: bytes, longest: int) -> dict[str, Any]:
    if len(raw) > longest:
        raise UsageError(f"the line is longer than {longest:,} bytes")
    try:
        found = json.loads(raw.decode(), parse_constant=_refuse)
    except UnicodeDecodeError:
        raise UsageError("not UTF-8", hint="convert the file, with iconv -t utf-8 for example") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"no valid JSON: {str(error)[:80]}", hint="an object a line: {…}") from None
    if not isinstance(found, dict):
        raise UsageError(f"an object is expected, not {kind_name(found)}", hint="an object a line: {…}")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
