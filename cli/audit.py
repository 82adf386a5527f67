"""ctx audit: who was shown what, by which decision; and whether that record is the one that was written."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_for
from research.errors import UsageError

if TYPE_CHECKING:
    from cli.options import Common
    from research.governance import MemoryAccessAudit
    from research.index import Index

DETAILS = """
Once there is a policy, every decision about what may be read is recorded before anything is shown: who asked, for what,
the refs and what was decided about each; never a text, a title or a question. Each entry is signed together with the
one before it, with a key in your config folder, and the last is also known there.

`verify` finds any entry that was changed, moved, added or is missing (exit code 1); also a backup that was brought back
and is older, because what came after it is gone. If you know why, `accept` notes that you do; what is changed later is
found again. Entries are kept for `audit_days` (90), then a signed checkpoint stands in their place.
In a pipe the fields of `list` are separated by tabs: number, time, principal, tenant, purpose, allowed, redacted,
denied.
"""

EPILOG = """
\b
Examples:
  ctx audit
  ctx audit list --principal ann --since 7d --denied
  ctx audit show 42
  ctx audit verify
  ctx audit list --json | jq -r '.entries[] | select(.denied > 0) | .decision'
"""


class Action(StrEnum):
    list = "list"
    show = "show"
    verify = "verify"
    accept = "accept"


def command(
    ctx: typer.Context,
    *,
    action: Annotated[
        Action, typer.Argument(metavar="list|show|verify|accept", help="What to do. Default: list.")
    ] = Action.list,
    entry: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="show: an entry's number, or a decision's id.", show_default=False),
    ] = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="list: who asked.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="list: not before 7d or 12h ago, or 2027-01-31.")
    ] = None,
    denied: Annotated[bool, typer.Option("--denied", help="list: only where something was denied.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=1_000_000, help="list: at most so many.")
    ] = 100,
) -> int:
    given = common(ctx)
    if (entry is None) is (action is Action.show):
        raise UsageError(
            "show needs the number of an entry" if entry is None else f"{action} takes no {entry!r}",
            hint="see them with: ctx audit list",
        )
    with index_for(given) as index:
        if action is Action.list:
            start = "" if since is None else _start(since)
            _list(index.policy.audit().entries(principal=principal, since=start, denied=denied, limit=limit), given)
            return 0
        if action is Action.show:
            _show(index.policy.audit().entry(entry or ""), given)
            return 0
        return _verify(index, given, accept=action is Action.accept)


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


def _list(entries: list[MemoryAccessAudit], given: Common) -> None:
    from cli.output import say, write_document, write_line

    if given.as_json:
        write_document("ctx.audit/1", {"entries": [each.to_dict() for each in entries]})
        return
    for each in entries:
        what = each.purpose if each.kind == "access" else each.kind
        counts = (each.allowed, each.redacted, each.denied)
        write_line(each.seq, each.at, each.principal, each.tenant, what, *counts)
    if not entries and not given.quiet:
        say("ctx: note: nothing is recorded that fits; without a policy nothing is decided, and nothing recorded")


def _show(entry: MemoryAccessAudit, given: Common) -> None:
    from cli.output import write_document, write_line

    if given.as_json:
        write_document("ctx.audit/1", {"entry": entry.to_dict()})
        return
    told = entry.to_dict()
    for name in ("seq", "at", "kind", "principal", "tenant", "owner", "purpose", "action", "decision", "policy"):
        write_line(name, told[name])
    write_line("policies", ", ".join(entry.policies))
    write_line("allowed, redacted, denied", entry.allowed, entry.redacted, entry.denied)
    for name in ("trace_id", "problem", "note"):
        if told[name]:
            write_line(name, told[name])
    for ref, effect in entry.refs:
        write_line(effect, ref)
    if entry.more_refs:
        write_line("more", entry.more_refs)


def _verify(index: Index, given: Common, *, accept: bool) -> int:
    from cli.output import say, write_document, write_line
    from research.governance import owner_principal

    found = index.policy.audit().accept(owner_principal()) if accept else index.policy.audit().verify()
    if given.as_json:
        write_document("ctx.audit/1", {"verification": asdict(found)})
    else:
        for problem in found.problems:
            write_line("broken", problem)
        if found.more_problems:
            write_line("broken", f"{found.more_problems} more")
        for problem in found.accepted:
            write_line("accepted", problem)
        if found.ok:
            removed = f"; a checkpoint stands for {found.removed:,} older ones" if found.removed else ""
            write_line("ok", f"{found.entries:,} entries, to number {found.last}{removed}")
    if not found.ok and not given.quiet:
        say("ctx: this is not the record that was written; if you know why (a restored backup): ctx audit accept")
    return 0 if found.ok else 1
