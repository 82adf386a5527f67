"""ctx premortem: what went wrong before in a domain, told before risky work."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import common, settings_for
from cli.views import show_context

DETAILS = """
For the moment a test or a build fails for the first time: past failures of the domain, what a strategy has brought,
what nobody expected, root causes, and the values that experiences share. The sections share the token budget evenly,
and what one does not need flows on. A domain or strategy that there is not is told with those there are; where nothing
is known of it, it exits with 3.
"""

EPILOG = """
\b
Examples:
  ctx premortem debugging
  ctx premortem debugging --strategy systematic-elimination
  ctx premortem performance --max-tokens 800 --limit 5
  ctx premortem debugging --json | jq -r '.markdown'
  pytest -q || ctx premortem debugging --quiet
"""


def command(
    ctx: typer.Context,
    *,
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help="debugging, feature, testing, performance …")],
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="S", help="Also what this strategy has brought so far.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Items of each source to look at.")] = 10,
    max_tokens: Annotated[int, typer.Option("--max-tokens", metavar="N", help="The token budget.")] = 1500,
) -> int:
    from cli.options import opened

    given = common(ctx)
    with opened(settings_for(given)) as index:
        found = index.premortem(domain, strategy, limit=limit, max_tokens=max_tokens)
    return show_context("premortem", {"domain": domain, "strategy": strategy}, found, given)
