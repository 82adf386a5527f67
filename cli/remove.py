"""ctx remove: take documents out of the index. Only files that were uploaded go with them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import common, complete_document, index_for
from research.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from research.records import DocumentInfo

DETAILS = """
Only the index forgets them; the files stay where they are, but for those that were uploaded into it through ctx serve.
On a terminal it asks first; elsewhere a pattern that means several documents needs --yes.
"""

EPILOG = """
\b
Examples:
  ctx remove old-report.pdf
  ctx remove 'draft-*.pdf' --dry-run
  ctx remove 'draft-*.pdf' --yes
  ctx remove --code ./src
  ctx remove --commits ./repository
"""

_MOST_SHOWN = 20  # before the question


def command(
    ctx: typer.Context,
    *,
    doc: Annotated[
        list[str],
        typer.Argument(
            metavar="DOC...", help="Names, paths, patterns or ids; not titles.", autocompletion=complete_document
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be removed.")] = False,
    code: Annotated[
        bool, typer.Option("--code", help="These are files or folders of source code: all of it is removed.")
    ] = False,
    commits: Annotated[
        bool, typer.Option("--commits", help="These are git repositories: all of their commits are removed.")
    ] = False,
) -> int:
    from cli.output import say

    given = common(ctx)
    opened = index_for(given)
    if code:
        from cli.progress import remove_code

        return remove_code(opened.paths.root, doc, as_json=given.as_json, dry_run=dry_run)
    if commits:
        from cli.progress import remove_commits

        return remove_commits(opened.paths.root, doc, as_json=given.as_json, dry_run=dry_run)
    planned = opened.admin.plan_removal(*doc)
    if dry_run:
        _report(planned.documents, as_json=given.as_json, dry_run=True)
        return 0
    if not yes and sys.stdin.isatty():
        if not _confirmed(planned.documents):
            say("ctx: nothing was removed")
            return 1
    elif not yes and planned.pattern:
        raise UsageError(
            f"{planned.pattern!r} means several documents, {len(planned.documents)} would go; nothing was removed",
            hint="see them with --dry-run, remove them with --yes",
        )
    removed = opened.admin.remove(*(document.doc_id for document in planned.documents))
    _report(removed.documents, as_json=given.as_json)
    if not removed.published and not given.quiet:
        say("ctx: note: the collections still hold them; the next ctx ask brings them up to date")
    return 0


def _report(documents: Sequence[DocumentInfo], *, as_json: bool, dry_run: bool = False) -> None:
    from cli.output import write_document, write_line

    if as_json:
        listed = [{"doc_id": d.doc_id, "filename": d.filename, "num_pages": d.num_pages} for d in documents]
        write_document("ctx.remove/2", {"removed": [], "would_remove": listed} if dry_run else {"removed": listed})
        return
    for document in documents:
        write_line("would remove" if dry_run else "removed", document.filename, document.doc_id)


def _confirmed(documents: Sequence[DocumentInfo]) -> bool:
    from cli.output import say

    for document in documents[:_MOST_SHOWN]:
        pages = f"{document.num_pages} page{'s' if document.num_pages != 1 else ''}"
        say(f"  {document.filename}  ({pages}, {document.doc_id})")
    if len(documents) > _MOST_SHOWN:
        say(f"  … and {len(documents) - _MOST_SHOWN} more")
    number = "1 document" if len(documents) == 1 else f"{len(documents)} documents"
    return typer.confirm(f"Remove {number} from the index?", err=True)
