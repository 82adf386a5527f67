"""What a run of `ctx ingest` or `ctx watch` came to, in words.

Source code at the command line: `ctx ingest PATH --code`, `ctx remove --code PATH`.

Commits at the command line: `ctx ingest --commits REPO`, `ctx remove --commits REPO`.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.output import complain, say, write, write_document, write_line
from research.errors import CtxError, NothingFoundError, SomeFilesFailedError, StoppedError, UsageError
from research.reports import amount
from research.visible_text import one_line

if TYPE_CHECKING:
    from ingest.report import CommitsSummary, IngestSummary, PageOutcome, RepositoryOutcome

_KINDS = 6  # of files that were passed over, named in a line


def counts_line(summary: IngestSummary, *, without: Collection[str] = ()) -> str:
    """`added 2, unchanged 7`: what became of the files, empty if there is nothing to tell."""
    counts = {
        "added": summary.count("added"),
        "replaced": summary.count("replaced"),
        "renamed": summary.count("renamed"),
        "unchanged": summary.count("unchanged"),
        "copies": summary.count("copy"),
        "failed": summary.count("failed"),
        "removed": len(summary.removed) + (len(summary.code.removed) if summary.code else 0),
    }
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count and name not in without)


def notes_of(summary: IngestSummary, *, told: bool, prune: bool) -> Iterator[str]:
    """What else there is to say, once: where warnings and failures were `told` as they came, only the rest."""
    from research.reports import page_line

    if not told:
        for outcome in summary.files:
            yield from (f"warning: {outcome.path}: {warning}" for warning in outcome.warnings)
        yield from (f"given up: {page_line(page)}" for page in summary.failed_pages)
        yield from (f"failed: {outcome.path}: {outcome.reason}" for outcome in summary.failed)
    if summary.passed_over:
        yield _passed_over(summary.passed_over)
    if summary.links_not_followed:
        links = _first_of(summary.links_not_followed)
        yield f"warning: links out of the folder were not followed ({links}); --follow-links takes them"
    if summary.dangling_links:
        yield f"warning: links lead nowhere ({_first_of(summary.dangling_links)})"
    for folder in summary.empty_folders:
        yield (
            f"note: {folder} is empty, as it is when a drive is not mounted; what was read from it is kept"
            f" (to remove it: ctx remove {shlex.quote(f'{folder}/*')})"
        )
    if summary.gone and not prune:
        are, they = ("file is", "it") if len(summary.gone) == 1 else ("files are", "they")
        remedy = f"{they} will be found until you remove {'it' if they == 'it' else 'them'}: --prune"
        yield f"note: {len(summary.gone)} {are} gone ({_first_of(summary.gone)}); {remedy}"
    if summary.waiting_pages:
        yield f"note: {_waiting(summary.waiting_pages)}"


def _passed_over(kinds: dict[str, int]) -> str:
    """`passed over 12: .docx 9, .md 3`: files of other kinds, of which a few are named."""
    named = [f"{kind or 'without ending'} {count}" for kind, count in list(kinds.items())[:_KINDS]]
    other = sum(list(kinds.values())[_KINDS:])
    return f"passed over {sum(kinds.values())}: {', '.join(named + [f'other {other}'] * bool(other))}"


def _first_of(names: list[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _waiting(pages: list[PageOutcome]) -> str:
    from research.reports import places

    return f"{places(pages)} given up earlier, not tried in this run; --retry tries again"


def write_code(summary: IngestSummary) -> None:
    """What a run came to, for people."""

    assert summary.code is not None
    shown = counts_line(summary)
    write(f"{shown or ('nothing finished' if summary.interrupted else 'nothing to do')}\n")
    pieces, embedded = amount(summary.code.units, "piece"), f"{summary.code.embedded:,} embedded"
    write(f"{pieces} of code, {embedded}, {summary.seconds:.1f} s\n")


def code_notes(summary: IngestSummary) -> Iterator[str]:
    """What else there is to say of it."""
    if summary.code is None:
        return
    if summary.code.syntax_errors:
        yield f"note: {amount(summary.code.syntax_errors, 'file')} with syntax errors; the rest of each is taken"
    if summary.code.secrets:
        yield f"note: {amount(summary.code.secrets, 'secret')} masked: what looks like a key or a password is not kept"


def remove_code(index: Path, paths: Sequence[str], *, as_json: bool, dry_run: bool) -> int:
    """Take the code of files and folders out, whether these are still there or not; they are not touched."""
    from ingest.code.run import remove_paths
    from research.index import Index

    if dry_run:
        raise UsageError("--dry-run is for documents", hint="ctx list tells which code there is")
    removed = remove_paths(Index(index).paths, [Path(path) for path in paths])
    if as_json:
        listed = [{"path": path, "files": files, "units": units} for path, files, units in removed]
        write_document("ctx.remove/2", {"removed": [], "removed_code": listed})
    for path, files, units in removed if not as_json else ():
        write_line("removed", f"{amount(units, 'piece')} of code, {amount(files, 'file')}", one_line(path))
    if not any(files for _, files, _ in removed):
        raise NothingFoundError("no code of these paths is in the index", hint="see what is with: ctx list")
    return 0


def write_commits(summary: CommitsSummary) -> None:
    """A line a repository, for people."""
    for each in summary.repositories:
        if each.result == "read":
            write(f"{one_line(each.path)}: {_counts(each)}\n")
        elif each.result == "removed":
            write(f"{one_line(each.path)}: {amount(each.removed, 'commit')} removed\n")


def note_commits(summary: CommitsSummary) -> None:
    for each in summary.repositories:
        for note in each.notes:
            say(f"ctx: note: {one_line(each.path)}: {one_line(note)}")


def commits_verdict(summary: CommitsSummary, repositories: Sequence[Path], index: str | None) -> int:
    """The closing line on stderr, where there is something to say, and the exit code."""
    error = _error(summary, repositories, index)
    if error is None:
        return 0
    complain(error, as_json=False)
    return error.exit_code


def _error(summary: CommitsSummary, repositories: Sequence[Path], index: str | None) -> CtxError | None:
    failed = summary.failed
    if summary.interrupted:
        options = [word for each in repositories for word in ("--commits", str(each))]
        again = ["ctx", "ingest", *options, *([] if index is None else ["--index", index])]
        kept = f"{amount(sum(each.added for each in summary.repositories), 'commit')} of this run kept"
        return StoppedError(f"interrupted; what was read is kept ({kept})", hint=f"go on with: {shlex.join(again)}")
    if len(failed) == 1 and len(summary.repositories) == 1:
        return CtxError(one_line(failed[0].reason), hint=one_line(failed[0].hint))
    for each in failed:
        hint = f" ({one_line(each.hint)})" if each.hint else ""
        say(f"ctx: failed: {one_line(each.path)}: {one_line(each.reason)}{hint}")
    if failed:
        count = f"{len(failed)} of {len(summary.repositories)} repositories"
        return SomeFilesFailedError(f"{count} could not be read; the others are in the index")
    return None


def remove_commits(index: Path, repositories: Sequence[str], *, as_json: bool, dry_run: bool) -> int:
    from cli.output import write_document, write_line
    from ingest.commits.run import remove_repositories
    from research.index import Index

    if dry_run:
        raise UsageError("--dry-run is for documents", hint="ctx status tells how many commits there are")
    paths = [Path(each) for each in repositories]
    summary = remove_repositories(Index(index).paths, paths)
    if as_json:
        gone = [each for each in summary.repositories if each.result == "removed"]
        listed = [{"repository": each.repository, "commits": each.removed} for each in gone]
        write_document("ctx.remove/2", {"removed": [], "removed_commits": listed})
    else:
        for each in summary.repositories:
            if each.result == "removed":
                write_line("removed", amount(each.removed, "commit"), one_line(each.repository))
    return commits_verdict(summary, paths, None)


def _counts(each: RepositoryOutcome) -> str:
    return ", ".join(
        [
            *_named(
                ("added", each.added), ("removed", each.removed), ("in the index from another copy", each.elsewhere)
            ),
            f"{each.commits:,} commits in the index",
        ]
    )


def _named(*counts: tuple[str, int]) -> Iterator[str]:
    yield from (f"{name} {count:,}" for name, count in counts if count)
