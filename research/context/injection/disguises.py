"""Orders that are written so that a person or a filter passes over them, written out.

Hardly a page needs any of this, so patterns and modules are loaded with the first that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

# I g n o r e, I.g.n.o.r.e: single letters, all parted by the same character.
_SPACED = r"(?<![^\W_])[^\W_](?P<by>[ .\-_·/|])[^\W_](?![^\W_])(?:(?P=by)[^\W_](?![^\W_])){2,}"
_BASE64 = r"(?<![\w+/])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/])"
_LONG = re.compile(r"[A-Za-z0-9+/]{24}")
_HEX = r"(?<!\w)(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ :,]?){16,}"
_HEX_DIGITS = r"(?:0x|\\x)|[^0-9a-fA-F]"
# Words that no order goes without, as they look backwards and by rot13.
_TURNED = ("snoitcurtsni", "tpmorp", "erongi", "vafgehpgvba", "cebzcg", "vtaber")
_CODES = ("6e", "6f", "65", "74")  # n, o, e and t in hexadecimal
_MOST = 20_000  # characters of a page that are decoded


def joined(text: str) -> str:
    """The text with spaced-out words put together."""
    return re.sub(_SPACED, lambda match: match[0].replace(match["by"], ""), text)


def decoded(text: str) -> Iterator[str]:
    """What the text holds in another encoding, if that is text again."""
    if _LONG.search(text):
        yield from _from_base64(text[:_MOST])
    lowered = text.lower()
    if all(code in lowered for code in _CODES):
        yield from _from_hex(text[:_MOST])
    if any(word in lowered for word in _TURNED):
        import codecs

        yield "\n".join(line[::-1] for line in text.splitlines())
        yield codecs.encode(text, "rot13")


def _from_base64(text: str) -> Iterator[str]:
    import base64

    for found in re.findall(_BASE64, text):
        padded = found.rstrip("=") + "=" * (-len(found.rstrip("=")) % 4)
        with suppress(ValueError):
            yield from _plain(base64.b64decode(padded))


def _from_hex(text: str) -> Iterator[str]:
    for found in re.findall(_HEX, text):
        digits = re.sub(_HEX_DIGITS, "", found)
        yield from _plain(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _plain(raw: bytes) -> Iterator[str]:
    """The bytes as text, if they are words."""
    text = raw.decode("utf-8", "replace")
    if " " in text and sum(c.isalpha() or c == " " for c in text) > 0.8 * len(text):
        yield text
