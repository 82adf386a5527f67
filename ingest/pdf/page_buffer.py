"""Raw pages on disk between the two passes, so that memory does not grow and nothing is read twice."""

from __future__ import annotations

import marshal
import tempfile
from collections.abc import Iterator
from typing import IO

from ingest.pdf.lines import Line, RawPage

_IN_MEMORY = 4 << 20


class PageBuffer:
    """Appends pages, then gives them back in order. The file vanishes when closed, or with the process."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by close()

    def append(self, page: RawPage) -> None:
        lines = [
            (ln.text, ln.x0, ln.y0, ln.x1, ln.y1, ln.size, ln.bold, ln.mono, ln.block, ln.upright) for ln in page.lines
        ]
        head = (page.number, page.width, page.height, page.label, page.rotated)
        data = marshal.dumps((head, lines, page.pictures, (page.ruled, page.error, page.painted)))
        self._file.write(len(data).to_bytes(8, "big") + data)

    def __iter__(self) -> Iterator[RawPage]:
        position = 0
        while True:
            self._file.seek(position)
            size = int.from_bytes(self._file.read(8), "big")
            if not size:
                return
            (number, width, height, label, rotated), lines, pictures, rest = marshal.loads(self._file.read(size))
            position += 8 + size
            yield RawPage(number, width, height, label, rotated, tuple(Line(*line) for line in lines), pictures, *rest)

    def close(self) -> None:
        self._file.close()
