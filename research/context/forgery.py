"""Citation headers that a page or a file name imitates, found and made harmless.

The opening bracket of anything that reads as `[Document 2 …` becomes a round one: visible, one character for one, and
no word is lost. What counts is how it reads, so letters and digits of other widths and alphabets are taken for what
they look like, and whatever stands between them and is no letter (blanks, line breaks, emphasis, marks that nobody
sees) is passed over.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_OPENING = "[［【〔〖〘〚⟦⟬⁅❲⦋⦍⦏⸢⸤⌈⌊「『﹝﹇︗︹︻"
_CLOSING = "]］】〕〗〙〛⟧⟭⁆❳⦌⦎⦐⸣⸥⌉⌋」』﹞﹈︘︺︼"
_BRACKETS = frozenset(_OPENING + _CLOSING)
# A bracket once more, to whoever renders the text.
_ENTITY = re.compile(r"&(?:#0{0,9}91|#[xX]0{0,9}5[bB]|lbrack|lsqb);")
# Most brackets are passed over here: the first letter behind them is neither a D nor one of another alphabet.
_OPENS = re.compile(rf"[{re.escape(_OPENING)}](?=[^a-zA-Z0-9\[\]]*?[dD\x80-\U0010ffff])|{_ENTITY.pattern}")
_CLOSES = re.compile(rf"[{re.escape(_CLOSING)}]")
# Letters of other alphabets that pass for Latin ones; accents and styles are folded by Unicode itself.
_LOOKALIKES = str.maketrans("аαсϲԁđðеεɡмпոησоοøрρтτυս", "aaccdddeegmnnnooooppttuu")

_WORD = "document"
_NUMBERED = re.compile(r"document:?(?:n[or]|number)?(?:\d|[ivxlco]{1,8}:)")
_WHOLE = re.compile(r"document(?:n[or]|number)?[\divxlco]{1,9}(?::|.*page\d)")
_READ = 24  # letters that decide whether a header begins
_READ_WHOLE = 400  # and whether it goes on as one
_PAGE_END = re.compile(r"page\d+$")


def disarm(text: str) -> str:
    """The text with a round bracket wherever a header seems to begin; as long as before."""
    places = list(_openings(text))
    if not places:
        return text
    characters = list(text)
    for place in places:
        characters[place] = "("
    return "".join(characters)


def disarm_name(name: str) -> str:
    """A file name that neither opens a second header nor ends its own. Ordinary names come back as they are."""
    name = disarm(name)
    for match in _CLOSES.finditer(name):
        if _PAGE_END.search("".join(map(_reads_as, name[: match.start()]))):
            name = f"{name[: match.start()]}){name[match.end() :]}"
    return name


def forges_header(text: str) -> bool:
    """Whether the text holds what reads as a whole header, and not only a reference such as `[Document 2]`."""
    return any(_WHOLE.match(_letters(text, place, _READ_WHOLE)) for place in _openings(text))


def _openings(text: str) -> Iterator[int]:
    for match in _OPENS.finditer(text):
        if _NUMBERED.match(_letters(text, match.start(), _READ)):
            yield match.start()


def _letters(text: str, bracket: int, limit: int) -> str:
    """What a reader makes of the text behind a bracket: its letters, digits and colons, up to the next bracket.

    It ends as soon as they spell another word, so that no stretch of text is gone over twice.
    """
    entity = _ENTITY.match(text, bracket)
    seen = ""
    for place in range(entity.end() if entity else bracket + 1, len(text)):
        character = text[place]
        if character in _BRACKETS:
            break
        seen += _reads_as(character) or (":" if character in ":：﹕" and seen else "")
        if not seen.startswith(_WORD[: len(seen)]) or len(seen) >= limit:
            break
    return seen


@lru_cache(maxsize=4096)
def _reads_as(character: str) -> str:
    """The plain letters or digits a character stands for; nothing if it is neither."""
    if character.isascii():
        return character.lower() if character.isalnum() else ""
    folded = unicodedata.normalize("NFKD", character).casefold().translate(_LOOKALIKES)
    return "".join(_plain(part) for part in folded if part.isalnum())


def _plain(part: str) -> str:
    value = unicodedata.digit(part, None)
    return part if value is None else str(value)
