"""Commits at the command line: `ctx ingest --commits REPO`, `ctx remove --commits REPO`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.output import complain, say, write
from research.errors import CtxError, SomeFilesFailedError, StoppedError, UsageError
from research.reports import amount
from research.visible_text import one_line

if TYPE_CHECKING:
    from ingest.report import CommitsSummary, RepositoryOutcome


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
