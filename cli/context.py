"""ctx context: what memories, code, experiences, values, commits and documents say to a question, as markdown."""

from __future__ import annotations

import typer

from cli.options import QuestionArgument, common, settings_for
from cli.views import show_context

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

DOOR = "ctx context"


def command(
    ctx: typer.Context,
    *,
    question: QuestionArgument,
) -> int:
    from cli.options import asked_for, make_ready, opened, read_question
    from research.request import SOURCE_TYPES

    given = common(ctx)
    request = asked_for(ctx, DOOR, read_question(question, quiet=given.quiet))
    types = list(request.types or SOURCE_TYPES)
    with opened(settings_for(given)) as index:
        make_ready(index, given, types)
        found = index.context(request)
    return show_context("context", {"query": request.question, "types": types}, found, given)
