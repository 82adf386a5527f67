"""How text reads, whatever it is written with: the skeleton of Unicode's UTS #39, in small ASCII letters.

`fold` keeps the length of a text, one character for one, so that what is found in the folded text stands at the same
place in the text itself. `joined` and `decoded` write out what is spaced apart or encoded, so that a person or a filter
passes over it; hardly a page needs them, so patterns and modules are loaded with the first that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

TABLE = Path(__file__).with_name("confusables.txt")
IGNORED = "\x00"  # stands for a character that nobody sees

# Our own word in pointed brackets is no tag, but may be meant for a header.
_TAG = r"</?(?![dD]oc)[a-zA-Z][^<>]{0,80}>|<!--|-->"
_ENTITY = r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,24}\d{0,2});"
# Tags inside a word do not part it; any other tag does.
_INLINE = frozenset(
    "a abbr b big cite code del em font i ins kbd mark q s small span strong sub sup tt u".split()  # noqa: SIM905
)
_MANY = 160  # different characters on a page; beyond it is written in another script
_NAME = r"[a-zA-Z]+"

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


def fold(text: str) -> str:
    """The text as it reads; as long as before."""
    if "&" in text:
        text = re.sub(_ENTITY, _unescaped, text)
    if "<" in text:
        text = re.sub(_TAG, _blank, text)
    if text.isascii():
        return text.lower()
    seen = set(text)
    if len(seen) > _MANY:
        return text.translate(_table()).lower()
    table = _table()
    for character in seen:  # quicker than to translate, where few are of another kind
        if character > "\x7f" and ord(character) in table:
            text = text.replace(character, table[ord(character)])
    return text.lower()


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


def _unescaped(match: re.Match[str]) -> str:
    import html

    character = html.unescape(match[0])
    return character + IGNORED * (len(match[0]) - 1) if len(character) == 1 else match[0]


def _blank(match: re.Match[str]) -> str:
    name = re.search(_NAME, match[0])
    filler = IGNORED if name and name[0].lower() in _INLINE else " "
    return filler * len(match[0])


@lru_cache(maxsize=1)
def _table() -> dict[int, str]:
    """Character number → reading."""
    found: dict[int, str] = {}
    with TABLE.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            if not line.startswith("#"):
                reading, _, characters = line.rstrip("\n").partition("\t")
                found.update(dict.fromkeys(map(ord, characters), reading or IGNORED))
    return found


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
