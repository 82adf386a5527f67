"""ctx graph: what is near to a thing, and by what it is connected."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.completion import complete_document
from cli.options import common, index_of, settings_for

DETAILS = """
Shows what a page, a document, a piece of code, a commit, a memory or an experience is connected with, as the things
themselves say: pages that refer to each other ("see Table 5", "on page 12"), documents that name each other or are
newer versions, calls and imports, the files of a commit, the session of a memory. No model is asked.
"""

EPILOG = """
\b
Kinds of edges: refers, cites, newer, calls, imports, supports, changes, told_in, contains.
\b
Examples:
  ctx graph handbook.pdf
  ctx graph page:4f2a91c07d3be8a1#7 --hops 2
  ctx graph code:src/dates.py#parse --kinds calls,imports
  ctx graph handbook.pdf --format dot | dot -Tsvg > handbook.svg
  ctx graph handbook.pdf --json | jq -r '.nodes[].ref'
"""


def command(
    ctx: typer.Context,
    *,
    things: Annotated[
        list[str],
        typer.Argument(
            metavar="REF|DOC", help="A ref, or a document's name, path or id.", autocompletion=complete_document
        ),
    ],
    hops: Annotated[int, typer.Option("--hops", metavar="N", help="Edges from it, 1 to 3.")] = 1,
    kinds: Annotated[
        str | None, typer.Option("--kinds", metavar="KIND,…", help="Only edges of these kinds. Default: all.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Nodes to show at most, the nearest.")] = 60,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, json, dot or mermaid.")] = "text",
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose memories. Default: your own.")] = "",
) -> int:
    from cli.graph_view import FORMATS
    from cli.output import say, write, write_document
    from research.errors import UsageError

    given = common(ctx)
    if form not in (*FORMATS, "json"):
        raise UsageError(f"there is no format {form!r}", hint="formats: text, json, dot, mermaid")
    wanted = None if kinds is None else [kind.strip() for kind in kinds.split(",") if kind.strip()]
    with index_of(settings_for(given)) as opened:
        found = opened.graph(*things, hops=hops, kinds=wanted, limit=limit, tenant=tenant)
    if given.as_json or form == "json":
        write_document("ctx.graph/1", found.to_dict())
    else:
        write(FORMATS[form](found))
    if not given.quiet:
        if found.cut:
            say(f"ctx: note: only the nearest {len(found.nodes)} are shown; more with --limit, fewer with --kinds")
        if not found.complete:
            say("ctx: note: the graph is not complete yet; the next ctx ingest or ctx graph goes on with it")
    return 0
