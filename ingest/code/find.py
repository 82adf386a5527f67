"""Finding the source files of a folder: without what git ignores, what others wrote, and what no person did.

.gitignore files count as git reads them: the last pattern that fits decides, the deepest file first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.code.parse import language_of
from ingest.code.units import GENERATED, LARGEST
from ingest.scan import Scanned, os_reason, path_problem, to_utf8
from research.errors import NothingFoundError
from research.store import CATALOG, MARKER

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_FILES = 200_000  # of one run; a tree with more is named by its parts

TOO_LARGE = f"larger than {LARGEST // 1_000_000} MB"
IGNORED = "ignored by git"
VENDORED = "of others (vendored)"
BEYOND = f"beyond {MOST_FILES:,} files"

# Folders of what others wrote, or a tool; some names only beside what makes them such.
_VENDORED = frozenset(
    """
    node_modules bower_components jspm_packages vendor _vendor vendored third_party third-party thirdparty site-packages
    dist-packages virtualenv __pycache__ __pypackages__ pods carthage
    """.split()  # noqa: SIM905
)
_BUILT = {
    "target": ("Cargo.toml", "pom.xml", "build.sbt"),
    "build": ("build.gradle", "build.gradle.kts", "CMakeLists.txt", "setup.py", "pyproject.toml", "package.json"),
    "dist": ("package.json", "setup.py", "pyproject.toml"),
    "out": ("package.json", "build.gradle", "CMakeLists.txt"),
}
_GENERATED = re.compile(
    r"(?i)\.min\.(?:js|css|mjs)$|_pb2(?:_grpc)?\.pyi?$|\.pb(?:\.gw)?\.(?:go|cc|h)$|[._-]generated\.\w+$|\.g\.dart$"
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    path: str
    file_path: str  # as its project calls it
    root: str  # of the project
    language: str
    size: int = 0
    modified: float = 0.0
    stamp: str = ""

    @property
    def name(self) -> str:
        """The path as it is stored."""
        return to_utf8(self.path)


def find_code(paths: Sequence[Path], *, follow_links: bool = False) -> Scanned[SourceFile]:
    """Find the source files: as given, or in folders to the bottom; each once and in a stable order."""
    walk = _Walk(follow_links)
    for path in paths:
        walk.add(path)
    return walk.found


def no_code(paths: Sequence[Path], found: Scanned[SourceFile]) -> NothingFoundError:
    hint = "ctx ingest PATH --code takes source files; without --code it takes PDFs"
    if found.passed_over:
        most = ", ".join(f"{what or 'without ending'} {count:,}" for what, count in found.passed_over.most_common(3))
        hint = f"passed over: {most}"
    return NothingFoundError(f"no source code in {', '.join(map(to_utf8, paths))}", hint=hint)


class _Walk:
    def __init__(self, follow_links: bool) -> None:
        self.found = Scanned[SourceFile]()
        self._follow = follow_links
        self._files: set[tuple[int, int]] = set()  # taken before, also under another name
        self._folders: set[tuple[int, int]] = set()  # entered before; this is where loops end

    def add(self, path: Path) -> None:
        problem = path_problem(path)
        if problem is not None:
            raise problem
        whole = Path(os.path.normpath(path.absolute()))
        folder = whole if path.is_dir() else whole.parent
        ignoring, repository = _ignoring_at(folder)
        root = str(repository or folder)
        if path.is_dir():
            self._walk(str(whole), root, ignoring)
        elif not self._take(str(whole), root, asked=True):
            self.found.passed_over[whole.suffix.lower()] += 1

    def _walk(self, top: str, root: str, ignoring: _Ignoring) -> None:
        """A list of what is left to do: folders can be nested deeper than calls."""
        real_top = os.path.realpath(top)
        waiting = [(top, ignoring)]
        while waiting:
            folder, above = waiting.pop()
            try:
                status = os.stat(folder)  # noqa: PTH116  many, and bare names
                if (status.st_dev, status.st_ino) in self._folders:
                    continue
                self._folders.add((status.st_dev, status.st_ino))
                with os.scandir(folder) as entries:
                    shown = sorted(self._worth_a_look(entries), key=lambda entry: entry.name)
            except OSError as error:
                self.found.unreadable.append((folder, f"the folder {os_reason(error)}"))
                continue
            here = above.within(folder)
            if all(os.path.lexists(os.path.join(folder, name)) for name in (MARKER, CATALOG)):  # noqa: PTH118
                continue  # an index is no source
            folders = [entry.path for entry in shown if self._look_at(entry, root, here, real_top)]
            waiting += [(each, here) for each in reversed(folders)]

    def _worth_a_look(self, entries: Iterable[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        """Folders, source files and links. Whatever else a folder holds, be it a million files, is only counted."""
        kept = 0
        for entry in entries:
            if entry.name.startswith("."):  # caches, version control, our own index
                continue
            if entry.is_symlink() or not entry.is_file(follow_symlinks=False) or language_of(entry.name):
                kept += 1
                if kept <= MOST_FILES:
                    yield entry
                else:
                    self.found.passed_over[BEYOND] += 1
            else:
                self.found.passed_over[os.path.splitext(entry.name)[1].lower()] += 1  # noqa: PTH122

    def _look_at(self, entry: os.DirEntry[str], root: str, here: _Ignoring, top: str) -> bool:
        """Take a file; say whether the entry is a folder to enter."""
        try:
            is_folder, is_link = entry.is_dir(), entry.is_symlink()
            if is_link and not self._is_followed(entry, top):
                return False
            if not is_folder and not entry.is_file():  # never devices, pipes or sockets: opening them can block
                return False
        except OSError as error:
            self.found.unreadable.append((entry.path, os_reason(error)))
            return False
        if is_folder and _is_vendored(entry):
            self.found.passed_over[VENDORED] += 1
        elif here.ignores(entry.path, is_folder=is_folder):
            self.found.passed_over[IGNORED] += 1
        elif is_folder:
            return True
        else:
            self._take(entry.path, root)
        return False

    def _is_followed(self, entry: os.DirEntry[str], top: str) -> bool:
        """Whether a link is to be looked at. What it leads to inside the folder is found by its own name."""
        if self._follow:
            return True
        real = os.path.realpath(entry.path)
        if not os.path.lexists(real):
            self.found.dangling_links.append(entry.path)
        elif not Path(real).is_relative_to(top):
            self.found.external_links.append(entry.path)
        return False

    def _take(self, path: str, root: str, *, asked: bool = False) -> bool:
        """`asked`: by its own name, so nothing but its size speaks against it."""
        name = os.path.basename(path)  # noqa: PTH119
        language = language_of(name)
        if not language:
            return False
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError as error:
            self.found.unreadable.append((path, os_reason(error)))
            return True
        identity = (status.st_dev, status.st_ino)
        if identity in self._files:
            return True
        if status.st_size > LARGEST:
            self.found.passed_over[TOO_LARGE] += 1
        elif not asked and _GENERATED.search(name):
            self.found.passed_over[GENERATED] += 1
        elif len(self.found.files) >= MOST_FILES:
            self.found.passed_over[BEYOND] += 1
        else:
            self._files.add(identity)
            stamp = f"{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_ino}"
            own, modified = os.path.relpath(path, root), status.st_mtime_ns / 1e9
            self.found.files.append(SourceFile(path, own, root, language, status.st_size, modified, stamp))
        return True


def _is_vendored(entry: os.DirEntry[str]) -> bool:
    name = entry.name.lower()
    path = Path(entry.path)
    if name in _VENDORED or any((path.parent / maker).exists() for maker in _BUILT.get(name, ())):
        return True
    return name in ("env", "venv") and (path / "pyvenv.cfg").exists()


_LARGEST_IGNORE_FILE = 1 << 18  # bytes
_MOST_PATTERNS = 2_000
# A pattern with more stars in a row takes for ever on a name that nearly fits; nobody means one.
_MOST_STARS = 3


@dataclass(frozen=True, slots=True)
class _Ignoring:
    """The patterns that hold in a folder: those of the folders above, then its own."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()  # the folder each is of, the outermost first

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        for folder, spec in reversed(self.specs):
            name = path[len(folder) :].lstrip("/") + ("/" if is_folder else "")
            included = spec.check_file(name).include
            if included is not None:
                return included
        return False

    def within(self, folder: str) -> _Ignoring:
        """The same with the folder's own, if it has any."""
        return self.having(folder, Path(folder, ".gitignore"))

    def having(self, folder: str, file: Path) -> _Ignoring:
        spec = _read_ignore_file(file)
        return self if spec is None else _Ignoring((*self.specs, (folder, spec)))


def _ignoring_at(folder: Path) -> tuple[_Ignoring, Path | None]:
    """What holds for a folder from above, and the repository it is in."""
    repository = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)
    found = _Ignoring()
    if repository is None:
        return found, None
    found = found.having(str(repository), repository / ".git" / "info" / "exclude")
    above = [each for each in folder.parents if each == repository or repository in each.parents]
    for each in reversed(above):
        found = found.having(str(each), each / ".gitignore")
    return found, repository


def _read_ignore_file(file: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        if not file.is_file() or file.stat().st_size > _LARGEST_IGNORE_FILE:
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
