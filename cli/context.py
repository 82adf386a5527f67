"""ctx context, turn and package: what an agent is given, as markdown, messages or a governed package (seed 003)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.call import Call, Verbs, offers, open_file
from cli.options import FileArgument, IdArgument, LimitOption, QuestionArgument, RefsArgument
from cli.output import end, on_terminal, write, write_document
from research.errors import CtxError, NothingFoundError, UsageError
from research.text import block

if TYPE_CHECKING:
    from research.packages import ContextPackage
    from research.sources import FormattedContext

_EXAMPLE = """echo '{"user_message": "…", "history": [{"role": "user", "content": "…"}]}' | ctx turn"""


@offers(door="ctx context", acting=True)
def context(call: Call, question: QuestionArgument = None) -> int:
    """Each type of source gets a section and a share of the token budget (experiences and documents 3, code and commits
    2, values and memories 1); what one does not need flows on to the others. No item takes more than a quarter of its
    source's share: what is cut says where the rest is. What two sources say alike is shown once. The budget holds
    exactly.

    What is less likely to answer than 0.15, or far less than the best, is left out, or what --min-score says. A source
    that fails is named on stderr, and the others answer. If nothing is left, it exits with 3.

    Examples:
      ctx context "retry of failed uploads"
      ctx context "retry of failed uploads" --types code,commits,experiences --max-tokens 4000
      ctx context "how do we deploy" --types memories,documents --limit 5
      ctx context "retry of failed uploads" --json | jq -r '.items[] | "\\(.source) \\(.ref)"'
      ctx context "retry of failed uploads" | llm "What should I know before I change this?"
    """
    from research.request import SOURCE_TYPES

    request = call.request("ctx context", call.question(question))
    types = list(request.types or SOURCE_TYPES)
    with call.opened(call.settings()) as index:
        call.prepare(index, types)
        found = index.context(request)
    return show_context(call, "context", {"query": request.question, "types": types}, found)


def show_context(call: Call, kind: str, asked: dict[str, object], found: FormattedContext) -> int:
    """The context on stdout, what there is to say about it on stderr; the exit code."""
    if found.failed:
        reasons = "; ".join(f"{each.name}: {each.reason}" for each in found.coverage.sources)
        raise CtxError(f"no source could be asked: {reasons}", hint="check the index with: ctx doctor")
    if call.as_json:
        write_document(f"ctx.{kind}/1", {**asked, **found.to_dict()})
    elif found.markdown:
        write(f"{block(found.markdown) if on_terminal() else found.markdown}\n")
    for source in found.coverage.sources:
        if source.status == "down":
            call.note(f"{source.name} could not be asked ({source.reason}); the others answer")
    for note in found.coverage.notes:
        call.note(note)
    if found.items:
        return 0
    if more := sum(found.left_out.values()):
        fits = f"none of {more} items fits into {found.max_tokens} tokens"
        return end(NothingFoundError(fits, hint="raise --max-tokens"))
    hint = "see what there is with: ctx status"
    if kind == "premortem":
        hint = "record what is tried, and what comes of it, with: ctx experience start"
    return end(NothingFoundError("nothing found", hint=hint))


@offers(acting=True)
def turn(
    call: Call,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The envelope; - or nothing: stdin.")] = "-",
    *,
    max_prompt_tokens: Annotated[
        int,
        typer.Option("--max-prompt-tokens", metavar="N", help="The token budget. Default: 4096.", show_default=False),
    ] = 4096,
    documents: Annotated[
        bool, typer.Option("--documents", help="Quote pages that may answer, beside memories.")
    ] = False,
) -> int:
    """Reads one JSON object: user_message, history (a list of messages with role and content), system_prompt,
    session_id, persona_id, tenant_id; all but the first may be missing. Prints one JSON document (schema ctx.turn/1)
    with `messages`, ready for a language model: system prompt, as much of the history as fits, memories that may
    matter, the message. The token budget holds exactly. Keys and tokens are taken out of memories first (setting
    redact).

    Memories are those of the index (ctx remember), or of the service that SA01_SOMA_BASE_URL names. With --documents
    pages that may answer are quoted beside them, with citations.

    Examples:
      ctx turn < envelope.json
      echo '{"user_message": "Where does Anna live?"}' | ctx turn | jq .messages
      ctx turn envelope.json --documents --max-prompt-tokens 8000
    """
    from research.conversation import MOST_PROMPT_TOKENS, TurnMaker

    if not 0 < max_prompt_tokens <= MOST_PROMPT_TOKENS:
        raise UsageError(
            f"--max-prompt-tokens cannot be {max_prompt_tokens}", hint=f"a number from 1 to {MOST_PROMPT_TOKENS:,}"
        )
    envelope = _envelope(call, file)
    with call.index_of(call.settings()) as index:
        built = TurnMaker(index).build_now(envelope, max_prompt_tokens=max_prompt_tokens, documents=documents)
    write_document("ctx.turn/1", built.to_dict())
    retrieval = built.context.debug["retrieval"]
    if retrieval["status"] in {"failed", "skipped"}:
        call.note(f"without memories: {retrieval['reason']}")
    return 0


def _envelope(call: Call, file: str) -> dict[str, Any]:
    if file == "-":
        text = call.stdin("type the envelope as JSON, then Ctrl-D")
    else:
        with open_file(file, "ctx turn < envelope.json") as stream:
            text = stream.read().decode("utf-8", "replace")
    try:
        envelope = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the envelope is no JSON: {error}", hint=_EXAMPLE) from None
    if not isinstance(envelope, dict):
        raise UsageError("the envelope is no JSON object", hint=_EXAMPLE)
    return envelope


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
