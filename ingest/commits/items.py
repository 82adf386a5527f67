"""A commit as an item of the index: what is shown of it, what it is found by, and what never gets in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ingest.commits.history import Commit
from research.governance.fail_closed import SafeRedactor
from research.governance.redaction import SECRETS, BaseRedactor
from research.store.catalog.items import NewItem
from research.visible_text import block, one_line

KIND = "commit"
_LONGEST_TITLE = 300
_LONGEST_AUTHOR = 200
_LONGEST_WORDS = 12_000
_SHORT_MESSAGE = 60  # characters: "fix", "wip", "typo" tell an encoder nothing
_EMBEDDED = 1000  # characters of a message
_EMBEDDED_NAMES = 300
_MAIL = "email"


def commit_items(commits: Iterable[Commit], redactor: SafeRedactor, *, subjects: bool = True) -> Iterator[NewItem]:
    """What can be made safe of each: a message whose redaction fails is left out of its commit. `subjects`: whether
    what is searched has the first line of messages; the bench asks with it."""
    for commit in commits:
        author, message = redactor.redact_all([commit.author, commit.message]).texts
        yield _item(commit, author or "", message or "", subjects=subjects)


def redactor() -> SafeRedactor:
    """Keys and passwords go, and so do mail addresses: whoever wrote a commit is known by name."""
    return SafeRedactor(BaseRedactor(SECRETS | {_MAIL}))


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
    names = " ".join([*(one_line(name) for name in commit.functions[:12]), *(_stem(path) for path in files[:12])])
    return f"{message}\n{names[:_EMBEDDED_NAMES]}".strip() or commit.sha


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
