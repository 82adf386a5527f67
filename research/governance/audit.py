"""The audit: who was shown what, by which decision. It is added to and never changed, and `verify` finds out if it was.

    audit = Audit(index.paths, lambda: index.catalog, settings)
    audit.record(decision, "ask")      # before anything of it is released; what raises here releases nothing
    audit.verify().ok

An entry holds refs and what was decided about each: no text, no title, no question. How entries hold each other is in
`audit_chain`.

An entry is committed in the catalog first, then the head is moved forward; `record` returns when both are safe on disk.
A process that is killed in between leaves an entry behind the head, which is sound if its hash is.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from research.errors import CHECK, CtxError, NothingFoundError
from research.files import locked
from research.governance.access import MemoryAccessAudit, MemoryAccessDecision, Principal
from research.governance.audit_chain import (
    AuditFiles,
    Head,
    Sign,
    Verification,
    canonical,
    check_chain,
    data_of,
    genesis,
    hash_after,
    hash_of,
    number_of,
    unverifiable,
    verify_chain,
    why_broken,
)
from research.reports import Check
from research.settings import Settings
from research.store import ACCEPTED, ACCESS, CHECKPOINT, RESTART, AuditRow, DriverError, IndexPaths, index_id
from research.store import governance as rows

if TYPE_CHECKING:
    from research.store import Catalog, Writer

MOST_REFS = 1000
_LONGEST_REF = 1000
_MOST_CHARACTERS = 200_000  # of all refs together
_LONGEST_NAME = 200
_MOST_POLICIES = 100
_LONGEST_PROBLEM = 500
_NEWEST = 10_000  # entries that the doctor looks at
_KEY = re.compile(r"[0-9a-f]{64}")


class Audit:
    """The audit of one index. May be used by many threads, and by many processes beside each other."""

    def __init__(
        self,
        paths: IndexPaths,
        catalog: Callable[[], Catalog],
        settings: Settings,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._paths, self._catalog, self._settings, self._now = paths, catalog, settings, now
        self._turn = threading.Lock()  # threads wait here, which costs nothing; processes wait at a file

    def record(self, decision: MemoryAccessDecision, purpose: str, *, trace_id: str = "") -> MemoryAccessAudit:
        """Add an entry for a decision. Raises CtxError if it cannot be kept (BusyError, a full disk, a folder that may
        only be read): then nothing of it may be released."""
        return entry_of(self._append(ACCESS, _kept(decision, purpose, trace_id))[-1])

    def entries(
        self,
        *,
        principal: str | None = None,
        tenant: str | None = None,
        since: str = "",
        denied: bool = False,
        limit: int = 100,
    ) -> list[MemoryAccessAudit]:
        """List entries, the newest first; of a principal, of a tenant, since a time in ISO 8601 (UTC), with something
        denied."""
        if not self._paths.exists:
            return []
        with self._catalog().snapshot() as reader:
            found = rows.list_rows(reader, tenant=tenant, principal=principal, since=since, denied=denied, limit=limit)
        return [entry_of(row) for row in found]

    def entry(self, which: str) -> MemoryAccessAudit:
        """Return an entry by its number or by the id of its decision. Raises NothingFoundError."""
        found = None
        if self._paths.exists:
            with self._catalog().snapshot() as reader:
                found = rows.row_of_decision(reader, which)
                if found is None and which.isdecimal() and len(which) < 18:
                    found = rows.row_at(reader.connection, int(which))
        if found is None:
            raise NothingFoundError(f"no entry of the audit is {which!r}", hint="see them with: ctx audit list")
        return entry_of(found)

    def verify(self, *, newest: int | None = None) -> Verification:
        """Return whether all entries, or the newest, are those that were written, and none is missing."""
        if not self._paths.exists:
            return Verification(ok=True)
        files = self._files()
        try:
            sign = files.signer()
            # Read before the rows: entries that come meanwhile are behind it, and fit.
            head = None if sign is None else files.head(sign)
            with self._catalog().snapshot() as reader:
                return verify_chain(reader, files, sign, head, newest)
        except CtxError as error:
            return unverifiable(f"the audit cannot be verified: {error.message}")
        except DriverError:
            return unverifiable("the audit cannot be verified: the catalog cannot be read where it stands")

    def accept(self, by: Principal) -> Verification:
        """Note, as an entry, that the owner knows of what `verify` finds now. What is changed later is found again."""
        if self._paths.exists and not self.verify().ok:
            self._append()
            known = [[each.first, each.last, each.digest] for each in self.verify().problems if each.digest]
            self._append(ACCEPTED, {"principal": by.name, "tenant": by.tenant, "problems": known})
        return self.verify()

    def _files(self) -> AuditFiles:
        index = index_id(self._paths.root)
        if not index:
            raise CtxError(f"{self._paths.root} carries no marker of an index, and so has no audit", hint=CHECK)
        return AuditFiles(index)

    def _append(self, kind: str = "", data: dict[str, Any] | None = None) -> list[AuditRow]:
        """Write an entry, after a restart where what is there does not fit the head; without `data` the restart
        alone."""
        files = self._files()
        with self._turn, locked(files.head_file):
            sign, reason = files.signer(), ""
            if sign is None:
                sign, reason = files.new_signer(), "key"
            head = files.head(sign)
            with self._catalog().short_write() as connection:
                last = rows.last_row(connection)
                if head is None and last is None and not files.has_head:
                    head, reason = Head(0, genesis(sign, files.index)), ""
                    files.write_head(sign, head)  # before there is an entry, so that one without a head is a finding
                elif head is None:
                    reason = reason or ("head" if files.has_head else "no head")
                else:
                    reason = reason or why_broken(connection, head, last)
                before = Head(last.seq, hash_after(last)) if last else Head(0, genesis(sign, files.index))
                entries = [] if data is None else [(kind, data)]
                if reason:
                    known = head.seq if head else 0
                    entries.insert(0, (RESTART, {"reason": reason, "last_seq": before.seq, "head_seq": known}))
                    before = replace(before, seq=max(before.seq, known))
                at = self._now().astimezone(UTC).isoformat(timespec="milliseconds")
                made: list[AuditRow] = []
                for each, content in entries:
                    made.append(_next_row(sign, before, at, each, content))
                    before = Head(made[-1].seq, made[-1].hash)
                rows.add_rows(connection, made)
                self._remove_old(connection, sign, files.index)
            if made:
                files.write_head(sign, before)
            return made

    def _remove_old(self, connection: Writer, sign: Sign, index: str) -> None:
        """Put a signed checkpoint in the place of entries that are older than `audit_days`."""
        oldest = (self._now().astimezone(UTC) - timedelta(days=self._settings.audit_days)).isoformat()
        first = rows.first_row(connection)
        if first is None or first.at >= oldest:
            return
        through = rows.last_before(connection, oldest)
        if not through or (first.kind == CHECKPOINT and first.seq == through):
            return
        seen = check_chain(rows.rows_between(connection, last=through), sign, index)
        last = rows.row_at(connection, through)
        assert last is not None
        content = {
            "through": through,
            "last_hash": hash_after(last),
            "entries": seen.removed + seen.entries - (first.kind == CHECKPOINT),
            "counts": {"deny": sum(row.denied for row in rows.rows_between(connection, last=through))},
            "problems": len(seen.problems) + seen.more_problems,
        }
        rows.remove_through(connection, through)
        rows.add_rows(connection, [_next_row(sign, Head(through - 1, ""), last.at, CHECKPOINT, content)])


def check_audit(audit: Callable[[], Audit]) -> list[Check]:
    """Check the newest entries and the head, for the doctor. Nothing is said where nothing was recorded."""
    from research.store import guarded

    def check() -> Iterator[Check]:
        found = audit().verify(newest=_NEWEST)
        if not found.ok:
            count = len(found.problems) + found.more_problems
            more = f" (and {count - 1} more)" if count > 1 else ""
            yield Check("audit", "error", f"{found.problems[0]}{more}", "ctx audit verify")
        elif found.entries:
            yield Check("audit", "ok", f"the newest {found.entries:,} entries are as they were written")

    return guarded("audit", check, CHECK)


def entry_of(row: AuditRow) -> MemoryAccessAudit:
    """Return what a row says; of one that was damaged, what is left of it."""
    data = data_of(row)
    counts = data.get("counts")
    counts = counts if isinstance(counts, dict) else {}
    return MemoryAccessAudit(
        seq=row.seq,
        at=row.at,
        principal=row.principal,
        tenant=row.tenant,
        owner=data.get("owner") is True,
        decision=row.decision,
        policies=tuple(map(str, data.get("policies") or ())),
        allowed=number_of(counts.get("allow")),
        redacted=number_of(counts.get("redact")),
        denied=row.denied,
        refs=tuple((str(each[0]), str(each[1])) for each in data.get("refs") or () if len(each) == 2),
        more_refs=number_of(data.get("more_refs")),
        kind=row.kind,
        note="" if row.kind == ACCESS else row.entry,
        hash=row.hash,
        **{name: str(data.get(name, "")) for name in ("purpose", "action", "policy", "trace_id", "problem")},
    )


def _kept(decision: MemoryAccessDecision, purpose: str, trace_id: str) -> dict[str, Any]:
    """Return what is kept of a decision. Long refs are kept as their digest, so that the entry stays bounded."""
    refs: list[tuple[str, str]] = []
    room = _MOST_CHARACTERS
    for ruling in decision.rulings[:MOST_REFS]:
        ref = ruling.ref
        if len(ref) > _LONGEST_REF:
            ref = f"sha256:{sha256(canonical(ref).encode()).hexdigest()}"
        room -= len(ref)
        if room < 0:
            break
        refs.append((ref, ruling.effect))
    return {
        "principal": decision.principal.name,
        "tenant": decision.principal.tenant,
        "owner": decision.principal.owner,
        "purpose": _line(purpose),
        "decision": decision.id,
        "action": decision.action,
        "policy": _line(decision.policy),
        "policies": [_line(name) for name in decision.policies[:_MOST_POLICIES]],
        "counts": decision.counts(),
        "refs": refs,
        "more_refs": len(decision.rulings) - len(refs),
        "trace_id": _line(trace_id),
        "problem": decision.problem[:_LONGEST_PROBLEM],
    }


def _next_row(sign: Sign, before: Head, at: str, kind: str, data: dict[str, Any]) -> AuditRow:
    """Return a signed row behind another. What has a column of its own stands there alone."""
    data = dict(data)
    tenant, principal, decision = (_line(str(data.pop(name, ""))) for name in ("tenant", "principal", "decision"))
    denied = int(data.get("counts", {}).get("deny", 0))
    row = AuditRow(before.seq + 1, at, kind, tenant, principal, decision, denied, "", canonical(data))
    return replace(row, hash=hash_of(sign, row, before.hash))


def _line(text: str) -> str:
    """Return a name on one line, as the column takes it."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:_LONGEST_NAME].strip()
