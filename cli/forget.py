"""ctx forget: memories go, from everywhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_for
from research.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.options import Common
    from research.index import Index
    from research.memories import Forgotten, Memory

DETAILS = """
What is forgotten is gone: the text, its words and vectors, the feedback on it, and summaries that were made from it.
One that others say as well leaves its place to them. On a terminal it asks first; elsewhere --session, --about and
--all need --yes. Documents are taken out with ctx remove.
"""

EPILOG = """
\b
Examples:
  ctx forget mem-0f3a9c
  ctx forget --session planning --yes
  ctx forget --about "my old address" --dry-run
  ctx forget --all
"""

_MOST_SHOWN = 20  # before the question


def command(
    ctx: typer.Context,
    *,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="Ids of memories.", show_default=False)
    ] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="NAME", help="Those of a conversation.")] = None,
    about: Annotated[
        str | None, typer.Option("--about", metavar="TEXT", help="Those that have all of these words.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be forgotten.")] = False,
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose memory. Default: your own.")] = "",
) -> int:
    from cli.output import say

    given = common(ctx)
    if [bool(ids), session is not None, about is not None, everything].count(True) != 1:
        raise UsageError("name ids, or one of --session, --about and --all", hint="see them with: ctx recall")
    with index_for(given) as index:
        chosen = _chosen(index, ids or (), session, about, tenant)
        if dry_run:
            _report_planned(chosen, given)
            return 0
        if not yes and sys.stdin.isatty():
            if not _confirmed(chosen):
                say("ctx: nothing was forgotten")
                return 1
        elif not yes and not ids:
            raise UsageError(
                f"{len(chosen)} memories would go; nothing was forgotten",
                hint="see them with --dry-run, forget them with --yes",
            )
        if session is not None or everything:
            gone = index.memories.forget(tenant=tenant, session=session, everything=everything)
        else:
            gone = index.memories.forget(*(memory.id for memory in chosen), tenant=tenant)
        _report(gone, given)
    return 0


def _chosen(index: Index, ids: Sequence[str], session: str | None, about: str | None, tenant: str) -> list[Memory]:
    """What is meant. Raises NothingFoundError for nothing."""
    if ids:
        return [index.memories.get(name, tenant=tenant, as_told=True) for name in dict.fromkeys(ids)]
    if about is not None:
        chosen = list(index.memories.list(tenant=tenant, about=about)) if about.strip() else []
    else:
        chosen = list(index.memories.list(tenant=tenant, session=session))
    if not chosen:
        raise NothingFoundError("there is nothing to forget", hint="see what there is with: ctx recall")
    return chosen


def _report(gone: Forgotten, given: Common) -> None:
    from cli.output import write_document, write_line

    if given.as_json:
        write_document("ctx.forget/1", {"forgotten": list(gone.ids), "summaries": list(gone.summaries)})
        return
    for name in gone.ids:
        write_line("forgotten", name)
    for name in gone.summaries:
        write_line("forgotten with it", name)


def _report_planned(chosen: Sequence[Memory], given: Common) -> None:
    from cli.output import write_document, write_line
    from research.text import phrase

    if given.as_json:
        listed = [{"id": memory.id, "text": memory.text} for memory in chosen]
        write_document("ctx.forget/1", {"forgotten": [], "summaries": [], "would_forget": listed})
        return
    for memory in chosen:
        write_line("would forget", memory.id, phrase(memory.text))


def _confirmed(chosen: Sequence[Memory]) -> bool:
    from cli.output import say
    from research.text import phrase

    for memory in chosen[:_MOST_SHOWN]:
        say(f"  {memory.id}  {phrase(memory.text)[:100]}")
    if len(chosen) > _MOST_SHOWN:
        say(f"  … and {len(chosen) - _MOST_SHOWN} more")
    number = "1 memory" if len(chosen) == 1 else f"{len(chosen)} memories"
    return typer.confirm(f"Forget {number}?", err=True)
