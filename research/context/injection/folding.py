"""How text reads, whatever it is written with: the skeleton of Unicode's UTS #39, in small ASCII letters.

`fold` keeps the length of a text, one character for one, so that what is found in the folded text stands at the same
place in the text itself.
"""

from __future__ import annotations

import re
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
