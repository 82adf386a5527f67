"""An entry of the audit: what is kept of a decision, bounded, and how it stands in a row of the catalog."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from research.governance.access import MemoryAccessDecision
from research.governance.audit_chain import canonical
from research.store.catalog.governance import ACCESS, AuditRow

MOST_REFS = 1000
_LONGEST_REF = 1000
_MOST_CHARACTERS = 200_000  # of all refs together
_LONGEST_NAME = 200
_MOST_POLICIES = 100
_LONGEST_PROBLEM = 500


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
    kind: str = ACCESS
    note: str = ""
    hash: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As `ctx audit --json` and the HTTP route tell it."""
        return {**asdict(self), "refs": [{"ref": ref, "effect": effect} for ref, effect in self.refs]}


def entry_of(row: AuditRow) -> MemoryAccessAudit:
    """What a row says; of one that was damaged, what is left of it."""
    try:
        data = json.loads(row.entry)
    except (ValueError, RecursionError):
        data = None
    data = data if isinstance(data, dict) else {}
    found = data.get("counts")
    counts = found if isinstance(found, dict) else {}
    return MemoryAccessAudit(
        seq=row.seq,
        at=row.at,
        principal=row.principal,
        tenant=row.tenant,
        owner=data.get("owner") is True,
        purpose=str(data.get("purpose", "")),
        decision=row.decision,
        action=str(data.get("action", "")),
        policy=str(data.get("policy", "")),
        policies=tuple(map(str, data.get("policies") or ())),
        allowed=_number(counts.get("allow")),
        redacted=_number(counts.get("redact")),
        denied=row.denied,
        refs=tuple((str(each[0]), str(each[1])) for each in data.get("refs") or () if len(each) == 2),
        more_refs=_number(data.get("more_refs")),
        trace_id=str(data.get("trace_id", "")),
        problem=str(data.get("problem", "")),
        kind=row.kind,
        note="" if row.kind == ACCESS else row.entry,
        hash=row.hash,
    )


def told_of(decision: MemoryAccessDecision, purpose: str, trace_id: str) -> dict[str, Any]:
    """What is kept of a decision. Long refs are kept as their digest, so that the entry stays bounded."""
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


def new_row(seq: int, at: str, kind: str, data: dict[str, Any]) -> AuditRow:
    """What has a column of its own stands there alone; the hash covers it."""
    data = dict(data)
    tenant, principal, decision = (_line(str(data.pop(name, ""))) for name in ("tenant", "principal", "decision"))
    denied = int(data.get("counts", {}).get("deny", 0))
    return AuditRow(seq, at, kind, tenant, principal, decision, denied, "", canonical(data))


def _line(text: str) -> str:
    """A name on one line, as the column takes it."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:_LONGEST_NAME].strip()


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
