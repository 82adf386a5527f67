"""ctx audit: who was shown what, by which decision; and whether that record is the one that was written."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cli.call import Call, Verbs
from cli.options import LimitOption, PrincipalOption
from research.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from research.governance import MemoryAccessAudit, Verification

_LISTED = 100
_FACTS = ("seq", "at", "kind", "principal", "tenant", "owner", "purpose", "action", "decision", "policy")


def list_entries(
    call: Call,
    *,
    principal: PrincipalOption = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Not before 7d or 12h ago, or 2027-01-31.")
    ] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Only where something was denied.")] = False,
    limit: LimitOption = None,
) -> int:
    """List the decisions, the newest first: number, time, principal, tenant, purpose, allowed, redacted, denied.

    Examples:
      ctx audit
      ctx audit list --principal ann --since 7d --denied
      ctx audit list --json | jq -r '.entries[] | select(.denied > 0) | .decision'
    """
    start = "" if since is None else _start(since)
    with call.index() as index:
        entries = index.policy.audit().entries(principal=principal, since=start, denied=denied, limit=limit or _LISTED)
    lines = (
        (
            each.seq,
            each.at,
            each.principal,
            each.tenant,
            each.purpose if each.kind == "access" else each.kind,
            each.allowed,
            each.redacted,
            each.denied,
        )
        for each in entries
    )
    call.show("ctx.audit/1", {"entries": [each.to_dict() for each in entries]}, lines)
    if not entries and not call.as_json:
        call.note("nothing is recorded that fits; without a policy nothing is decided, and nothing recorded")
    return 0


def _start(since: str) -> str:
    from datetime import UTC, datetime, timedelta

    number, unit = since[:-1], since[-1:]
    if number.isdecimal() and len(number) < 6 and unit in {"d", "h"}:
        ago = timedelta(days=int(number)) if unit == "d" else timedelta(hours=int(number))
        return (datetime.now(UTC) - ago).isoformat()
    try:
        return datetime.fromisoformat(since).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise UsageError(f"--since cannot be {since!r}", hint="say 7d, 12h, or a date such as 2027-01-31") from None


def show_entry(
    call: Call,
    entry: Annotated[str, typer.Argument(metavar="ID", help="An entry's number, or a decision's id.")],
) -> int:
    """Print one decision: the refs, and what was decided about each.

    Examples:
      ctx audit show 42
    """
    with call.index() as index:
        found = index.policy.audit().entry(entry)
    call.show("ctx.audit/1", {"entry": found.to_dict()}, _entry_lines(found))
    return 0


def _entry_lines(entry: MemoryAccessAudit) -> Iterator[tuple[object, ...]]:
    fields = entry.to_dict()
    yield from ((name, fields[name]) for name in _FACTS)
    yield "policies", ", ".join(entry.policies)
    yield "allowed, redacted, denied", entry.allowed, entry.redacted, entry.denied
    yield from ((name, fields[name]) for name in ("trace_id", "problem", "note") if fields[name])
    yield from ((effect, ref) for ref, effect in entry.refs)
    if entry.more_refs:
        yield "more", entry.more_refs


def verify(call: Call) -> int:
    """Find any entry that was changed, moved, added or is missing (exit code 1); also a backup that was brought back
    and is older, because what came after it is gone.

    Examples:
      ctx audit verify
    """
    with call.index() as index:
        return _verified(call, index.policy.audit().verify())


def accept(call: Call) -> int:
    """Record that you know why `verify` finds something; what is changed later is found again.

    Examples:
      ctx audit accept
    """
    from research.governance import owner_principal

    with call.index() as index:
        return _verified(call, index.policy.audit().accept(owner_principal()))


def _verified(call: Call, found: Verification) -> int:
    lines: list[tuple[str, object]] = [("broken", problem) for problem in found.problems]
    lines += [("broken", f"{found.more_problems} more")] * bool(found.more_problems)
    lines += [("accepted", problem) for problem in found.accepted]
    if found.ok:
        removed = f"; a checkpoint stands for {found.removed:,} older ones" if found.removed else ""
        lines.append(("ok", f"{found.entries:,} entries, to number {found.last}{removed}"))
    call.show("ctx.audit/1", {"verification": asdict(found)}, lines)
    if not found.ok:
        call.say("this is not the record that was written; if you know why (a restored backup): ctx audit accept")
    return 0 if found.ok else 1


AUDIT = Verbs(
    """Once there is a policy, every decision about what may be read is recorded before anything is shown: who asked,
    for what, the refs and what was decided about each; never a text, a title or a question. Each entry is signed
    together with the one before it, with a key in your config folder, and the last is also known there. Entries are
    kept for `audit_days` (90), then a signed checkpoint stands in their place. In a pipe the fields of a line are
    separated by tabs.""",
    {"list": list_entries, "show": show_entry, "verify": verify, "accept": accept},
)
