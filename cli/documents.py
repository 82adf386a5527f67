"""ctx list, tag, remove: the documents of the index."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.call import Call, Verbs, confirmed, offers
from cli.options import CodeOption, CommitsOption, DocArgument, DocsArgument, DryRunOption, TagsArgument, YesOption
from cli.output import on_terminal, paint, say, screen_size
from research.errors import NothingFoundError, UsageError
from research.reports import amount
from research.text import one_line, phrase

if TYPE_CHECKING:
    from rich.table import Table

    from research.index import Index
    from research.records import DocumentInfo

_ID = 8  # characters of an id, unless two documents share them
_COLUMNS = {"file": 0, "pages": 20, "id": 40, "added": 60, "title": 76}  # and the width from which each is shown


@offers(acting=True)
def list_documents(call: Call) -> int:
    """In a pipe each document is one line of tab-separated fields: id, file, pages, title, added.

    Examples:
      ctx list
      ctx list | cut -f2
      ctx list --json | jq '.documents | length'
    """
    index = call.index()
    documents = index.documents.list() if index.exists else []
    repositories, trees = index.documents.repositories(), index.documents.code_trees()
    if on_terminal() and documents and not call.as_json:
        from cli.layout import has_links

        paint([document_table(documents, screen_size()[0], links=has_links(index.settings.links))])
    else:
        fields: dict[str, Sequence[Any]] = {
            "documents": documents,
            **({"repositories": repositories} if repositories else {}),
            **({"code": trees} if trees else {}),
        }
        call.show(
            "ctx.list/1",
            {name: [asdict(each) for each in records] for name, records in fields.items()},
            ((d.doc_id, d.filename, d.num_pages, phrase(d.title), d.timestamp) for d in documents),
        )
    if not call.as_json:
        for tree in trees:
            held = f"{amount(tree.units, 'piece')} of code from {amount(tree.files, 'file')}"
            call.note(f"{held} of {tree.root} in the index, too")
        for each in repositories:
            call.note(f"{amount(each.commits, 'commit')} of {each.repository} in the index, too")
    if not documents and not repositories and not trees:
        nothing = index.nothing_found()
        call.note(f"{nothing.message}; {nothing.hint}")
    return 0


def document_table(documents: Sequence[DocumentInfo], width: int, *, links: bool) -> Table:
    """A document a line, its file first; what a narrow terminal has no room for goes, the last columns first."""
    from rich.table import Table

    from cli.layout import link, plain, shorten_middle
    from research.models import page_link

    # As much of an id as tells the documents apart.
    digits = next(n for n in range(_ID, 65) if n == 64 or len({d.doc_id[:n] for d in documents}) == len(documents))
    columns = [name for name, least in _COLUMNS.items() if width >= least]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        justify: Any = "right" if name == "pages" else "left"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")
    for d in documents:
        name = shorten_middle(one_line(d.filename), max(12, width // 2))
        cells = {
            "file": link(plain(name, "cyan"), page_link(d.source_path, 1), links=links),
            "pages": plain(str(d.num_pages)),
            "id": plain(d.doc_id[:digits], "dim"),
            "added": plain(d.timestamp[:10]),
            "title": plain(phrase(d.title)),
        }
        table.add_row(*(cells[name] for name in columns))
    return table


def list_tags(call: Call) -> int:
    """List all tags, and how many documents have each.

    Examples:
      ctx tag list
      ctx tag list --json | jq -r '.tags[].tag'
    """
    index = call.index()
    tags: Mapping[str, Sequence[DocumentInfo]] = index.documents.all_tags() if index.exists else {}
    listed = [
        {"tag": tag, "documents": [{"doc_id": d.doc_id, "filename": d.filename} for d in documents]}
        for tag, documents in tags.items()
    ]
    call.show("ctx.tag/1", {"tags": listed}, ((tag, len(documents)) for tag, documents in tags.items()))
    return 0


def show_tags(call: Call, doc: DocArgument) -> int:
    """Print the tags of a document, or of all that a pattern means.

    Examples:
      ctx tag show invoice-17.pdf
    """
    index = call.index()
    return _tagged(call, index, index.documents.list(doc))


def add_tags(call: Call, doc: DocArgument, tags: TagsArgument) -> int:
    """Give a document tags, or all that a pattern means.

    Examples:
      ctx tag add invoice-17.pdf tax 2025
      ctx tag add 'papers/*' biology
    """
    index = call.index()
    return _tagged(call, index, index.documents.tag(doc, *tags))


def remove_tags(call: Call, doc: DocArgument, tags: TagsArgument) -> int:
    """Take tags away from a document, or from all that a pattern means.

    Examples:
      ctx tag remove invoice-17.pdf 2025
    """
    index = call.index()
    return _tagged(call, index, index.documents.untag(doc, *tags))


def _tagged(call: Call, index: Index, documents: Sequence[DocumentInfo]) -> int:
    tagged = [(document, index.documents.tags(document.doc_id)) for document in documents]
    listed = [{"doc_id": d.doc_id, "filename": d.filename, "tags": tags} for d, tags in tagged]
    call.show("ctx.tag/1", {"documents": listed}, ((d.filename, *tags) for d, tags in tagged))
    return 0


TAG = Verbs(
    """Tags stay when a file changes, and ask and search take --tag. In a pipe the fields of a line are separated by
    tabs.""",
    {"list": list_tags, "show": show_tags, "add": add_tags, "remove": remove_tags},
)


def remove(
    call: Call,
    doc: DocsArgument = None,
    *,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    code: CodeOption = False,
    commits: CommitsOption = None,
) -> int:
    """Only the index forgets them; the files stay where they are, but for those that were uploaded into it through ctx
    serve. On a terminal it asks first; elsewhere a pattern that means several documents needs --yes.

    Examples:
      ctx remove old-report.pdf
      ctx remove 'draft-*.pdf' --dry-run
      ctx remove 'draft-*.pdf' --yes
      ctx remove ./src --code
      ctx remove --commits ./repository
    """
    if not doc and not commits:
        raise UsageError("missing argument 'DOC...'", hint="name documents; see them with: ctx list")
    index = call.index()
    if code or commits:
        if dry_run:
            raise UsageError("--dry-run is for documents", hint="ctx list tells which code and commits there are")
        if commits and doc:
            raise UsageError("documents and commits are removed one after the other", hint="ctx remove --commits REPO")
        return _remove_commits(call, index, commits) if commits else _remove_code(call, index, doc or ())
    planned = index.admin.plan_removal(*(doc or ()))
    if dry_run:
        _removed(call, "would remove", planned.documents)
        return 0
    if not yes and sys.stdin.isatty():
        names = [f"{d.filename}  ({amount(d.num_pages, 'page')}, {d.doc_id})" for d in planned.documents]
        if not confirmed(f"Remove {amount(len(names), 'document')} from the index?", names):
            say("ctx: nothing was removed")
            return 1
    elif not yes and planned.pattern:
        raise UsageError(
            f"{planned.pattern!r} means several documents, {len(planned.documents)} would go; nothing was removed",
            hint="see them with --dry-run, remove them with --yes",
        )
    removed = index.admin.remove(*(document.doc_id for document in planned.documents))
    _removed(call, "removed", removed.documents)
    if not removed.published:
        call.note("the collections still hold them; the next ctx ask brings them up to date")
    return 0


def _removed(call: Call, word: str, documents: Sequence[DocumentInfo]) -> None:
    listed = [{"doc_id": d.doc_id, "filename": d.filename, "num_pages": d.num_pages} for d in documents]
    fields: dict[str, Any] = {"removed": listed} if word == "removed" else {"removed": [], "would_remove": listed}
    call.show("ctx.remove/2", fields, ((word, d.filename, d.doc_id) for d in documents))


def _remove_code(call: Call, index: Index, paths: Sequence[str]) -> int:
    """Take the code of files and folders out, whether these are still there or not; they are not touched."""
    from ingest import remove_paths

    removed = remove_paths(index.paths, [Path(path) for path in paths])
    listed = [{"path": path, "files": files, "units": units} for path, files, units in removed]
    lines = (
        ("removed", f"{amount(units, 'piece')} of code, {amount(files, 'file')}", path)
        for path, files, units in removed
    )
    call.show("ctx.remove/2", {"removed": [], "removed_code": listed}, lines)
    if not any(files for _, files, _ in removed):
        raise NothingFoundError("no code of these paths is in the index", hint="see what is with: ctx list")
    return 0


def _remove_commits(call: Call, index: Index, repositories: Sequence[str]) -> int:
    from cli.ingest import commits_verdict
    from ingest import remove_repositories

    paths = [Path(each) for each in repositories]
    summary = remove_repositories(index.paths, paths)
    gone = [each for each in summary.repositories if each.result == "removed"]
    call.show(
        "ctx.remove/2",
        {
            "removed": [],
            "removed_commits": [{"repository": each.repository, "commits": each.removed} for each in gone],
        },
        (("removed", amount(each.removed, "commit"), each.repository) for each in gone),
    )
    return commits_verdict(summary, paths, None)
