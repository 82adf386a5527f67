"""ctx context: what memories, code, experiences, values, commits and documents say to a question, as markdown."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.context_view import BudgetOption, LimitOption, show
from cli.options import QuestionArgument, ScoreOption, common, settings_for

DETAILS = """
Each type of source gets a section and a share of the token budget (experiences and documents 3, code and commits 2,
values and memories 1); what one does not need flows on to the others. No item takes more than a quarter of its source's
share: what is cut says where the rest is. What two sources say alike is shown once. The budget holds exactly.

What is less likely to answer than 0.15 is left out, or than --min-score says. A source that fails is named on stderr,
and the others answer. If nothing is left, it exits with 3.
"""

EPILOG = """
\b
Examples:
  ctx context "retry of failed uploads"
  ctx context "retry of failed uploads" --types code,commits,experiences --max-tokens 4000
  ctx context "how do we deploy" --types memories,documents --limit 5
  ctx context "retry of failed uploads" --json | jq -r '.items[] | "\\(.source) \\(.ref)"'
  ctx context "retry of failed uploads" | llm "What should I know before I change this?"
"""

TypesOption = Annotated[
    str | None,
    typer.Option(
        "--types",
        metavar="A,B",
        help="Which sources: memories, code, experiences, values, commits, documents. Default: all.",
    ),
]


def command(
    ctx: typer.Context,
    *,
    question: QuestionArgument,
    types: TypesOption = None,
    limit: LimitOption = 20,
    max_tokens: BudgetOption = 2000,
    min_score: ScoreOption = None,
    same_file: Annotated[
        bool, typer.Option("--same-file", help="Of code and a commit of one file show the better one alone.")
    ] = False,
) -> int:
    from cli.options import make_ready, opened, read_question
    from research.sources.records import CONTEXT_TYPES

    given = common(ctx)
    wanted = CONTEXT_TYPES if types is None else [each.strip() for each in types.split(",") if each.strip()]
    asked = read_question(question, quiet=given.quiet)
    with opened(settings_for(given, min_score=min_score)) as index:
        make_ready(index, given, wanted)
        found = index.context(
            asked, wanted, limit=limit, max_tokens=max_tokens, same_file=same_file, min_score=min_score
        )
    return show("context", {"query": asked, "types": list(wanted)}, found, given)
