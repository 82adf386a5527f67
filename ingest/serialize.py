"""Pages on their way from a reading process to the catalog: one JSON line each.

JSON and not pickle, because the process that writes it has just parsed a file nobody vouches for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from research.boxes import Box
from research.context.injection.detector import packed_signals
from research.records import Block, Chunk, Line, Page, Region

PageWithChunks = tuple[Page, list[Chunk]]


def encode_page(page: Page, chunks: list[Chunk]) -> str:
    return json.dumps({"page": page, "chunks": chunks}, default=_fields)


def decode_page(line: str) -> PageWithChunks:
    entry = json.loads(line)
    return _page(entry["page"]), [_chunk(chunk) for chunk in entry["chunks"]]


def read_pages(path: Path) -> Iterator[PageWithChunks]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield decode_page(line)


def _fields(record: Any) -> dict[str, Any]:
    # dataclasses.asdict copies every value on the way, which took a tenth of the time of reading a page.
    return {name: getattr(record, name) for name in record.__slots__}


def _page(fields: dict[str, Any]) -> Page:
    blocks = tuple(Block(**{**block, "box": _box(block["box"])}) for block in fields.pop("blocks"))
    # Looked at here, once and for all questions: the process that opened the file is not trusted with it.
    return Page(**{**fields, "signals": packed_signals(fields["markdown"])}, blocks=blocks)


def encode_lines(lines: Iterable[Line]) -> list[list[Any]]:
    return [[line.text, *line.box] for line in lines]


def decode_lines(entries: list[list[Any]]) -> tuple[Line, ...]:
    return tuple(Line(text, _box(box)) for text, *box in entries)


def _chunk(fields: dict[str, Any]) -> Chunk:
    regions = tuple(Region(region["start"], _box(region["box"])) for region in fields["regions"])
    return Chunk(**{**fields, "box": _box(fields["box"]), "regions": regions})


def _box(values: list[float]) -> Box:
    return cast(Box, tuple(values))
