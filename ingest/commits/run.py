"""A run: the commits of repositories → items of the catalog → vectors.

Only what is new is read, the newest first, some hundred commits a transaction; each can be found by its words from
then on. Commits that no branch leads to any more go. Stopped anywhere, the next run goes on there.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ingest.commits.git import Commit, Repository, find_repository, reachable, read_commits
from ingest.encoder import embed_items, encoder_for_items
from ingest.report import CommitsSummary, Observer, RepositoryOutcome
from ingest.run import HasPaths, in_good_order, resolved
from ingest.scan import to_utf8
from ingest.stages import update_graph_of
from research.errors import CtxError, DocumentError
from research.governance import SECRETS, BaseRedactor, SafeRedactor
from research.settings import Settings
from research.store import (
    Catalog,
    IndexPaths,
    NewItem,
    Written,
    write_lock,
)
from research.text import block, one_line

KIND = "commit"

_A_TRANSACTION = 256  # commits: a second of work, all that a kill can cost
_REMOVED_AT_ONCE = 2000
_LONGEST_TITLE = 300
_LONGEST_AUTHOR = 200
_LONGEST_WORDS = 12_000
_SHORT_MESSAGE = 60  # characters: "fix", "wip", "typo" tell an encoder nothing
_EMBEDDED = 1000  # characters of a message
_EMBEDDED_NAMES = 300


def ingest_commits(
    index: HasPaths | IndexPaths,
    repositories: str | Path | Iterable[str | Path],
    *,
    settings: Settings | None = None,
    observer: Observer | None = None,
    wait: float = 0.0,
    prune: bool = False,
) -> CommitsSummary:
    """Bring the history of git repositories into an index: of each what HEAD and the local branches lead to.

    A repository that cannot be read never stops the others: it stands in the summary with the reason; alone, it raises
    CtxError. `prune`: the commits of one that is gone are removed. `wait`: seconds to wait for another writer, -1 for
    ever. Ctrl-C ends it in good order, with `interrupted` set.
    """
    started = time.monotonic()
    where, settings, given = resolved(index, settings, repositories)
    told = observer or Observer()
    found = [(path, _locate(path)) for path in given]
    errors = [each for _, each in found if isinstance(each, CtxError)]
    if len(errors) == len(found) and errors and not where.exists:
        raise errors[0]  # no index is made for nothing
    summary = CommitsSummary()
    with write_lock(where, wait=wait), Catalog(where, writable=True) as catalog:
        encoder = encoder_for_items(catalog, settings, told, "commits are")
        with in_good_order(catalog, summary):
            for path, repository in found:
                outcome = _take(catalog, path, repository, told, prune=prune)
                if outcome.result == "failed" and len(found) == 1:
                    raise (type(errors[0]) if errors else CtxError)(outcome.reason, hint=outcome.hint)
                summary.repositories.append(outcome)
            summary.embedded = embed_items(catalog, KIND, encoder, told)
            update_graph_of(catalog)
        summary.pending = len(catalog.items.without_vectors(KIND, encoder.name))
    summary.seconds = time.monotonic() - started
    return summary


def remove_repositories(index: HasPaths | IndexPaths, paths: Sequence[Path]) -> CommitsSummary:
    """Take the commits of repositories out of an index, whether these are still there or not; they are not touched."""
    where = index if isinstance(index, IndexPaths) else index.paths
    summary = CommitsSummary()
    with write_lock(where), Catalog(where, writable=True) as catalog:
        for path in paths:
            names = _known_names(catalog, path)
            shown = to_utf8(str(path))
            if names:
                removed = catalog.items.remove_parents(KIND, names)
                outcome = RepositoryOutcome(shown, "removed", names[0], removed=removed)
            else:
                known = ", ".join(catalog.items.count_by_parent(KIND)) or "none"
                reason = f"no commits of {shown} are in the index"
                outcome = RepositoryOutcome(shown, "failed", reason=reason, hint=f"repositories that are: {known}")
            summary.repositories.append(outcome)
    return summary


def _locate(path: Path) -> Repository | CtxError:
    try:
        return find_repository(path)
    except CtxError as error:
        return error


def _take(
    catalog: Catalog, path: Path, found: Repository | CtxError, observer: Observer, *, prune: bool
) -> RepositoryOutcome:
    shown = to_utf8(str(path))
    try:
        if isinstance(found, Repository):
            return _read(catalog, RepositoryOutcome(shown, "read", found.name), found, observer)
    except DocumentError as error:  # git hangs
        return RepositoryOutcome(shown, "failed", reason=error.message, hint=error.hint)
    # Whether something of it is there: a damaged repository is not one that is gone.
    there = (path / ".git").exists() or (path / "HEAD").exists()
    names = [] if there else _known_names(catalog, path)
    if names and prune:
        return RepositoryOutcome(shown, "removed", names[0], removed=catalog.items.remove_parents(KIND, names))
    hint = f"to remove its commits from the index: ctx ingest --commits {shown} --prune" if names else found.hint
    return RepositoryOutcome(shown, "failed", reason=found.message, hint=hint)


def _read(
    catalog: Catalog, outcome: RepositoryOutcome, repository: Repository, observer: Observer
) -> RepositoryOutcome:
    with repository.borrowed() as git:
        shas, problem = reachable(git, repository.tips)
        there = catalog.items.known_keys(KIND, shas)
        new = [sha for sha in shas if sha not in there]
        before = set(catalog.items.keys_of(KIND, repository.name))
        written, read, damaged = Written(), 0, 0
        observer.on_progress("commits", 0, len(new))
        stream = read_commits(git, new)
        while commits := list(islice(stream, _A_TRANSACTION)):
            written += _write(catalog, repository, outcome.path, commits, stamp="")
            read += len(commits)
            damaged += sum(commit.damaged for commit in commits)
            observer.on_progress("commits", min(read, len(new)), len(new))
    # Where git could not follow all of the history, what it did not come to may well be there.
    gone = [] if problem else sorted(before.difference(shas))
    for start in range(0, len(gone), _REMOVED_AT_ONCE):
        catalog.items.remove(KIND, gone[start : start + _REMOVED_AT_ONCE])
    stamp = hashlib.sha256("\n".join(repository.tips).encode()).hexdigest()
    _write(catalog, repository, outcome.path, [], stamp=stamp)
    return replace(
        outcome,
        commits=len(before) - len(gone) + written.added,
        added=written.added,
        removed=len(gone),
        elsewhere=len(there.difference(before)) + written.elsewhere,
        damaged=damaged,
        unreadable=len(new) - read,
        notes=tuple(_notes(repository, problem, damaged, len(new) - read)),
    )


def _write(catalog: Catalog, repository: Repository, path: str, commits: Sequence[Commit], *, stamp: str) -> Written:
    metadata = {"path": os.path.realpath(path).encode("utf-8", "replace").decode(), "shallow": bool(repository.shallow)}
    return catalog.items.put(
        KIND, repository.name, stamp, commit_items(commits, redactor()), metadata=metadata, replace=False
    )


def _notes(repository: Repository, problem: str, damaged: int, unreadable: int) -> Iterator[str]:
    if not repository.tips:
        yield "it has no commits yet"
    if repository.shallow:
        yield "it is a shallow clone: earlier history is not in it (git fetch --unshallow brings it)"
    if problem:
        yield f"git cannot follow all of its history ({problem}); what was in the index already is kept"
    if damaged:
        yield f"{damaged:,} commits were taken without their changes, which git cannot show"
    if unreadable:
        yield f"{unreadable:,} commits cannot be read and were left out; check it with: git fsck"


def _known_names(catalog: Catalog, path: Path) -> list[str]:
    """The repositories in the index that a path means, gone as it may be."""
    real = os.path.realpath(path).encode("utf-8", "replace").decode()
    own = {real, str(Path(real) / ".git")}
    with suppress(CtxError):  # gone, or no longer one
        own.add(find_repository(path).name)
    return [name for name in catalog.items.count_by_parent(KIND) if name in own]


def commit_items(commits: Iterable[Commit], redactor: SafeRedactor, *, subjects: bool = True) -> Iterator[NewItem]:
    """Make items of what can be made safe of each commit: a message whose redaction fails is left out of its commit.
    `subjects`: whether what is searched has the first line of messages; the bench asks with it."""
    for commit in commits:
        author, message = redactor.redact_all([commit.author, commit.message]).texts
        yield _item(commit, author or "", message or "", subjects=subjects)


def redactor() -> SafeRedactor:
    """Keys and passwords go, and so do mail addresses: whoever wrote a commit is known by name."""
    return SafeRedactor(BaseRedactor(SECRETS | {"email"}))


def _item(commit: Commit, author: str, message: str, *, subjects: bool) -> NewItem:
    text = block(message).strip()
    if not subjects:
        text = text.partition("\n")[2].strip()
    title = text.partition("\n")[0][:_LONGEST_TITLE] if subjects else ""
    files = [one_line(path) for path in commit.files]
    return NewItem(
        key=commit.sha,
        title=title,
        text=text,
        created_at=commit.time,
        metadata={
            "sha": commit.sha,
            "author": one_line(author)[:_LONGEST_AUTHOR].strip(),
            "timestamp": commit.time,
            "files_changed": files,
            "insertions": commit.insertions,
            "deletions": commit.deletions,
        },
        words=_words(commit, files),
        embedded=_embedded(commit, text, files),
    )


def _words(commit: Commit, files: list[str]) -> str:
    functions = (one_line(name) for name in commit.functions)
    return " ".join([*functions, *commit.words, *files])[:_LONGEST_WORDS]


def _embedded(commit: Commit, text: str, files: list[str]) -> str:
    """The message alone where it says something: names of files make all commits alike."""
    message = text[:_EMBEDDED]
    if len(message) >= _SHORT_MESSAGE:
        return message
    stems = (path.rpartition("/")[2].partition(".")[0] for path in files[:12])
    names = " ".join([*(one_line(name) for name in commit.functions[:12]), *stems])
    return f"{message}\n{names[:_EMBEDDED_NAMES]}".strip() or commit.sha
