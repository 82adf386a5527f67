"""ctx recall: what was told before and fits a question; or a list of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import common, index_for
from research.errors import NothingFoundError, UsageError
from research.settings import FLOOR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cli.options import Common
    from research.index import Index
    from research.memories import Memory, Recall, Recalled

DETAILS = """
Memories are found by their words and by their meaning, within the words around them in their conversation. The score
says how likely it is that one answers, 0 to 1; what has less than 0.15 is left out. Where a newer one takes an older
one back, it stands before it. Without a question it lists them, the newest first. In a pipe the fields are separated by
tabs: score, time, id, text.
"""

EPILOG = """
\b
Examples:
  ctx recall "Where does Anna live?"
  ctx recall "What did we decide about the release?" --session planning --top-k 3
  ctx recall --tag home
  ctx recall --export memories.jsonl
"""

_LISTED = 20


def command(
    ctx: typer.Context,
    *,
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION...", help="The question, or - to read it from stdin.", show_default=False),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="N", help="How many at most. Default: 8, or 20 of a list.")
    ] = None,
    min_score: Annotated[
        float,
        typer.Option(
            "--min-score", metavar="0..1", help="Leave out what is less likely. Default: 0.15.", show_default=False
        ),
    ] = FLOOR,
    session: Annotated[str | None, typer.Option("--session", metavar="NAME", help="Only of this conversation.")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", metavar="NAME", help="Only of this part.")] = None,
    kind: Annotated[list[str] | None, typer.Option("--type", metavar="TYPE", help="Only of this kind.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Only with this tag.")] = None,
    recent: Annotated[bool, typer.Option("--recent", help="Let recency count: 30 % of the order.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each score is made of.")] = False,
    export: Annotated[
        str | None, typer.Option("--export", metavar="FILE|-", help="Write them all as JSON Lines, the oldest first.")
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose memory. Default: your own.")] = "",
) -> int:
    given = common(ctx)
    within: dict[str, Any] = {
        "tenant": tenant,
        "session": session,
        "namespace": namespace,
        "types": tuple(kind or ()),
        "tags": tuple(tag or ()),
    }
    with index_for(given) as index:
        if export is not None:
            if query or given.as_json:
                raise UsageError("--export writes memories as they are, without a question or --json")
            return _export(index.memories.list(**within, newest=False), export, given)
        if not query:
            limit = _LISTED if top_k is None else top_k
            _show_list(list(index.memories.list(**within, limit=max(0, limit))), given)
            return 0
        from cli.options import read_question

        asked = read_question(query, quiet=given.quiet)
        limit = 8 if top_k is None else top_k
        found = index.memories.recall(asked, **within, top_k=limit, threshold=min_score, salience=recent)
        return _show_recalled(index, found, given, explain=explain)


def _show_recalled(index: Index, found: Recall, given: Common, *, explain: bool) -> int:
    from cli.output import on_terminal, say, write, write_document, write_line
    from research.text import phrase

    if given.as_json:
        write_document("ctx.recall/1", _document(found))
        return 0 if found.memories else 3
    for each in found.memories:
        if on_terminal():
            write(_block(each, explain=explain))
        else:
            parts = [_parts(each)] if explain else []
            write_line(f"{each.score:.2f}", each.memory.told_at[:16], each.memory.id, phrase(each.memory.text), *parts)
    if not given.quiet:
        for note in found.notes:
            say(f"ctx: note: {note}")
        if found.without_vectors:
            say(f"ctx: note: {found.without_vectors} memories are found by their words only, for now")
    if not found.memories:
        hint = "tell something first: ctx remember TEXT" if not found.searched else "ask in other words"
        raise NothingFoundError("nothing that was told fits", hint=hint)
    return 0


def _show_list(memories: Sequence[Memory], given: Common) -> None:
    from cli.output import say, write_document, write_line
    from research.text import phrase

    if given.as_json:
        listed = [_memory(memory) for memory in memories]
        write_document("ctx.recall/1", {"query": None, "memories": listed, "searched": len(listed), "notes": []})
        return
    for memory in memories:
        write_line(memory.told_at[:16], memory.id, phrase(memory.text))
    if not memories and not given.quiet:
        say("ctx: note: nothing was told yet; begin with: ctx remember TEXT")


def _document(found: Recall) -> dict[str, Any]:
    memories = [
        _memory(each.memory) | {name: getattr(each, name) for name in ("score", "raw_score", "salience", "parts")}
        for each in found.memories
    ]
    return {"query": found.query, "memories": memories, "searched": found.searched, "notes": list(found.notes)}


def _memory(memory: Memory) -> dict[str, Any]:
    return {"score": None, "raw_score": None, "salience": None, "parts": {}, **memory.to_dict()}


def _block(each: Recalled, *, explain: bool) -> str:
    """On a terminal: a line about it, and the text below."""
    from textwrap import indent

    from cli.layout import WordWrap
    from cli.output import screen_size
    from research.text import block, one_line

    memory = each.memory
    about = [f"{each.score:.2f}", memory.told_at[:10], memory.speaker, memory.session, memory.id]
    if memory.superseded_by:
        about.append(f"superseded by {memory.superseded_by}")
    wrap = WordWrap(max(20, screen_size()[0] - 4))
    text = wrap.feed(block(memory.text)) + wrap.end()
    lines = f"{'  '.join(one_line(part) for part in about if part)}\n{indent(text, '    ')}\n"
    return lines + (f"    ({_parts(each)})\n" if explain else "")


def _parts(each: Recalled) -> str:
    return ", ".join(f"{name} {share:.2f}" for name, share in each.parts.items())


def _export(memories: Iterator[Memory], file: str, given: Common) -> int:
    from cli.output import say, write
    from research.conversation import export_memories

    lines = export_memories(memories)
    if file == "-":
        for line in lines:
            if not write(f"{line}\n"):
                break
        return 0
    try:
        # What was told is nobody else's to read; and nothing that is there is written over.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}", hint="name a file that is not there yet") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        count = sum(1 for line in lines if stream.write(f"{line}\n"))
    if not given.quiet:
        say(f"ctx: {count} memories are in {file}")
    return 0
