"""Following folders: when a run is due, because PDFs came, changed or went."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from research.errors import CtxError

_SETTLE_MS = 1_000  # files are copied in pieces: a run waits until nothing has happened for this long
_LONGEST_MS = 10_000  # and at most so long, where something happens all the time


class PdfFilter:
    """Which changes concern the index: PDFs, and folders that came or went with what is in them. Hidden files and
    whatever else is written in the folders (the index itself, it may be) do not."""

    def __init__(self, tops: Sequence[Path]) -> None:
        self._tops = [top.absolute() for top in tops]
        self._folders: set[str] = set()

    def remember(self, files: Iterable[str]) -> None:
        """The folders of these files: one that is deleted leaves no other sign of what it was."""
        self._folders = {str(folder) for file in files for folder in Path(file).parents}

    def __call__(self, change: object, path: str) -> bool:
        if self._is_hidden(Path(path)):
            return False
        return path.lower().endswith(".pdf") or path in self._folders or os.path.isdir(path)  # noqa: PTH112  text from the system

    def _is_hidden(self, path: Path) -> bool:
        top = next((top for top in self._tops if path.is_relative_to(top)), None)
        below = path.relative_to(top).parts if top else path.parts
        return any(part.startswith(".") for part in below)


def changes(folders: Sequence[Path], wanted: PdfFilter, *, poll: bool = False) -> Iterator[None]:
    """One step whenever something has changed and come to rest. Ends never; Ctrl-C is the caller's.

    `poll` looks every few hundred milliseconds instead of being told by the system: for network drives.
    """
    from watchfiles import watch

    try:
        for _ in watch(
            *folders, watch_filter=wanted, debounce=_LONGEST_MS, step=_SETTLE_MS, force_polling=poll or None
        ):
            yield
    except OSError as error:
        raise CtxError(
            f"the folder can no longer be watched: {error.strerror or error}",
            hint="--poll works without the system's help, also on network drives",
        ) from error
