"""Further tokens, made for others by the owner of an index: a file with one entry a token, and only its hash in it.

Each opens one index and says who asks. The token itself is shown once, by `ctx token new`, and kept nowhere.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from research.errors import CtxError, NothingFoundError, UsageError
from research.folders import user_state
from research.private_files import locked, read_private, replace_private
from research.secret import Secret
from research.store.files.marker import index_id
from research.store.files.paths import IndexPaths

SCHEMA = "ctx.tokens/1"

_NAME = re.compile(r"\w[\w.@+:-]{0,63}")
_ID = re.compile(r"[0-9a-f]{8}")
_INDEX = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_TOKENS = 1000  # each is compared with what a request brings
_MOST_DAYS = 3650


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """What is kept of a token. `index` is the lasting id of the index it opens; `expires_at` is empty if it lasts."""

    id: str
    principal: str
    tenant: str
    created_at: str
    expires_at: str
    index: str
    sha256: str

    def is_over(self, now: datetime) -> bool:
        return bool(self.expires_at) and datetime.fromisoformat(self.expires_at) <= now


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
        return _parse(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CtxError(f"{store} is damaged, or of a newer ctx", hint="move it away, and make new tokens") from None


def _parse(document: Any) -> tuple[TokenEntry, ...]:
    if document["schema"] != SCHEMA:
        raise ValueError
    names = [field.name for field in fields(TokenEntry)]
    entries = tuple(TokenEntry(**{name: str(found[name]) for name in names}) for found in document["tokens"])
    if not all(map(_is_sound, entries)):
        raise ValueError
    return entries


def _is_sound(entry: TokenEntry) -> bool:
    times = [datetime.fromisoformat(time) for time in (entry.created_at, entry.expires_at or entry.created_at)]
    named = _NAME.fullmatch(entry.principal) and _NAME.fullmatch(entry.tenant)
    known = _ID.fullmatch(entry.id) and _INDEX.fullmatch(entry.index) and _DIGEST.fullmatch(entry.sha256)
    return bool(named and known) and all(time.tzinfo for time in times)


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be a {what}", hint="up to 64 letters, digits and . _ - @ + : and no spaces")


def _write(file: Path, entries: Sequence[TokenEntry]) -> None:
    document = {"schema": SCHEMA, "tokens": [asdict(entry) for entry in entries]}
    replace_private(file, json.dumps(document, indent=1).encode() + b"\n")


def _free_id(taken: set[str]) -> str:
    while (name := secrets.token_hex(4)) in taken:
        pass
    return name
