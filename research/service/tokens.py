"""Who a token stands for: the owner, whose token lies in a file, or somebody that the owner made one for.

The owner's token stands in a file of its own so that our own programs find it: whoever can read it is the owner anyway.
Nothing needs a restart: files are read again when they change, and so is the id of the index, so that a token for an
index that was removed does not open the one in its place.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from research.errors import CtxError
from research.folders import user_state
from research.governance.access import Principal, owner_principal
from research.private_files import Followed, create_private, read_private
from research.secret import Secret
from research.service.token_store import TokenEntry, default_store, digest, new_token, read_tokens
from research.store.files.marker import index_id
from research.store.files.paths import MARKER

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


def position_of(
    wanted: str, digests: Sequence[str], equal: Callable[[str, str], bool] = hmac.compare_digest
) -> int | None:
    """Where it stands. Every entry is compared, each in the same time whatever it holds: how long this takes tells
    nothing of which one fits, or how nearly."""
    found = None
    for position, known in enumerate(digests):
        if equal(wanted, known):
            found = position
    return found


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token gives, and until when. `id` stands for the token: a session that began with it ends with it."""

    id: str
    caller: Principal
    expires: datetime | None = None

    @property
    def is_over(self) -> bool:
        return self.expires is not None and self.expires <= datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Known:
    """The tokens that open the index, as they are now, and what they were made of."""

    owner: str
    entries: tuple[TokenEntry, ...]
    index: str
    digests: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()


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
        self._known = _Known("", (), "")

    def caller_for(self, token: str) -> Principal | None:
        """Who brings this token; None for everything that is none, whatever it is."""
        grant = self.grant_for(token)
        return grant.caller if grant is not None else None

    def grant_for(self, token: str) -> Grant | None:
        if not 0 < len(token) <= _LONGEST:
            return None
        known = self._now()
        found = position_of(digest(token), known.digests)
        return None if found is None or known.grants[found].is_over else known.grants[found]

    def owner_grant(self) -> Grant | None:
        """What a link for the owner's browser gives; None while there is no owner's token."""
        return next((grant for grant in self._now().grants if grant.caller.owner), None)

    def still_gives(self, grant: Grant) -> bool:
        """Whether its token was neither revoked nor replaced, and is not over."""
        return grant in self._now().grants and not grant.is_over

    def _now(self) -> _Known:
        owner = self._owner_digest.value() if self._owner_digest else ""
        entries, index = self._entries.value(), self._index.value()
        known = self._known
        if known.owner != owner or known.entries is not entries or known.index != index:
            known = self._known = self._build(owner, entries, index)
        return known

    def _build(self, owner: str, entries: tuple[TokenEntry, ...], index: str) -> _Known:
        found = [(owner, Grant(f"owner {owner}", self.owner))] if owner else []
        for entry in entries:
            if index and entry.index == index:
                until = datetime.fromisoformat(entry.expires_at) if entry.expires_at else None
                found.append((entry.sha256, Grant(entry.id, Principal(entry.principal, entry.tenant), until)))
        return _Known(owner, entries, index, tuple(each[0] for each in found), tuple(each[1] for each in found))
