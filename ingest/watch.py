"""Following folders: when a run is due, because PDFs came, changed or went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ingest.gone import Identity, folders_of
from research.errors import CtxError

_SETTLE_MS = 1_000  # files are copied in pieces: a run waits until nothing has happened for this long
_LONGEST_MS = 10_000  # and at most so long, where something happens all the time


class PdfFilter:
    """Which changes concern the index: PDFs, and folders that came or went with what is in them. Hidden files do not,
    and neither does what is written into the index itself."""

    def __init__(self, tops: Sequence[Path], index: Path) -> None:
        self._tops = [top.absolute() for top in tops]
        self._index = index.absolute()
        self.folders: dict[str, Identity] = {}

    def remember(self, files: Iterable[str]) -> None:
        """The folders of these files: one that is deleted leaves no other sign of what it was. Those of before stay,
        for what was lost with one may still be in the index."""
        self.folders |= folders_of(files)

    def __call__(self, change: object, path: str) -> bool:
        place = Path(path).absolute()
        if place.is_relative_to(self._index) or self._is_hidden(place):
            return False
        if place in self._tops:  # of its own changes only its end concerns us
            return not place.is_dir()
        return place.suffix.lower() == ".pdf" or str(place) in self.folders or place.is_dir()

    def _is_hidden(self, path: Path) -> bool:
        top = next((top for top in self._tops if path.is_relative_to(top)), None)
        below = path.relative_to(top).parts if top else path.parts
        return any(part.startswith(".") for part in below)


def changes(folders: Sequence[Path], wanted: PdfFilter, *, poll: bool = False) -> Iterator[None]:
    """One step as soon as the folders are watched, for what happened before; then one whenever something has changed
    and come to rest. Ends never; Ctrl-C is the caller's.

    `poll` looks every few hundred milliseconds instead of being told by the system: for network drives.
    """
    from watchfiles import watch

    begun = False
    try:
        for changed in watch(
            *(folder.absolute() for folder in folders),
            watch_filter=wanted,
            debounce=_LONGEST_MS,
            step=_SETTLE_MS,
            rust_timeout=_SETTLE_MS,
            yield_on_timeout=True,
            force_polling=poll or None,
        ):
            if changed or not begun:
                begun = True
                yield
    except OSError as error:
        raise CtxError(
            f"the folder can no longer be watched: {error.strerror or error}",
            hint="--poll works without the system's help, also on network drives",
        ) from error
