"""Who a token stands for: the owner, whose token lies in a file, or somebody that the owner made one for.

The owner's token stands in a file of its own so that our own programs find it: whoever can read it is the owner anyway.
Nothing needs a restart: files are read again when they change, and so is the id of the index, so that a token for an
index that was removed does not open the one in its place.

Further tokens, made for others by the owner of an index: a file with one entry a token, and only its hash in it.

Each opens one index and says who asks. The token itself is shown once, by `ctx token new`, and kept nowhere.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from research.errors import CtxError, NothingFoundError, UsageError
from research.files import Followed, create_private, locked, read_private, replace_private, user_state
from research.governance import Principal, owner_principal
from research.secret import Secret
from research.store import MARKER, IndexPaths, index_id

SCHEMA = "ctx.tokens/1"

_NAME = r"^\w[\w.@+:-]{0,63}$"
_MOST_TOKENS = 1000  # each is compared with what a request brings
_MOST_DAYS = 3650


def _time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("it has no zone")
    return text


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """What is kept of a token. `index` is the lasting id of the index it opens; `expires_at` is empty if it lasts."""

    id: Annotated[str, Field(pattern="^[0-9a-f]{8}$")]
    principal: Annotated[str, Field(pattern=_NAME)]
    tenant: Annotated[str, Field(pattern=_NAME)]
    created_at: Annotated[str, AfterValidator(_time)]
    expires_at: Literal[""] | Annotated[str, AfterValidator(_time)]
    index: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]

    def is_over(self, now: datetime) -> bool:
        return bool(self.expires_at) and datetime.fromisoformat(self.expires_at) <= now


@dataclass(frozen=True, slots=True)
class _Stored:
    schema: Literal["ctx.tokens/1"]
    tokens: tuple[TokenEntry, ...]


def default_store() -> Path:
    return user_state() / "serve" / "tokens.json"


def new_token() -> str:
    """256 random bits. The beginning lets people and programs that look for leaked secrets recognise one."""
    return f"ctx_{secrets.token_urlsafe(32)}"


def digest(token: str) -> str:
    """What is kept and compared. A plain hash is right for 256 random bits: nobody can try them all, however fast the
    hash is. Slow ones (bcrypt, argon2) protect passwords that people choose, and would cost every request 100 ms."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def make_token(
    paths: IndexPaths, principal: str, tenant: str, *, days: int | None = None, store: Path | None = None
) -> tuple[Secret, TokenEntry]:
    """A new token for this index: the token itself, which nobody can show again, and what is kept of it."""
    _check_name("principal", principal)
    _check_name("tenant", tenant)
    if days is not None and not 1 <= days <= _MOST_DAYS:
        raise UsageError(f"a token cannot last {days} days", hint=f"--expires 1 to {_MOST_DAYS}, or leave it out")
    if not (paths.exists or index_id(paths.root)):
        raise paths.nothing_found()
    paths.create()  # an index of 0.1.0 gets its lasting id here
    token, now, file = new_token(), datetime.now(UTC), store or default_store()
    until = now + timedelta(days=days) if days else None
    with locked(file):
        kept = [entry for entry in read_tokens(file) if not entry.is_over(now)]
        if len(kept) >= _MOST_TOKENS:
            raise CtxError(f"there are {len(kept)} tokens already", hint="end some: ctx token revoke ID")
        entry = TokenEntry(
            id=_free_id({entry.id for entry in kept}),
            principal=principal,
            tenant=tenant,
            created_at=now.isoformat(timespec="seconds"),
            expires_at=until.isoformat(timespec="seconds") if until else "",
            index=index_id(paths.root),
            sha256=digest(token),
        )
        _write(file, [*kept, entry])
    return Secret(token), entry


def tokens_of(paths: IndexPaths, store: Path | None = None) -> list[TokenEntry]:
    """Those that open this index, also those that are over, in the order in which they were made."""
    index = index_id(paths.root)
    return [entry for entry in read_tokens(store or default_store()) if index and entry.index == index]


def revoke_tokens(ids: Sequence[str], store: Path | None = None) -> list[TokenEntry]:
    """End these tokens, whichever index they open: all of them or, if one is unknown, none."""
    file = store or default_store()
    with locked(file):
        entries = read_tokens(file)
        unknown = sorted(set(ids) - {entry.id for entry in entries})
        if unknown:
            raise NothingFoundError(
                f"there is no token with the id {unknown[0]!r}", hint="see those of an index with: ctx token list"
            )
        _write(file, [entry for entry in entries if entry.id not in ids])
    return [entry for entry in entries if entry.id in ids]


