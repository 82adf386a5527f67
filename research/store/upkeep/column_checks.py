"""What a value of the catalog may be. SQLite keeps any value in any column, so a column's type promises nothing."""

from __future__ import annotations

import json
import re
import unicodedata
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, NoReturn

from research.store.catalog.governance import LONGEST_ENTRY
from research.store.catalog.items import KINDS, LONGEST_KEY
from research.store.catalog.labels import is_tag

LARGEST = 2**63 - 1  # SQLite's
LONGEST_PATH = 1 << 15
LONGEST_NOTE = 1 << 16
LONGEST_PACKAGE = 1 << 24  # a request may pin a thousand refs, and a package say why each is not in it
_LONGEST_NAME = 1 << 12  # a name has 255 bytes, and an odd byte is written as four characters
_LONGEST_ENCODER = 1 << 10
_LONGEST_WHO = 200
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST_WARNINGS = 1 << 23
_LONGEST_REGIONS = 1 << 20
_EDGES = (-1.0, 2.0)  # fractions of a page; what stands a little outside it is no fault
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """A test of one value, and in words what the value should be."""

    what: str
    holds: Callable[[Any], bool]


def integer(what: str, least: int = 0, most: int = LARGEST) -> ColumnCheck:
    return ColumnCheck(what, lambda value: type(value) is int and least <= value <= most)


def text(what: str, most: int) -> ColumnCheck:
    return ColumnCheck(what, lambda value: type(value) is str and len(value) <= most)


def matching(what: str, pattern: str) -> ColumnCheck:
    compiled = re.compile(pattern, re.ASCII)
    return ColumnCheck(what, lambda value: type(value) is str and compiled.fullmatch(value) is not None)


def one_of(what: str, known: frozenset[str]) -> ColumnCheck:
    return ColumnCheck(what, lambda value: type(value) is str and value in known)


