"""Files and folders of the user: which are used that nobody named, which may be trusted, and how private ones are kept.

The index is the nearest .ctx upward, the settings the nearest ctx.toml, else the user's own. Like git, ctx uses only
what is the user's own: an index or a settings file in a parent folder that others can write would catch everybody who
works below it. A file of secrets is used only if it is a plain file of this user that nobody else may read or write.
That is asked of the opened file, not of its name, which could mean another file a moment later.
"""

from __future__ import annotations

import os
import shlex
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from research.errors import BusyError, CtxError, UntrustedError, next_step

if TYPE_CHECKING:
    from research.settings import Settings

PROJECT_FOLDER = ".ctx"
PROJECT_FILE = "ctx.toml"


def index_folder(settings: Settings, folder: Path | None = None) -> Path:
    """Where the index is, without making it."""
    if settings.index:
        return Path(settings.index).expanduser().absolute()
    for candidate in _upward(folder or Path.cwd()):
        found = candidate / PROJECT_FOLDER
        if found.is_dir():
            check_owner(found, settings.safe_folders)
            return found
    return user_data()


def check_owner(found: Path, safe_folders: Collection[str]) -> None:
    """What nobody named is used only if it is the user's own."""
    reason = _why_strange(found)
    if not reason or _is_safe(found, safe_folders):
        return
    instead = f"name it with --index {shlex.quote(str(found))}" if found.is_dir() else "move it away"
    raise UntrustedError(
        f"found {found}, and did not use it: it {reason}",
        hint=f"{instead}, or if you trust it, add {shlex.quote(str(found.parent))} to safe_folders in {user_config()}",
    )


def user_data() -> Path:
    from platformdirs import user_data_path

    return user_data_path("ctx", appauthor=False)


def user_state() -> Path:
    """For what may be forgotten: which pages the last answer cited."""
    from platformdirs import user_state_path

    return user_state_path("ctx", appauthor=False)


def user_config() -> Path:
    from platformdirs import user_config_path

    return user_config_path("ctx", appauthor=False) / "config.toml"


def _upward(folder: Path) -> Iterator[Path]:
    folder = folder.absolute()
    yield folder
    yield from folder.parents


def project_files(folder: Path) -> list[Path]:
    """The nearest ctx.toml upward, if there is one."""
    return next(([c / PROJECT_FILE] for c in _upward(folder) if (c / PROJECT_FILE).is_file()), [])


def is_inside(place: Path, folder: Path) -> bool:
    """Whether a path stays in a folder, with every link followed. (realpath, because resolve() raises for a loop.)"""
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))


def _why_strange(path: Path) -> str:
    """Why not to trust it, after "it"; empty if it is the user's own and nobody else may write it."""
    found, led_to = path.lstat(), path.stat()
    if stat.S_ISLNK(found.st_mode) and stat.S_ISDIR(led_to.st_mode):
        return "is a link to another folder"
    for status in (found, led_to):
        if status.st_uid not in _own_ids():
            return f"belongs to another user (user id {status.st_uid})"
    if led_to.st_mode & stat.S_IWOTH:
        return f"can be written by everybody (mode {stat.S_IMODE(led_to.st_mode):o})"
    return ""


def _own_ids() -> set[int]:
    """The user's; for root also that of whoever called sudo."""
    own = os.geteuid()
    called_by = os.environ.get("SUDO_UID", "")
    return {own, int(called_by)} if own == 0 and called_by.isdecimal() else {own}


def _is_safe(path: Path, safe_folders: Collection[str]) -> bool:
    """Whether the user lists it, or the folder that it stands in, as safe."""
    names = {os.path.realpath(os.path.expanduser(folder)) for folder in safe_folders}  # noqa: PTH111  as typed
    return bool(names & {os.path.realpath(path), os.path.realpath(path.parent)})


T = TypeVar("T")
Identity = tuple[int, int, int, int, int]
"""What changes when a file does."""

SUMS = "SHA256SUMS"

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_MOST = 4 * 1024 * 1024
_LOCK_SECONDS = 10.0
# A file that changes twice within a tick of the file system's clock looks the same; some clocks tick every two seconds.
_TICK_NS = 2_000_000_000


def make_private_folder(folder: Path) -> None:
    """The folder, for this user alone. One that is there stays as it is: what is put into it is checked by itself."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _failed(f"cannot make the folder {folder}", error) from error


def read_checked(path: Path, check: Callable[[os.stat_result], None], *, most: int, follow: bool = True) -> bytes:
    """Up to so many bytes of a file that `check` has passed. It is shown the opened file, because a name could mean
    another one a moment later."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        check(os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


def read_private(path: Path) -> bytes:
    """The content. `FileNotFoundError` if there is none; `UntrustedError` for a link, something
    that is no file, or a file that others own, read or write."""
    try:
        return read_checked(path, lambda status: _check(path, status), most=_MOST, follow=False)
    except FileNotFoundError:
        raise
    except OSError as error:
        if path.is_symlink():
            raise UntrustedError(f"{path} is a link, and is not used", hint=_elsewhere(path)) from error
        raise _failed(f"cannot read {path}", error) from error