def read_tokens(store: Path) -> tuple[TokenEntry, ...]:
    """All there are, of every index; none if there is no file yet. `CtxError` for a file that is not as we write it."""
    try:
        content = read_private(store)
    except FileNotFoundError:
        return ()
    try:
        return TypeAdapter(_Stored).validate_json(content).tokens
    except ValidationError:
        raise CtxError(f"{store} is damaged, or of a newer ctx", hint="move it away, and make new tokens") from None


def _check_name(what: str, name: str) -> None:
    if not re.fullmatch(_NAME, name):
        raise UsageError(f"{name!r} cannot be a {what}", hint="up to 64 letters, digits and . _ - @ + : and no spaces")


def _write(file: Path, entries: Sequence[TokenEntry]) -> None:
    document = {"schema": SCHEMA, "tokens": [asdict(entry) for entry in entries]}
    replace_private(file, json.dumps(document, indent=1).encode() + b"\n")


def _free_id(taken: set[str]) -> str:
    while (name := secrets.token_hex(4)) in taken:
        pass
    return name


_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{20,500}={0,2}")  # what may stand behind "Bearer " (RFC 6750)
_LONGEST = 512  # characters; what is longer is no token


def default_token_file() -> Path:
    """The owner's token, where our own clients look for it."""
    return user_state() / "serve" / "token"


def owner_token(path: Path) -> Secret:
    """The token in this file, which is made if it is missing. `UntrustedError` for a file that others may have seen or
    written, `CtxError` for one that holds no token."""
    with suppress(FileNotFoundError):
        return _read_owner(path)
    with suppress(FileExistsError):  # another server was first
        create_private(path, f"{new_token()}\n".encode())
    return _read_owner(path)


def _read_owner(path: Path) -> Secret:
    text = read_private(path).decode("latin-1").strip()
    if not _TOKEN.fullmatch(text):
        what = "is empty" if not text else "holds something else than a token"
        raise CtxError(
            f"{path} {what}", hint="remove it, so that a new one is made; or write 20 to 500 letters and digits into it"
        )
    return Secret(text)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token gives, and until when. `id` stands for the token: a session that began with it ends with it."""

    id: str
    caller: Principal
    expires: datetime | None = None

    @property
    def is_over(self) -> bool:
        return self.expires is not None and self.expires <= datetime.now(UTC)


class TokenBook:
    """All tokens that open the index in a folder. May be used from many threads."""

    def __init__(self, root: Path, *, owner_file: Path | None, store: Path | None = None) -> None:
        """`owner_file` is None where everybody is the owner and no token is needed."""
        self.owner = owner_principal()
        store = store or default_store()
        self._entries: Followed[tuple[TokenEntry, ...]] = Followed(store, lambda: read_tokens(store), ())
        self._index = Followed(root / MARKER, lambda: index_id(root), "")
        self._owner_digest = (
            Followed(owner_file, lambda: digest(_read_owner(owner_file).reveal()), "") if owner_file else None
        )
        self._made_of: tuple[str, tuple[TokenEntry, ...], str] = ("", (), "")
        self._grants: dict[str, Grant] = {}

    def caller_for(self, token: str) -> Principal | None:
        """Return who brings this token; None for everything that is none, whatever it is."""
        grant = self.grant_for(token)
        return grant.caller if grant is not None else None

    def grant_for(self, token: str) -> Grant | None:
        """Look it up by its hash, whose likeness to another says nothing of the tokens: no time is worth measuring."""
        if not 0 < len(token) <= _LONGEST:
            return None
        grant = self._now().get(digest(token))
        return None if grant is None or grant.is_over else grant

    def owner_grant(self) -> Grant | None:
        """Return what a link for the owner's browser gives; None while there is no owner's token."""
        return next((grant for grant in self._now().values() if grant.caller.owner), None)

    def still_gives(self, grant: Grant) -> bool:
        """Whether its token was neither revoked nor replaced, and is not over."""
        return grant in self._now().values() and not grant.is_over

    def _now(self) -> dict[str, Grant]:
        """The tokens that open the index, as they are now, by their hashes."""
        owner = self._owner_digest.value() if self._owner_digest else ""
        made_of = (owner, self._entries.value(), self._index.value())
        if self._made_of != made_of:
            _, entries, index = made_of
            grants = {each.sha256: _grant(each) for each in entries if index and each.index == index}
            self._made_of, self._grants = made_of, grants | ({owner: Grant(owner, self.owner)} if owner else {})
        return self._grants


def _grant(entry: TokenEntry) -> Grant:
    until = datetime.fromisoformat(entry.expires_at) if entry.expires_at else None
    return Grant(entry.id, Principal(entry.principal, entry.tenant), until)
