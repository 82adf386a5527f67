"""ctx remember: tell the index something, or a file of memories."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import common, index_for
from research.errors import SomeFilesFailedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.options import Common
    from research.conversation import Imported
    from research.index import Index

DETAILS = """
What is told is kept in the index, found by ctx recall and by an agent's turns, and forgotten with ctx forget. What says
the same as something told before is joined to it; what takes an older fact back marks it. It is accepted while an
ingest runs. --import takes JSON Lines: {"text": "…"} and whatever else a memory has, as ctx recall --export writes it.
A line that is wrong costs itself alone (exit code 4).
"""

EPILOG = """
\b
Examples:
  ctx remember "Anna moved to Bonn"
  ctx remember "The wifi password is swordfish" --tag home --importance 0.9
  ctx remember "Standup is at 9:30 this week" --expires 7d
  ctx remember --import memories.jsonl
"""

_SHOWN = 5  # lines that failed


def command(
    ctx: typer.Context,
    *,
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="What to remember, or - to read it from stdin.", show_default=False),
    ] = None,
    file: Annotated[
        str | None, typer.Option("--import", metavar="FILE|-", help="Read JSON Lines, a memory each.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Its kind. Default: memory.")] = None,
    category: Annotated[str, typer.Option("--category", metavar="NAME", help="A category of yours.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; may be given again.")] = None,
    session: Annotated[str, typer.Option("--session", metavar="NAME", help="The conversation it belongs to.")] = "",
    speaker: Annotated[str, typer.Option("--speaker", metavar="NAME", help="Who says it.")] = "",
    importance: Annotated[
        float | None, typer.Option("--importance", metavar="0..1", help="How much it matters. Default: 0.5.")
    ] = None,
    expires: Annotated[
        str, typer.Option("--expires", metavar="TIME", help="When it ends: 30d, 12h, or 2027-01-31.")
    ] = "",
    key: Annotated[str, typer.Option("--key", metavar="KEY", help="What was told under it before stays.")] = "",
    replaces: Annotated[str, typer.Option("--replaces", metavar="ID", help="The memory that it says anew.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", metavar="NAME", help="A part of your memories.")] = "",
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose memory. Default: your own.")] = "",
) -> int:
    given = common(ctx)
    with index_for(given) as index:
        if file is not None:
            if text:
                raise UsageError("--import takes its texts from the file", hint="ctx remember --import FILE")
            return _import(index, file, tenant, given)
        from research.memories import NewMemory

        new = NewMemory(
            _text(text or ()),
            type=kind or "memory",
            category=category,
            importance=0.5 if importance is None else importance,
            tags=tuple(tag or ()),
            namespace=namespace,
            session=session,
            speaker=speaker,
            expires_at=_expiry(expires),
            key=key,
            replaces=replaces,
        )
        _report(index.memories.remember_batch([new], tenant=tenant), given)
    return 0


def _text(given: Sequence[str]) -> str:
    if not given:
        raise UsageError("there is nothing to remember", hint='ctx remember "Anna moved to Bonn"')
    if list(given) == ["-"]:
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    return " ".join(given).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _expiry(said: str) -> Any:
    if not said:
        return ""
    from datetime import UTC, datetime

    from research.conversation import expiry

    return expiry(said, datetime.now(UTC))


def _report(memories: Sequence[Any], given: Common) -> None:
    from cli.output import write_document, write_line

    if given.as_json:
        told = [{"id": memory.id, "outcome": memory.outcome, "joined_to": memory.joined_to} for memory in memories]
        write_document("ctx.remember/1", {"memories": told, "failed": []})
        return
    for memory in memories:
        write_line(memory.outcome, memory.id, *([memory.joined_to] if memory.joined_to else []))


def _import(index: Index, file: str, tenant: str, given: Common) -> int:
    from cli.output import say, write_document, write_line
    from research.conversation import import_memories

    with _opened(file) as stream:
        done = import_memories(index, stream, tenant=tenant)
    if given.as_json:
        failed = [{"line": line, "error": reason} for line, reason in done.failures]
        counts = {"stored": done.stored, "joined": done.joined, "known": done.known}
        write_document("ctx.remember/1", {"memories": [], **counts, "failed": failed})
    else:
        for name in ("stored", "joined", "known", "failed"):
            write_line(name, getattr(done, name))
    for line, reason in [] if given.quiet else done.failures[:_SHOWN]:
        say(f"ctx: line {line}: {reason}")
    _embed(index, tenant, done, given)
    if done.failed:
        raise SomeFilesFailedError(
            f"{done.failed} lines could not be remembered", hint="mend them and import them again"
        )
    return 0


def _opened(file: str) -> Any:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}", hint="name a file of JSON Lines") from None


def _embed(index: Index, tenant: str, done: Imported, given: Common) -> None:
    """What was told is found by its words already; now by its meaning, too."""
    from cli.output import say

    if done.stored and not given.quiet and sys.stderr.isatty():
        say("ctx: making vectors; Ctrl-C leaves that to the next ctx recall")
    while done.stored and index.memories.maintain(tenant=tenant, seconds=5.0):
        pass
