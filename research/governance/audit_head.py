"""What the audit keeps apart from the index, in the user's config folder: the key that signs its entries, and for each
index the head, which knows the last of them.

    audit/key                one for all indexes of a user, made with the first entry
    audit/<index id>.json    the number and hash of the last entry, signed; it only ever goes forward

Whoever may write the index but not these can change nothing without being found out. Whoever may write both, as the
user's own programs may, can put an older state of both in their place: against that no file of the same user helps.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from research.errors import CtxError
from research.folders import user_config
from research.private_files import create_private, locked, read_private, replace_private

_SCHEMA = "ctx.audit-head/1"
_KEY = re.compile(r"[0-9a-f]{64}")
_INDEX = re.compile(r"[0-9a-f]{32}")


def audit_folder() -> Path:
    return user_config().parent / "audit"


class AuditKey:
    """Signs, and tells nobody what with."""

    __slots__ = ("_sign", "id")

    def __init__(self, key: bytes) -> None:
        def sign(name: str, text: str) -> str:
            return hmac.new(key, f"{name}\n{text}".encode(), sha256).hexdigest()

        self._sign = sign  # no attribute holds the key, so nothing that lists attributes finds it
        self.id = sign("ctx.audit/key", "")[:16]

    def sign(self, name: str, text: str) -> str:
        """For one purpose each, by `name`: what is signed as one thing is not taken for another."""
        return self._sign(name, text)


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry that was acknowledged to anybody."""

    seq: int
    hash: str


class AuditFiles:
    """The key, and the head of one index."""

    def __init__(self, index: str, folder: Path | None = None) -> None:
        """`index` is its lasting id."""
        if not _INDEX.fullmatch(index):
            raise ValueError("no id of an index")
        self.index = index
        self.folder = folder or audit_folder()
        self.key_file = self.folder / "key"
        self.head_file = self.folder / f"{index}.json"

    def key(self) -> AuditKey | None:
        """None if there is none. Raises CtxError for a file that others may have seen, or that holds no key."""
        try:
            text = read_private(self.key_file).decode("latin-1").strip()
        except FileNotFoundError:
            return None
        if not _KEY.fullmatch(text):
            raise CtxError(
                f"{self.key_file} holds no key of the audit",
                hint="bring it back from a copy; or move it away, and the audit goes on with a new one, which"
                " ctx audit verify will tell",
            )
        return AuditKey(bytes.fromhex(text))

    def make_key(self) -> AuditKey:
        with suppress(FileExistsError):  # another process was first
            create_private(self.key_file, f"{secrets.token_hex(32)}\n".encode())
        made = self.key()
        assert made is not None
        return made

    def has_head(self) -> bool:
        return self.head_file.exists() or self.head_file.is_symlink()

    def head(self, key: AuditKey) -> Head | None:
        """None if it is missing, or none that this key has signed."""
        try:
            found = json.loads(read_private(self.head_file))
            head, signature = Head(int(found["seq"]), str(found["hash"])), str(found["signature"])
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError, CtxError):
            return None
        return head if hmac.compare_digest(signature.encode(), self._signature(key, head).encode()) else None

    def write_head(self, key: AuditKey, head: Head) -> None:
        """In the place of whatever is there; the caller holds the lock."""
        document = {"schema": _SCHEMA, "seq": head.seq, "hash": head.hash, "signature": self._signature(key, head)}
        replace_private(self.head_file, json.dumps(document).encode() + b"\n")

    def advance(self, key: AuditKey, head: Head) -> None:
        """Let the head know of this entry, unless it knows of a later one. It survives a power cut once this returns.
        A head that is not ours is left for the next entry to find."""
        with self.locked():
            known = self.head(key)
            if known is not None and known.seq < head.seq:
                self.write_head(key, head)

    def locked(self) -> AbstractContextManager[None]:
        """One process at a time. Raises BusyError."""
        return locked(self.head_file)

    def _signature(self, key: AuditKey, head: Head) -> str:
        return key.sign("ctx.audit/head", f"{self.index} {head.seq} {head.hash}")
