"""Who asks, what they may see, and where policies come from: files that are the user's own, in no ingested folder.

The setting `policy` names a file or a folder of `*.cedar`; without it they are `policy.cedar` and `policies/*.cedar`
beside the user's config.toml. A document may say anything, and lies in a folder that others may fill: so no policy is
read from a place that was ingested, nor one that somebody else could write.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from research.errors import EncoderNotAllowed, PolicyError
from research.files import is_inside, read_checked, user_config

if TYPE_CHECKING:
    from research.models import Question, ResearchContext
    from research.settings import Settings
    from research.store import Reader

_LARGEST = 1 << 20  # bytes of a file
_MOST = 500  # files


def has_policies(setting: str) -> bool:
    """Return whether there is anything to be held to, be it a policy that is named and not there."""
    try:
        return bool(find_policies(setting))
    except PolicyError:
        return True


def check_encoder(name: str, settings: Settings) -> None:
    """Raise EncoderNotAllowed for an encoder at an address where a policy is in force. It would be sent all that is
    ingested, and no policy can decide that piece by piece: things are labelled after they were read."""
    from research.addresses import is_encoder_address, same_encoder

    if not is_encoder_address(name) or not has_policies(settings.policy):
        return
    if any(name == allowed or same_encoder(name, allowed) for allowed in settings.allowed_encoders):
        return
    raise EncoderNotAllowed(
        f"a policy is in force, and {name} would be sent the text of everything that is ingested",
        hint=f"use the embedded encoder; or, if all of it may go there: allowed_encoders = [{json.dumps(name)}]",
    )


def find_policies(setting: str, config: Path | None = None) -> list[Path]:
    """List the files there are, in order; none at all is no policy. Raises `PolicyError` where one is named that is not
    there, or a folder cannot be looked into."""
    if setting:
        place = Path(setting).expanduser().absolute()
        found = _in_folder(place) if place.is_dir() else [place] if _is_there(place) else []
        if not found:
            raise PolicyError(
                f"the setting policy names {place}, and there is no policy there",
                hint=f"write one: ctx policy example > {shlex.quote(str(place))}",
            )
        return found
    folder = config or user_config().parent
    single = folder / "policy.cedar"
    return [*([single] if _is_there(single) else []), *_in_folder(folder / "policies")]


def _in_folder(folder: Path) -> list[Path]:
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == ".cedar" and not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, error) from None
    if len(found) > _MOST:
        raise PolicyError(f"{folder} has more than {_MOST} policies", hint="join some of them into one file")
    return found


def _is_there(path: Path) -> bool:
    """Also a link that leads nowhere: it is meant to be a policy, and is none."""
    try:
        return bool(path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise unreadable(path, error) from None


def read_policy(path: Path) -> str:
    """Return its content, if the file and the folder it lies in are the user's own."""

    def check(status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise PolicyError(f"the policy {path} is no file", hint="name a file, or a folder of *.cedar")
        _check_owner(f"the policy {path}", path, status)
        for folder in {path.parent, Path(os.path.realpath(path)).parent}:
            if not (around := folder.stat()).st_mode & stat.S_ISVTX:  # there nobody may replace what is another's
                _check_owner(f"the folder {folder}, where a policy lies,", folder, around)

    try:
        content = read_checked(path, check, most=_LARGEST + 1)
    except OSError as error:
        raise unreadable(path, error) from None
    if len(content) > _LARGEST:
        raise PolicyError(f"{path} is larger than a policy would be ({_LARGEST:,} bytes)")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise PolicyError(f"{path} is no text in UTF-8", hint="write it anew: ctx policy example") from None


def _check_owner(what: str, path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise PolicyError(
            f"{what} belongs to another user (user id {status.st_uid})", hint="use a policy that is your own"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PolicyError(
            f"{what} can be written by others (mode {stat.S_IMODE(status.st_mode):o})",
            hint=f"chmod go-w {shlex.quote(str(path))}",
        )


def check_place(path: Path, reader: Reader | None, config: Path | None = None, index: Path | None = None) -> None:
    """Raise `PolicyError` for a file that lies where documents come from."""
    own = config or user_config().parent
    places = ingested_places(path, reader, own)
    if index is not None and is_inside(path, index) and not is_inside(path, own):
        places = [str(index), *places]
    if places:
        raise PolicyError(
            f"the policy {path} is not used: it lies in {places[0]}, which was ingested",
            hint=f"move it to {own}, or to a folder without documents",
        )


def ingested_places(path: Path, reader: Reader | None, own: Path) -> list[str]:
    """Return the places around a file that were ingested. The user's `own` folder is nobody else's, even if the home
    folder around it was ingested; a link that leads out of it is looked at where it leads."""
    from research.store import stored_text

    real = os.path.realpath(path)
    places = (
        [place for name in {real, str(path)} for place in reader.governance.ingested_around(stored_text(name))]
        if reader
        else []
    )
    return [place for place in places if is_inside(Path(place), own)] if is_inside(Path(real), own) else places


def unreadable(path: Path, error: OSError) -> PolicyError:
    return PolicyError(
        f"the policy {path} cannot be read: {error.strerror or type(error).__name__}",
        hint="see that it is there and yours to read; nothing is released without it",
    )


T = TypeVar("T")

Effect = Literal["allow", "redact", "deny"]
Action = Literal["read", "read_redacted", "read_text", "send"]
"""`read`: the thing as it is. `read_redacted`: with what a redactor finds masked, and where it finds nothing as its
reference alone, unless `read_text` is permitted, too. `send`: also to a model that runs elsewhere."""

CLASSIFICATIONS = ("Public", "Internal", "Confidential", "Restricted")
"""The strictest last; those that the catalog takes (`store.catalog.labels`)."""

UNKNOWN = "unknown"
"""The kind of a resource that there is not; no policy is asked about it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, and whose things they see. The owner is whoever runs the program; tenant "" is theirs."""

    name: str
    tenant: str = ""
    owner: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """A thing as a policy sees it."""

    ref: str
    kind: str  # page, document, memory, code, commit, experience, value, session
    path: str = ""  # of the file it was read from
    tags: frozenset[str] = frozenset()
    classification: str = "Internal"
    status: str = ""
    module: str = ""
    project: str = ""
    tenant: str = ""  # whose it is; "" is the index's owner


@dataclass(frozen=True, slots=True)
class Ruling:
    """What was decided about one thing, and by which policies. `text`: a redacted thing in which nothing was found to
    mask still comes with its text."""

    resource: Resource
    effect: Effect
    policies: tuple[str, ...] = ()
    text: bool = False

    @property
    def ref(self) -> str:
        return self.resource.ref


@dataclass(frozen=True, slots=True)
class MemoryAccessDecision:
    """One decision about a set of things. With a `problem` (a policy that does not parse, an engine that fails) all of
    it is denied."""

    id: str
    principal: Principal
    action: Action
    rulings: tuple[Ruling, ...] = ()
    policy: str = ""  # the revision that decided
    decided_at: str = ""
    problem: str = ""
    policies: tuple[str, ...] = field(default=(), kw_only=True)  # the names of all that decided something

    def counts(self) -> dict[str, int]:
        found = {"allow": 0, "redact": 0, "deny": 0}
        for ruling in self.rulings:
            found[ruling.effect] += 1
        return found


@dataclass(frozen=True, slots=True)
class MemoryAccessAudit:
    """One entry: who, what for, by which decision, and what it said of each ref. `kind` is "access"; others are marks
    of the chain itself, with `note`."""

    seq: int
    at: str
    principal: str = ""
    tenant: str = ""
    owner: bool = False
    purpose: str = ""
    decision: str = ""
    action: str = ""
    policy: str = ""
    policies: tuple[str, ...] = ()
    allowed: int = 0
    redacted: int = 0
    denied: int = 0
    refs: tuple[tuple[str, str], ...] = ()
    more_refs: int = 0  # that were decided about, too, and are not listed
    trace_id: str = ""
    problem: str = ""
    kind: str = "access"
    note: str = ""
    hash: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as `ctx audit --json` and the HTTP route show it."""
        return {**asdict(self), "refs": [{"ref": ref, "effect": effect} for ref, effect in self.refs]}


class AllowAll:
    """What the owner may see without a policy: all of it, and nothing is on record. `enforce.PolicyAccess` is what
    anybody else may."""

    problem = ""

    def shown(self, things: Sequence[T], purpose: str, ref: Callable[[T], str] = str) -> Sequence[T]:
        return things

    def each_shown(self, things: Iterator[T], purpose: str, ref: Callable[[T], str]) -> Iterator[T]:
        return things

    def asking(self, question: Question) -> Question:
        return question

    def without_unsendable(self, context: ResearchContext) -> ResearchContext:
        return context


def owner_principal() -> Principal:
    """Return the user who runs the program."""
    import pwd

    user = os.geteuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:  # a container may run as a user that nobody entered
        name = ""
    return Principal(name or str(user), owner=True)