def shown(value: object) -> str:
    """A value of any size and kind, short and on one line."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}…"
    return "nothing" if value is None else repr(value)


def unpack(blob: bytes, most: int) -> bytes:
    """The bytes of a blob packed by zlib. Raises `OverflowError` beyond `most`, `zlib.error` for damage."""
    opened = zlib.decompressobj()
    found = opened.decompress(blob, most + 1)
    if len(found) > most:
        raise OverflowError
    if not opened.eof or opened.unused_data:
        raise zlib.error("cut off, or followed by something else")
    return found


def count_lines(data: bytes) -> int | None:
    """How many lines OCR read of a page: [text, x0, y0, x1, y1] each. None if this is something else."""
    try:
        found = strict_json(data.decode())
    except ValueError:
        return None
    sound = isinstance(found, list) and all(
        isinstance(line, list) and len(line) == 5 and type(line[0]) is str and _edges(line[1:]) for line in found
    )
    return len(found) if sound else None


def _is_name(value: Any) -> bool:
    if type(value) is not str or not 0 < len(value) <= _LONGEST_NAME or value in {".", ".."}:
        return False
    return "/" not in value and "\0" not in value


def _is_path(value: Any) -> bool:
    """Absolute, as every path is stored. Line breaks and worse are in names of real files and stay."""
    if type(value) is not str or len(value) > LONGEST_PATH or "\0" in value:
        return False
    return PurePosixPath(value).is_absolute() or PureWindowsPath(value).is_absolute()


def _is_time(value: Any) -> bool:
    if type(value) is not str or len(value) > 40:
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_encoder(value: Any) -> bool:
    """A name that can be shown and typed: nothing in it moves the cursor, ends the line or turns the reading."""
    if type(value) is not str or not 0 < len(value) <= _LONGEST_ENCODER or value != value.strip():
        return False
    return not any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} or char in _TURNING for char in value)


_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _is_visual(value: Any) -> bool:
    return value in {"", "off"} or (_is_encoder(value) and value.startswith(("regions:", "colpali:")))


def _is_warnings(value: Any) -> bool:
    found = _json(value, _LONGEST_WARNINGS)
    return isinstance(found, list) and all(type(entry) is str for entry in found)


def _is_box(value: Any) -> bool:
    found = _json(value, 1000)
    return isinstance(found, list) and len(found) == 4 and _edges(found)


def _is_regions(value: Any) -> bool:
    found = _json(value, _LONGEST_REGIONS)
    return isinstance(found, list) and all(
        isinstance(entry, list) and len(entry) == 5 and _is_start(entry[0]) and _edges(entry[1:]) for entry in found
    )


def _is_start(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _edges(values: list[Any]) -> bool:
    # Compared, not converted: NaN fails, and an integer of a thousand digits costs nothing.
    return all(type(value) in (int, float) and _EDGES[0] <= value <= _EDGES[1] for value in values)


def _json(value: Any, most: int) -> Any:
    if type(value) is not str or len(value) > most:
        return None
    try:
        return strict_json(value)
    except ValueError:
        return None


def _is_who(value: Any) -> bool:
    """The name of a tenant or a session, an id: one line, or nothing."""
    return type(value) is str and len(value) <= _LONGEST_WHO and value == value.strip() and not _BREAKS.search(value)


def _is_item_key(value: Any) -> bool:
    """A path with a name in it, an id: what a person or a program can give back to us."""
    return type(value) is str and 0 < len(value) <= LONGEST_KEY and "\0" not in value


def _is_metadata(value: Any) -> bool:
    return isinstance(_json(value, LONGEST_NOTE), dict)


DOC_ID = matching("a document id (16 hex digits)", "[0-9a-f]{16}")
FILE_ID = matching("a file's lasting id", "file-[0-9a-f]{16}(-[0-9]{1,9})?")
FORMER_ID = matching("an id that a document had", "(file-)?[0-9a-f]{16}(-[0-9]{1,9})?")
SHA256 = matching("a SHA-256 (64 hex digits)", "[0-9a-f]{64}")
IDENTITY = matching("an identity (32 hex digits)", "[0-9a-f]{32}")
COUNT = integer("a count")
KEY = integer("a row's number", least=1)
ANY_INTEGER = integer("a whole number", least=-LARGEST - 1)
PAGE = integer("a page number", least=1, most=999_999_999)  # nine digits, as in an image's name
FLAG = integer("0 or 1", most=1)
NAME = ColumnCheck("a file's name", _is_name)
ENDING = ColumnCheck("the ending of a file's name", lambda value: value == "" or _is_name(value))
PATH = ColumnCheck("an absolute path", _is_path)
TIME = ColumnCheck("a time in ISO 8601", _is_time)
ENCODER = ColumnCheck("an encoder's name", _is_encoder)
VISUAL_ENCODER = ColumnCheck("a visual encoder's name", _is_visual)
TAG = ColumnCheck("a tag", is_tag)
NOTE = text("a text of reasonable length", LONGEST_NOTE)
WARNINGS = ColumnCheck("a JSON list of texts", _is_warnings)
BOX = ColumnCheck("a box on a page", _is_box)
REGIONS = ColumnCheck("a list of places on a page", _is_regions)
WHO = ColumnCheck("a name on one line", _is_who)
ITEM_KIND = one_of("a kind of items", frozenset(KINDS))
ITEM_KEY = ColumnCheck("the name of an item", _is_item_key)
LABEL_TARGET = ColumnCheck("what a label is given to", lambda value: _is_item_key(value) and ":" in value)
METADATA = ColumnCheck("a JSON object", _is_metadata)
AUDIT_ENTRY = ColumnCheck("what an audit entry says", lambda value: isinstance(_json(value, LONGEST_ENTRY), dict))
PACKAGE_JSON = ColumnCheck(
    "the JSON of a request or a package", lambda value: isinstance(_json(value, LONGEST_PACKAGE), dict)
)
REF = ColumnCheck("a reference", lambda value: _is_item_key(value) and ":" in value)
USEFUL = integer("-1, 0 or 1", least=-1, most=1)
SHARE = ColumnCheck("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1)
MAYBE_KEY = ColumnCheck("a row's number, or nothing", lambda value: value is None or KEY.holds(value))
MAYBE_TIME = ColumnCheck("a time in ISO 8601, or nothing", lambda value: value == "" or _is_time(value))
BLOB = ColumnCheck("a blob", lambda value: type(value) is bytes)


def strict_json(text: str) -> Any:
    """What JSON from outside says, or ValueError and nothing else.

    Nesting beyond reason, NaN, Infinity and a key given twice are refused like any other fault.

    The caller bounds the text's length: what is read takes some ten times the room.
    """
    try:
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found
