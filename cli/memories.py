"""ctx remember, recall, forget: what was told, to be found again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.call import Call, confirmed, offers, open_file, plain_words
from cli.options import (
    DryRunOption,
    ExpiresOption,
    ExplainOption,
    IdsArgument,
    NamespaceOption,
    QuestionArgument,
    SessionOption,
    TagOption,
    TenantOption,
    YesOption,
)
from cli.output import on_terminal, say, write, write_document
from research.errors import NothingFoundError, SomeFilesFailedError, UsageError
from research.settings import FLOOR
from research.text import block, one_line, phrase

if TYPE_CHECKING:
    from research.conversation import Imported
    from research.index import Index
    from research.memories import Memory, Recall, Recalled

_FAILED = 5  # lines that are named
_LISTED, _FOUND = 20, 8

KindOption = Annotated[
    list[str] | None, typer.Option("--type", metavar="TYPE", help="A kind of memory. Default: memory; to find: any.")
]


def remember(
    call: Call,
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="What to remember, or - to read it from stdin.", show_default=False),
    ] = None,
    *,
    file: Annotated[
        str | None, typer.Option("--import", metavar="FILE|-", help="Read JSON Lines, a memory each.")
    ] = None,
    kind: KindOption = None,
    category: Annotated[str, typer.Option("--category", metavar="NAME", help="A category of yours.")] = "",
    tag: TagOption = None,
    session: SessionOption = None,
    speaker: Annotated[str, typer.Option("--speaker", metavar="NAME", help="Who says it.")] = "",
    importance: Annotated[
        float, typer.Option("--importance", metavar="0..1", help="How much it matters.", show_default=True)
    ] = 0.5,
    expires: ExpiresOption = "",
    key: Annotated[str, typer.Option("--key", metavar="KEY", help="What was told under it before stays.")] = "",
    replaces: Annotated[str, typer.Option("--replaces", metavar="ID", help="The memory that it says anew.")] = "",
    namespace: NamespaceOption = "",
    tenant: TenantOption = "",
) -> int:
    """What is told is kept in the index, found by ctx recall and by an agent's turns, and forgotten with ctx forget.
    What says the same as something told before is joined to it. It is accepted while an ingest runs. --import takes
    JSON Lines: {"text": "…"} and whatever else a memory has, as ctx recall --export writes it. A line that is wrong
    costs itself alone (exit code 4).

    Examples:
      ctx remember "Anna moved to Bonn"
      ctx remember "The wifi password is swordfish" --tag home --importance 0.9
      ctx remember "Standup is at 9:30 this week" --expires 7d
      ctx remember --import memories.jsonl
    """
    with call.index() as index:
        if file is not None:
            if text:
                raise UsageError("--import takes its texts from the file", hint="ctx remember --import FILE")
            return _import(call, index, file, tenant)
        from research.memories import NewMemory

        if not text:
            raise UsageError("there is nothing to remember", hint='ctx remember "Anna moved to Bonn"')
        new = NewMemory(
            call.stdin("type what to remember, then Ctrl-D") if list(text) == ["-"] else plain_words(" ".join(text)),
            type=kind[-1] if kind else "memory",
            category=category,
            importance=importance,
            tags=tuple(tag or ()),
            namespace=namespace,
            session=session or "",
            speaker=speaker,
            expires_at=_expiry(expires),
            key=key,
            replaces=replaces,
        )
        told = index.memories.remember_batch([new], tenant=tenant)
    fields = [{"id": each.id, "outcome": each.outcome, "joined_to": each.joined_to} for each in told]
    lines = ((each.outcome, each.id, *([each.joined_to] if each.joined_to else [])) for each in told)
    call.show("ctx.remember/1", {"memories": fields, "failed": []}, lines)
    return 0


def _expiry(said: str) -> Any:
    if not said:
        return ""
    from datetime import UTC, datetime

    from research.conversation import expiry

    return expiry(said, datetime.now(UTC))


def _import(call: Call, index: Index, file: str, tenant: str) -> int:
    from research.conversation import import_memories

    with open_file(file, "name a file of JSON Lines") as stream:
        done = import_memories(index, stream, tenant=tenant)
    failed = [{"line": line, "error": reason} for line, reason in done.failures]
    counts = {"stored": done.stored, "joined": done.joined, "known": done.known}
    call.show(
        "ctx.remember/1",
        {"memories": [], **counts, "failed": failed},
        [*counts.items(), ("failed", done.failed)],
    )
    for line, reason in done.failures[:_FAILED]:
        call.say(f"line {line}: {reason}")
    _embed(call, index, tenant, done)
    if done.failed:
        raise SomeFilesFailedError(
            f"{done.failed} lines could not be remembered", hint="mend them and import them again"
        )
    return 0


def _embed(call: Call, index: Index, tenant: str, done: Imported) -> None:
    """Make the vectors of what was told, which is found by its words already."""
    if done.stored and sys.stderr.isatty():
        call.say("making vectors; Ctrl-C leaves that to the next ctx recall")
    while done.stored and index.memories.maintain(tenant=tenant, seconds=5.0):
        pass


@offers(acting=True)
def recall(
    call: Call,
    query: QuestionArgument = None,
    *,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="N", help="How many at most. Default: 8, or 20 of a list.")
    ] = None,
    min_score: Annotated[
        float,
        typer.Option(
            "--min-score", metavar="0..1", help="Leave out what is less likely. Default: 0.15.", show_default=False
        ),
    ] = FLOOR,
    session: SessionOption = None,
    namespace: NamespaceOption = "",
    kind: KindOption = None,
    tag: TagOption = None,
    recent: Annotated[bool, typer.Option("--recent", help="Let recency count: 30 % of the order.")] = False,
    explain: ExplainOption = False,
    export: Annotated[
        str | None, typer.Option("--export", metavar="FILE|-", help="Write them all as JSON Lines, the oldest first.")
    ] = None,
    tenant: TenantOption = "",
) -> int:
    """Memories are found by their words and by their meaning, within the words around them in their conversation. The
    score says how likely it is that one answers, 0 to 1; what has less than 0.15 is left out. One that a newer one
    takes back, or seems to, comes behind it, with a word. Without a question it lists them, the newest first. In a pipe
    the fields are separated by tabs: score, time, id, text.

    Examples:
      ctx recall "Where does Anna live?"
      ctx recall "What did we decide about the release?" --session planning --top-k 3
      ctx recall --tag home
      ctx recall --export memories.jsonl
    """
    within: dict[str, Any] = {
        "tenant": tenant,
        "session": session,
        "namespace": namespace or None,
        "types": tuple(kind or ()),
        "tags": tuple(tag or ()),
    }
    with call.index() as index:
        if export is not None:
            if query or call.as_json:
                raise UsageError("--export writes memories as they are, without a question or --json")
            return _export(call, index.memories.list(**within, newest=False), export)
        if not query:
            limit = max(0, _LISTED if top_k is None else top_k)
            memories = list(index.memories.list(**within, limit=limit))
            listed = [_memory(memory) for memory in memories]
            call.show(
                "ctx.recall/1",
                {"query": None, "memories": listed, "searched": len(listed), "notes": []},
                ((memory.told_at[:16], memory.id, phrase(memory.text)) for memory in memories),
            )
            if not memories and not call.as_json:
                call.note("nothing was told yet; begin with: ctx remember TEXT")
            return 0
        asked, limit = call.question(query), _FOUND if top_k is None else top_k
        found = index.memories.recall(asked, **within, top_k=limit, threshold=min_score, salience=recent)
    return _show_recalled(call, found, explain=explain)


def _show_recalled(call: Call, found: Recall, *, explain: bool) -> int:
    if call.as_json:
        memories = [
            _memory(each.memory)
            | {name: getattr(each, name) for name in ("score", "raw_score", "salience", "parts", "newer")}
            for each in found.memories
        ]
        document = {"query": found.query, "memories": memories, "searched": found.searched, "notes": list(found.notes)}
        write_document("ctx.recall/1", document)
        return 0 if found.memories else NothingFoundError.exit_code
    if on_terminal():
        for each in found.memories:
            write(_block(each, explain=explain))
    else:
        call.show(
            "",
            {},
            (
                (
                    f"{each.score:.2f}",
                    each.memory.told_at[:16],
                    each.memory.id,
                    phrase(each.memory.text),
                    *([_parts(each)] * explain),
                    *filter(None, [each.standing]),
                )
                for each in found.memories
            ),
        )
    for note in found.notes:
        call.note(note)
    if found.without_vectors:
        call.note(f"{found.without_vectors} memories are found by their words only, for now")
    if not found.memories:
        hint = "tell something first: ctx remember TEXT" if not found.searched else "ask in other words"
        raise NothingFoundError("nothing that was told fits", hint=hint)
    return 0


def _memory(memory: Memory) -> dict[str, Any]:
    return {"score": None, "raw_score": None, "salience": None, "parts": {}, "newer": "", **memory.to_dict()}


def _block(each: Recalled, *, explain: bool) -> str:
    """On a terminal: a line about it, and the text below."""
    from textwrap import indent

    from cli.layout import WordWrap
    from cli.output import screen_size

    memory = each.memory
    about = [f"{each.score:.2f}", memory.told_at[:10], memory.speaker, memory.session, memory.id]
    if memory.superseded_by:
        about.append(f"superseded by {memory.superseded_by}")
    elif each.newer:
        about.append(each.standing)
    wrap = WordWrap(max(20, screen_size()[0] - 4))
    text = wrap.feed(block(memory.text)) + wrap.end()
    lines = f"{'  '.join(one_line(part) for part in about if part)}\n{indent(text, '    ')}\n"
    return lines + (f"    ({_parts(each)})\n" if explain else "")


def _parts(each: Recalled) -> str:
    return ", ".join(f"{name} {share:.2f}" for name, share in each.parts.items())


def _export(call: Call, memories: Iterator[Memory], file: str) -> int:
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
    call.say(f"{count} memories are in {file}")
    return 0


def forget(
    call: Call,
    ids: IdsArgument = None,
    *,
    session: SessionOption = None,
    about: Annotated[
        str | None, typer.Option("--about", metavar="TEXT", help="Those that have all of these words.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    tenant: TenantOption = "",
) -> int:
    """What is forgotten is gone: the text, its words and vectors, the feedback on it, and summaries that were made from
    it. One that others say as well leaves its place to them. On a terminal it asks first; elsewhere --session, --about
    and --all need --yes. Documents are taken out with ctx remove.

    Examples:
      ctx forget mem-0f3a9c
      ctx forget --session planning --yes
      ctx forget --about "my old address" --dry-run
      ctx forget --all
    """
    if [bool(ids), session is not None, about is not None, everything].count(True) != 1:
        raise UsageError("name ids, or one of --session, --about and --all", hint="see them with: ctx recall")
    with call.index() as index:
        chosen = _chosen(index, ids or (), session, about, tenant)
        if dry_run:
            listed = [{"id": memory.id, "text": memory.text} for memory in chosen]
            call.show(
                "ctx.forget/1",
                {"forgotten": [], "summaries": [], "would_forget": listed},
                (("would forget", memory.id, phrase(memory.text)) for memory in chosen),
            )
            return 0
        if not yes and sys.stdin.isatty():
            number = "1 memory" if len(chosen) == 1 else f"{len(chosen)} memories"
            if not confirmed(f"Forget {number}?", [f"{each.id}  {phrase(each.text)[:100]}" for each in chosen]):
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
    lines = [("forgotten", name) for name in gone.ids] + [("forgotten with it", name) for name in gone.summaries]
    call.show("ctx.forget/1", {"forgotten": list(gone.ids), "summaries": list(gone.summaries)}, lines)
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
