"""ctx package: context packages for tasks of agents, built, shown, listed, rebuilt (seed 003)."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, index_for, settings_for
from research.errors import NothingFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.options import Common
    from research.index import Index
    from research.packages import ContextPackage

DETAILS = """
A package holds what a task needs to know: sources of every kind, found by vectors, by metadata and in the graph,
ranked by one score whose parts are shown, governed by the policy, within a hard token budget. What is too large comes
as its passages, then as a summary of its own sentences. `build` reads a request (JSON; `schema` prints what it may
hold) from a file, or from stdin with -. A package is kept under its id for its `ttlSeconds`; `show` builds it anew
where that time is over, or where the policy or the index has changed since. `feedback` tells that sources were of use,
or with --not-useful that they were not: they count more, or less, from then on.

A retrieval that fails is named on stderr, and the rest answers. A package without any source ends with 3.
"""

EPILOG = """
\b
Examples:
  ctx package build request.json
  echo '{"intent": "retry of failed uploads", "tokenBudget": 4000}' | ctx package build -
  ctx package build request.json --json | jq -r '.package.sources[] | "\\(.score) \\(.ref)"'
  ctx package list
  ctx package show 1f0c2a…
  ctx package rebuild 1f0c2a…
  ctx package feedback 1f0c2a… page:2c95c9a58d5d6f79#3
  ctx package schema request
"""

_MOST_BYTES = 16 << 20  # of a request; a thousand refs and the longest intent are a fraction of it
_LISTED = 20


class Verb(StrEnum):
    build = "build"
    show = "show"
    list = "list"
    rebuild = "rebuild"
    feedback = "feedback"
    schema = "schema"


def command(
    ctx: typer.Context,
    *,
    verb: Annotated[
        Verb, typer.Argument(metavar="build|show|list|rebuild|feedback|schema", help="What to do. Default: list.")
    ] = Verb.list,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|ID|REF...",
            help="The request, - for stdin; the package; sources of it, for feedback. schema: request or package.",
            show_default=False,
        ),
    ] = None,
    not_useful: Annotated[bool, typer.Option("--not-useful", help="feedback: they were of no use.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="list: at most so many.")] = None,
) -> int:
    given, named = common(ctx), list(words or ())
    _check(verb, named, not_useful=not_useful, limit=limit)
    if verb is Verb.schema:
        return _schema(named[0] if named else "request")
    if verb is Verb.build:
        return _build(named[0], given)
    with index_for(given) as index:
        if verb is Verb.list:
            _list(index.packages.list(limit=_LISTED if limit is None else limit), given)
            return 0
        if verb is Verb.feedback:
            _feedback(index, named[0], named[1:], given, useful=not not_useful)
            return 0
        found = index.packages.get(named[0]) if verb is Verb.show else index.packages.rebuild(named[0])
        return show(found, given)


def _check(verb: Verb, named: Sequence[str], *, not_useful: bool, limit: int | None) -> None:
    least, most = {Verb.list: (0, 0), Verb.schema: (0, 1), Verb.feedback: (1, 10_000)}.get(verb, (1, 1))
    if len(named) < least:
        needed = "a request: a file, or - for stdin" if verb is Verb.build else "the id of a package"
        raise UsageError(f"{verb} needs {needed}", hint="see: ctx package --help")
    if len(named) > most:
        raise UsageError(f"{verb} takes no {named[most]!r}", hint="see: ctx package --help")
    if not_useful and verb is not Verb.feedback:
        raise UsageError(f"--not-useful does not belong to {verb}", hint="see: ctx package --help")
    if limit is not None and (verb is not Verb.list or not 1 <= limit <= 10_000):
        raise UsageError("--limit is for list, a whole number from 1 to 10,000", hint="see: ctx package --help")


def _build(file: str, given: Common) -> int:
    from contextlib import suppress

    from cli.options import opened, tell

    request = _read(file)
    with opened(settings_for(given)) as index:
        if index.exists:
            with suppress(NothingFoundError):  # without documents the others answer
                tell(index.prepare(), given)
        return show(index.packages.build(request), given)


def _read(file: str) -> bytes:
    from pathlib import Path

    try:
        if file == "-":
            read = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                read = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        hint = "name a file with a request, or - for stdin; see: ctx package schema"
        raise UsageError(f"cannot read {file}: {error.strerror or error}", hint=hint) from error
    if len(read) > _MOST_BYTES:
        raise UsageError(f"the request is longer than {_MOST_BYTES >> 20} MB", hint="pin fewer refs")
    return read


def show(package: ContextPackage, given: Common) -> int:
    """The content on stdout, what there is to say about it on stderr; the exit code."""
    from cli.output import on_terminal, write, write_document
    from cli.views import end
    from research.text import block

    if given.as_json:
        write_document("ctx.package/1", {"package": package.model_dump(mode="json", by_alias=True)})
    elif package.content:
        write(f"{block(package.content) if on_terminal() else package.content}\n")
    if not given.quiet:
        _tell(package, as_json=given.as_json)
    if package.sources:
        return 0
    if package.denied:
        return end(NothingFoundError("nothing of this index may be seen", hint="see the policy with: ctx policy"))
    if package.excluded.budget:
        return end(NothingFoundError(f"nothing fits into {package.token_budget} tokens", hint="raise tokenBudget"))
    return end(NothingFoundError("nothing found", hint="see what there is with: ctx status"))


def _tell(package: ContextPackage, *, as_json: bool) -> None:
    from cli.output import say
    from research.text import one_line

    for each in package.coverage.retrievals:
        if each.status in ("down", "degraded"):
            say(f"ctx: note: {each.name} is {each.status} ({one_line(each.reason)}); the others answer")
    for note in package.coverage.notes:
        say(f"ctx: note: {one_line(note)}")
    for out in package.pinned_out:
        say(f"ctx: note: pinned {one_line(out.ref)} is not in it: {out.reason} ({out.detail})")
    if not as_json:
        tokens = f"{package.tokens_used:,} of {package.token_budget:,} tokens"
        say(f"ctx: package {package.context_package_id}: {len(package.sources)} sources, {tokens}")


def _list(found: Sequence[ContextPackage], given: Common) -> None:
    from cli.output import say, write_document, write_line

    if given.as_json:
        write_document("ctx.package/1", {"packages": [each.model_dump(mode="json", by_alias=True) for each in found]})
        return
    for each in found:
        tokens = f"{each.tokens_used}/{each.token_budget}"
        write_line(each.context_package_id, each.created_at, f"{len(each.sources)} sources", tokens, each.task_id)
    if not found and not given.quiet:
        say("ctx: no packages yet; build one with: ctx package build request.json")


def _feedback(index: Index, package_id: str, refs: Sequence[str], given: Common, *, useful: bool) -> None:
    from cli.output import say, write_document

    told = index.packages.feedback(package_id, *refs, useful=useful)
    if given.as_json:
        write_document("ctx.package/1", {"told": {"useful": useful, "refs": told}})
    elif not given.quiet:
        say(f"ctx: {len(told)} sources were {'of use' if useful else 'of no use'}")


def _schema(name: str) -> int:
    import json

    from cli.output import write
    from research.packages import published

    if name not in ("request", "package"):
        raise UsageError(f"there is no schema {name!r}", hint="there are: request, package")
    write(json.dumps(published(name), indent=2, ensure_ascii=False) + "\n")
    return 0
