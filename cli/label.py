"""ctx label: status, module and project of things, for policies."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import common, complete_document, index_for
from research.errors import NothingFoundError, UsageError

DETAILS = """
TARGET is a document (name, path, pattern, title or id), a ref (page:ID#7, code:PATH, commit:SHA, memory:ID),
path:PATTERN or tag:TAG, as for ctx classify. Policies decide by these words, and packages can be restricted to them.
Where several apply, that of the most specific target holds: the thing, its document, the longest pattern, a tag.
Without TARGET it lists all labels. In a pipe the fields of a line are separated by tabs.
"""

EPILOG = """
\b
Examples:
  ctx label report.pdf --status final --project apollo
  ctx label 'path:src/billing' --module billing
  ctx label report.pdf --remove
  ctx label
"""

NAMES = ("status", "module", "project")


def command(
    ctx: typer.Context,
    *,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="A document, a ref, path:PATTERN or tag:TAG.",
            autocompletion=complete_document,
            show_default=False,
        ),
    ] = None,
    status: Annotated[str | None, typer.Option("--status", metavar="WORD", help="Such as draft or final.")] = None,
    module: Annotated[str | None, typer.Option("--module", metavar="WORD", help="Part of what it is.")] = None,
    project: Annotated[str | None, typer.Option("--project", metavar="WORD", help="What it belongs to.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take its status, module and project away.")] = False,
    tenant: Annotated[str, typer.Option("--tenant", metavar="T", help="Whose memory or session it is.")] = "",
) -> int:
    from cli.views import list_labels, show_labels

    given = common(ctx)
    values = {name: value for name, value in zip(NAMES, (status, module, project), strict=True) if value is not None}
    if (values and remove) or (not target and (values or remove)):
        raise UsageError("these options do not go together", hint="ctx label TARGET --status WORD, or --remove")
    index = index_for(given)
    if not index.exists and target and not values:
        raise index.nothing_found()
    labels = index.policy.labels()
    if target is None:
        list_labels("ctx.label/1", labels, given, ("classification", *NAMES))
    elif values:
        show_labels("ctx.label/1", labels, given, labels.put(target, values, tenant=tenant))
    elif remove:
        if not labels.remove(target, NAMES, tenant=tenant):
            raise NothingFoundError(f"{target} itself has no such labels", hint="see them with: ctx label")
        list_labels("ctx.label/1", labels, given, ("classification", *NAMES))
    else:
        show_labels("ctx.label/1", labels, given, labels.listed(target, tenant=tenant))
    return 0
