"""What .gitignore files say, as git reads them: the last pattern that fits decides, the deepest file first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LARGEST = 1 << 18  # bytes
_MOST_PATTERNS = 2_000
# A pattern with more stars in a row takes for ever on a name that nearly fits; nobody means one.
_MOST_STARS = 3


@dataclass(frozen=True, slots=True)
class Ignoring:
    """The patterns that hold in a folder: those of the folders above, then its own."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()  # the folder each is of, the outermost first

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        for folder, spec in reversed(self.specs):
            name = path[len(folder) :].lstrip("/") + ("/" if is_folder else "")
            included = spec.check_file(name).include
            if included is not None:
                return included
        return False

    def within(self, folder: str) -> Ignoring:
        """The same with the folder's own, if it has any."""
        return self.having(folder, Path(folder, ".gitignore"))

    def having(self, folder: str, file: Path) -> Ignoring:
        spec = _read(file)
        return self if spec is None else Ignoring((*self.specs, (folder, spec)))


def ignoring_at(folder: Path) -> tuple[Ignoring, Path | None]:
    """What holds for a folder from above, and the repository it is in."""
    repository = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)
    found = Ignoring()
    if repository is None:
        return found, None
    found = found.having(str(repository), repository / ".git" / "info" / "exclude")
    above = [each for each in folder.parents if each == repository or repository in each.parents]
    for each in reversed(above):
        found = found.having(str(each), each / ".gitignore")
    return found, repository


def _read(file: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return None
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    patterns = list(_harmless(lines))[:_MOST_PATTERNS]
    return GitIgnoreSpec.from_lines(patterns) if patterns else None


def _harmless(lines: Sequence[str]) -> Iterator[str]:
    from pathspec import GitIgnoreSpec

    for line in lines:
        parts = line.split("/")
        if any(part.count("*") + part.count("[") > _MOST_STARS for part in parts) or parts.count("**") > _MOST_STARS:
            continue
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:  # no pattern of git's
            continue
        yield line