def create_private(path: Path, data: bytes) -> None:
    """A new file, whole from its first moment on; `FileExistsError` if anything has that name. It survives a power cut
    once this returns."""
    make_private_folder(path.parent)
    with _written_aside(path, data) as aside:
        try:
            os.link(aside, path, follow_symlinks=False)  # unlike a rename it never takes another's place
        except FileExistsError:
            raise
        except OSError as error:
            raise _failed(f"cannot write {path}", error) from error


def replace_private(path: Path, data: bytes) -> None:
    """Put this content in the place of a file, or of nothing: readers see the old one whole, or the new one."""
    make_private_folder(path.parent)
    with _written_aside(path, data) as aside:
        try:
            aside.replace(path)
        except OSError as error:
            raise _failed(f"cannot write {path}", error) from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time for as long as a file is read, changed and replaced. Raises `BusyError`."""
    from filelock import FileLock, Timeout

    make_private_folder(path.parent)
    lock = FileLock(path.with_name(f"{path.name}.lock"), timeout=_LOCK_SECONDS, mode=0o600, poll_interval=0.01)
    try:
        lock.acquire()
    except Timeout as error:
        raise BusyError(f"another process is changing {path}", hint="run the same command again") from error
    except OSError as error:
        raise _failed(f"cannot lock {path}", error) from error
    try:
        yield
    finally:
        lock.release()


def identity_of(status: os.stat_result) -> Identity:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def is_settled(identity: Identity) -> bool:
    """Whether the file's next change would give it another identity."""
    return time.time_ns() - identity[3] >= _TICK_NS


class Followed(Generic[T]):
    """What a file says, read again whenever it is another file or has changed. One that is missing, unsafe or damaged
    says `nothing`; why stands in the log, once."""

    def __init__(self, path: Path, load: Callable[[], T], nothing: T) -> None:
        self._path, self._load, self._nothing = path, load, nothing
        self._read: tuple[Identity | None, T] = (None, nothing)

    def value(self) -> T:
        try:
            status = self._path.lstat()
        except (OSError, ValueError):
            self._read = (None, self._nothing)
            return self._nothing
        now = identity_of(status)
        seen, value = self._read
        if seen != now:
            value = self._load_or_nothing()
            self._read = (now if is_settled(now) or value == self._nothing else None, value)
        return value

    def _load_or_nothing(self) -> T:
        try:
            return self._load()
        except (CtxError, OSError) as error:
            from research.observe import log_failure

            log_failure("service", f"{self._path.name} is not used", error)
            return self._nothing


def _check(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UntrustedError(f"{path} is no file", hint=_elsewhere(path))
    if status.st_uid != os.geteuid():
        raise UntrustedError(f"{path} belongs to another user (user id {status.st_uid})", hint=_elsewhere(path))
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        raise UntrustedError(
            f"{path} may be read or written by others (mode {mode:o}); what it holds may be known",
            hint=f"remove it, so that a new one is made; or, if nobody has seen it: chmod 600 {shlex.quote(str(path))}",
        )


def _elsewhere(path: Path) -> str:
    return f"remove it, so that a new one is made: rm {shlex.quote(str(path))}"


@contextmanager
def _written_aside(path: Path, data: bytes) -> Iterator[Path]:
    """A file beside it, written and safe on disk; gone afterwards, if nobody moved it. Then its folder is synced."""
    aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield aside
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:
        raise
    except OSError as error:
        raise _failed(f"cannot write {path}", error) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def _failed(what: str, error: OSError) -> CtxError:
    hint = next_step(error) and "make room there, or make the folder writable"
    return CtxError(f"{what}: {error.strerror or error}", hint=hint or "name another file, or see what is there")


def sha256(path: Path) -> str:
    """Return the file's SHA-256 in hex."""
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(folder: Path, names: Iterable[str]) -> list[str]:
    """Problems with these files, one line each; empty when all are as listed."""
    try:
        lines = (folder / SUMS).read_text("utf-8").splitlines()
    except OSError as error:
        return [f"{SUMS} cannot be read: {error.strerror}"]
    expected = {name: digest for digest, name in (line.split() for line in lines if line.strip())}
    found = ((name, _problem(folder / name, expected.get(name))) for name in names)
    return [f"{name} {problem}" for name, problem in found if problem]


def _problem(path: Path, expected: str | None) -> str:
    if expected is None:
        return f"is not listed in {SUMS}"
    if not path.is_file():
        return "is missing"
    return "" if sha256(path) == expected else f"is damaged: its SHA-256 is not the one in {SUMS}"


def write_list(folder: Path, names: Iterable[str]) -> None:
    """The list, as `sha256sum` words it."""
    (folder / SUMS).write_text("".join(f"{sha256(folder / name)}  {name}\n" for name in names), "utf-8")
