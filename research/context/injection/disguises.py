"""Orders that are written so that a person or a filter passes over them, written out."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from contextlib import suppress

# I g n o r e, I.g.n.o.r.e: single letters, all parted by the same character.
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?P<by>[ .\-_·/|])[^\W_](?![^\W_])(?:(?P=by)[^\W_](?![^\W_])){2,}")
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/])")
_LONG = re.compile(r"[A-Za-z0-9+/]{24}")
_HEX = re.compile(r"(?<!\w)(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ :,]?){16,}")
_HEX_DIGITS = re.compile(r"(?:0x|\\x)|[^0-9a-fA-F]")
# Words that no order goes without, as they look backwards and by rot13.
_TURNED = ("snoitcurtsni", "tpmorp", "erongi", "vafgehpgvba", "cebzcg", "vtaber")
_CODES = ("6e", "6f", "65", "74")  # n, o, e and t in hexadecimal
_MOST = 20_000  # characters of a page that are decoded


def joined(text: str) -> str:
    """The text with spaced-out words put together."""
    return _SPACED.sub(lambda match: match[0].replace(match["by"], ""), text)


def decoded(text: str) -> Iterator[str]:
    """What the text holds in another encoding, if that is text again."""
    if _LONG.search(text):
        for match in _BASE64.finditer(text, 0, _MOST):
            with suppress(binascii.Error, ValueError):
                yield from _plain(base64.b64decode(match[0] + "=" * (-len(match[0].rstrip("=")) % 4)))
    lowered = text.lower()
    if all(code in lowered for code in _CODES):
        for match in _HEX.finditer(text, 0, _MOST):
            digits = _HEX_DIGITS.sub("", match[0])
            yield from _plain(bytes.fromhex(digits[: len(digits) // 2 * 2]))
    if any(word in lowered for word in _TURNED):
        yield "\n".join(line[::-1] for line in text.splitlines())
        yield codecs.encode(text, "rot13")


def _plain(raw: bytes) -> Iterator[str]:
    """The bytes as text, if they are words."""
    text = raw.decode("utf-8", "replace")
    if " " in text and sum(c.isalpha() or c == " " for c in text) > 0.8 * len(text):
        yield text
