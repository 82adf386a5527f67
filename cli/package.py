"""ctx package: context packages for tasks of agents, built, shown, listed, rebuilt (seed 003)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from cli.call import Call, Verbs, offers, open_file
from cli.options import FileArgument, IdArgument, LimitOption, RefsArgument
from cli.output import end, on_terminal, write, write_document
from research.errors import NothingFoundError, UsageError
from research.text import block

if TYPE_CHECKING:
    from research.packages import ContextPackage

_MOST_BYTES = 16 << 20  # of a request; a thousand refs and the longest intent are a fraction of it
_LISTED = 20


@offers(acting=True)
def list_packages(call: Call, *, limit: LimitOption = None) -> int:
    """List them, the newest first: id, time, sources, tokens, task.

    Examples:
      ctx package list
    """
    with call.index() as index:
        found = index.packages.list(limit=limit or _LISTED)
    lines = (
        (
            each.context_package_id,
            each.created_at,
            f"{len(each.sources)} sources",
            f"{each.tokens_used}/{each.token_budget}",
            each.task_id,
        )
        for each in found
    )
    call.show("ctx.package/1", {"packages": [each.model_dump(mode="json", by_alias=True) for each in found]}, lines)
    if not found and not call.as_json:
        call.say("no packages yet; build one with: ctx package build request.json")
    return 0


@offers(acting=True)
def build(call: Call, file: FileArgument) -> int:
    """Build the package of a request, JSON from a file or stdin (`schema` prints what it may hold). A retrieval that
    fails is named on stderr, and the rest answers. A package without any source ends with 3.

    Examples:
      ctx package build request.json
      echo '{"intent": "retry of failed uploads", "tokenBudget": 4000}' | ctx package build -
      ctx package build request.json --json | jq -r '.package.sources[] | "\\(.score) \\(.ref)"'
    """
    hint = "name a file with a request, or - for stdin; see: ctx package schema"
    with open_file(file, hint) as stream:
        try:
            request = stream.read(_MOST_BYTES + 1)
        except OSError as error:  # a folder
            raise UsageError(f"cannot read {file}: {error.strerror or error}", hint=hint) from error
    if len(request) > _MOST_BYTES:
        raise UsageError(f"the request is longer than {_MOST_BYTES >> 20} MB", hint="pin fewer refs")
    with call.opened(call.settings()) as index:
        call.prepare(index, ("documents",))
        return _show(call, index.packages.build(request))


@offers(acting=True)
def show(call: Call, id: IdArgument) -> int:
    """Print a package; built anew where its time is over, or where the policy or the index has changed since.

    Examples:
      ctx package show 1f0c2a…
    """
    with call.index() as index:
        return _show(call, index.packages.get(id))


@offers(acting=True)
def rebuild(call: Call, id: IdArgument) -> int:
    """Build a package anew.

    Examples:
      ctx package rebuild 1f0c2a…
    """
    with call.index() as index:
        return _show(call, index.packages.rebuild(id))


def _show(call: Call, package: ContextPackage) -> int:
    """The content on stdout, what there is to say about it on stderr; the exit code."""
    if call.as_json:
        write_document("ctx.package/1", {"package": package.model_dump(mode="json", by_alias=True)})
    elif package.content:
        write(f"{block(package.content) if on_terminal() else package.content}\n")
    for each in package.coverage.retrievals:
        if each.status in ("down", "degraded"):
            call.note(f"{each.name} is {each.status} ({each.reason}); the others answer")
    for note in package.coverage.notes:
        call.note(note)
    for out in package.pinned_out:
        call.note(f"pinned {out.ref} is not in it: {out.reason} ({out.detail})")
    if not call.as_json:
        tokens = f"{package.tokens_used:,} of {package.token_budget:,} tokens"
        call.say(f"package {package.context_package_id}: {len(package.sources)} sources, {tokens}")
    if package.sources:
        return 0
    if package.denied:
        return end(NothingFoundError("nothing of this index may be seen", hint="see the policy with: ctx policy"))
    if package.excluded.budget:
        return end(NothingFoundError(f"nothing fits into {package.token_budget} tokens", hint="raise tokenBudget"))
    return end(NothingFoundError("nothing found", hint="see what there is with: ctx status"))


def feedback(
    call: Call,
    id: IdArgument,
    refs: RefsArgument = None,
    *,
    not_useful: Annotated[bool, typer.Option("--not-useful", help="They were of no use.")] = False,
) -> int:
    """Say that a package, or sources of it, were of use: they count more from then on, or less.

    Examples:
      ctx package feedback 1f0c2a… page:2c95c9a58d5d6f79#3
    """
    with call.index() as index:
        told = index.packages.feedback(id, *(refs or ()), useful=not not_useful)
    call.show("ctx.package/1", {"told": {"useful": not not_useful, "refs": told}})
    if not call.as_json:
        call.say(f"{len(told)} sources were {'of no use' if not_useful else 'of use'}")
    return 0


def schema(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="request|package", help="Of what. Default: request.")] = "request",
) -> int:
    """Print the JSON schema of a request, or of a package.

    Examples:
      ctx package schema request
    """
    from research.packages import published

    if name not in ("request", "package"):
        raise UsageError(f"there is no schema {name!r}", hint="there are: request, package")
    write(json.dumps(published(name), indent=2, ensure_ascii=False) + "\n")
    return 0


PACKAGE = Verbs(
    """A package holds what a task needs to know: sources of every kind, found by vectors, by metadata and in the graph,
    ranked by one score whose parts are shown, governed by the policy, within a hard token budget. What is too large
    comes as its passages, then as a summary of its own sentences. It is kept under its id for its `ttlSeconds`.""",
    {
        "list": list_packages,
        "build": build,
        "show": show,
        "rebuild": rebuild,
        "feedback": feedback,
        "schema": schema,
    },
)
