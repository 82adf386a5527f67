"""ctx context, turn: what an agent gives its model, as markdown of all sources or as the messages of a turn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.call import Call, offers, open_file
from cli.options import QuestionArgument
from cli.output import end, on_terminal, write, write_document
from research.errors import CtxError, NothingFoundError, UsageError
from research.text import block

if TYPE_CHECKING:
    from research.sources import FormattedContext

_EXAMPLE = """echo '{"user_message": "…", "history": [{"role": "user", "content": "…"}]}' | ctx turn"""


@offers(door="ctx context", acting=True)
def context(call: Call, question: QuestionArgument = None) -> int:
    """Each type of source gets a section and a share of the token budget (experiences and documents 3, code and commits
    2, values and memories 1); what one does not need flows on to the others. No item takes more than a quarter of its
    source's share: what is cut says where the rest is. What two sources say alike is shown once. The budget holds
    exactly.

    What is less likely to answer than 0.15 is left out, or than --min-score says. A source that fails is named on
    stderr, and the others answer. If nothing is left, it exits with 3.

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
