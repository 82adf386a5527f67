"""ctx turn: the messages of an agent's turn, from what is remembered, what was said, and on request the documents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.options import common, index_of, settings_for
from research.errors import UsageError

DETAILS = """
Reads one JSON object: user_message, history (a list of messages with role and content), system_prompt, session_id,
persona_id, tenant_id; all but the first may be missing. Prints one JSON document (schema ctx.turn/1) with `messages`,
ready for a language model: system prompt, as much of the history as fits, memories that may matter, the message. The
token budget holds exactly. Keys and tokens are taken out of memories first (setting redact).

Memories are those of the index (ctx remember), or of the service that SA01_SOMA_BASE_URL names. With --documents pages
that may answer are quoted beside them, with citations.
"""

EPILOG = """
\b
Examples:
  ctx turn < envelope.json
  echo '{"user_message": "Where does Anna live?"}' | ctx turn | jq .messages
  ctx turn envelope.json --documents --max-prompt-tokens 8000
"""

_EXAMPLE = """echo '{"user_message": "…", "history": [{"role": "user", "content": "…"}]}' | ctx turn"""


def command(
    ctx: typer.Context,
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The envelope; - or nothing: stdin.")] = "-",
    max_prompt_tokens: Annotated[
        int,
        typer.Option("--max-prompt-tokens", metavar="N", help="The token budget. Default: 4096.", show_default=False),
    ] = 4096,
    documents: Annotated[
        bool, typer.Option("--documents", help="Quote pages that may answer, beside memories.")
    ] = False,
) -> int:
    from cli.output import say, write_document
    from research.conversation import MOST_PROMPT_TOKENS, TurnMaker

    given = common(ctx)
    if not 0 < max_prompt_tokens <= MOST_PROMPT_TOKENS:
        raise UsageError(
            f"--max-prompt-tokens cannot be {max_prompt_tokens}", hint=f"a number from 1 to {MOST_PROMPT_TOKENS:,}"
        )
    envelope = _read(file, quiet=given.quiet)
    with index_of(settings_for(given)) as index:
        maker = TurnMaker(index)
        built = maker.build_now(envelope, max_prompt_tokens=max_prompt_tokens, documents=documents)
    write_document("ctx.turn/1", built.to_dict())
    debug = built.context.debug
    if debug["retrieval"]["status"] in {"failed", "skipped"} and not given.quiet:
        say(f"ctx: note: without memories: {debug['retrieval']['reason']}")
    return 0


def _read(file: str, *, quiet: bool) -> dict[str, Any]:
    import json

    from cli.output import say

    if file == "-":
        if sys.stdin.isatty() and not quiet:
            say("ctx: type the envelope as JSON, then Ctrl-D")
        stream = getattr(sys.stdin, "buffer", None)
        content = stream.read() if stream is not None else sys.stdin.read().encode()
    else:
        try:
            content = Path(file).read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {file}: {error.strerror}", hint="ctx turn < envelope.json") from None
    try:
        envelope = json.loads(content.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the envelope is no JSON: {error}", hint=_EXAMPLE) from None
    if not isinstance(envelope, dict):
        raise UsageError("the envelope is no JSON object", hint=_EXAMPLE)
    return envelope
