"""The reading process: takes one job a line on stdin, reads a PDF into a spool file, reports on stdout.

It runs apart from the command so that a file which crashes, hangs or swells costs only itself.

    in   {"path": …, "spool": …, "skip": [pages that hung before], "encoder": name}
    out  {"event": "page", "page": 3, "pages": 40}
         {"event": "done", "title": …, "pages": 40, "warnings": […]}
         {"event": "failed", "code": "encrypted", "reason": …}
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from ingest.chunks import chunk_page
from ingest.pdf import open_pdf
from ingest.wire import page_line
from research.encoders.base import TextEncoder
from research.encoders.registry import load_text_encoder
from research.errors import CtxError, DocumentError

_MEMORY_LIMIT = 4 << 30  # bytes of address space


class Worker:
    """Reads documents one after another; keeps the tokenizer between them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._encoder: TextEncoder | None = None

    def run(self, job: dict[str, Any]) -> None:
        try:
            with Path(job["spool"]).open("w", encoding="utf-8") as spool:
                report = self._read(Path(os.fsdecode(bytes.fromhex(job["path"]))), spool, job)
            self._say(event="done", **report)  # only now is the whole spool on disk
        except DocumentError as error:
            self._say(event="failed", code=error.code, reason=error.message)
        except MemoryError:
            self._say(event="failed", code="too_large", reason="needs more memory than a document may take")
        except CtxError as error:
            self._say(event="failed", code="failed", reason=error.message)
        except OSError as error:
            self._say(event="failed", code="unreadable", reason=error.strerror or str(error))

    def _read(self, path: Path, spool: TextIO, job: dict[str, Any]) -> dict[str, object]:
        if self._encoder is None:
            self._encoder = load_text_encoder(job["encoder"], threads=1)
        encoder = self._encoder
        warnings: list[str] = []
        wordless = 0
        with open_pdf(path) as document:
            watch = self._watch(document.num_pages)
            for page in document.pages(skip=set(job["skip"]), progress=watch):
                chunks = chunk_page(page, title=document.title, count=encoder.count_tokens, window=encoder.max_tokens)
                spool.write(page_line(page, chunks) + "\n")
                wordless += not chunks and not page.error
                if page.error:
                    warnings.append(f"page {page.number}: {page.error}")
            warnings += document.warnings
            pages, title = document.num_pages, document.title
        if wordless:
            warnings.append(f"{wordless} of {pages} pages have no text layer")
        return {"title": title, "pages": pages, "warnings": warnings}

    def _watch(self, pages: int) -> Callable[[int], None]:
        """Reports every page before it is touched: the last one named is the one that crashed or hangs."""

        def hear(number: int) -> None:
            self._say(event="page", page=number, pages=pages)

        return hear

    def _say(self, **message: object) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def main() -> None:
    _confine()
    # Whatever a library prints must not be taken for a message.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    worker = Worker(out)
    for job in _jobs(sys.stdin):
        worker.run(job)


def _jobs(stream: TextIO) -> Iterator[dict[str, Any]]:
    for line in stream:
        yield json.loads(line)


def _confine() -> None:
    """Bound the memory, and leave Ctrl-C to the command, which ends this process when it has to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))


if __name__ == "__main__":
    main()
