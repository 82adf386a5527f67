"""The commits of a repository, read by one git for many of them and handed on as they come.

git writes for each commit a mark that nobody can foresee, the fields, and then numbers and patch. From the patch comes
what a change was about: the functions its hunks lie in or begin, and the words of its lines. What one commit may take
of memory is bounded; of a longer one the end is not looked at. Where git dies of a damaged object, the commit at hand
is read again with less, and those after it as ever.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from typing import IO

from ingest.commits.repository import Git, words_of
from research.errors import DocumentError
from research.process import has_said

MOST_FILES = 400  # named of a commit; the numbers are of all
LONGEST_MESSAGE = 16_000
_LONGEST_PATH = 400
_PATHS_IN_ALL = 16_000  # characters
_MOST_RECORD = 4 << 20  # bytes
_BLOCK = 1 << 18
_SILENT_SECONDS = 300  # without a byte, git hangs
_MOST_DEATHS = 40  # of git in one run, before the rest is read with less
_AT_ONCE = 2000  # commits a process

# From all of it to the message alone: what is tried in turn with a commit that git cannot show.
_LEVELS = (("--numstat", "-p", "-U0"), ("--name-only",), ("-s",))
_FIELDS = "%H%x00%an%x00%at%x00%B%x00"

MOST_FUNCTIONS = 40
MOST_WORDS = 160
_LONGEST_NAME = 80
_MOST_LINES = 4000  # of a patch whose words are counted; a vendored library says no more in a million
_LONGEST_LINE = 400

_HUNK = re.compile(rb"^@@ -\S+ \+\S+ @@ ([^\n]{1,400})", re.M)
_BEGUN = re.compile(
    rb"^[+-][ \t]*(?:(?:export|default|public|private|static|async|pub)[ \t]+)*"
    rb"(?:def|class|func|fn|function|struct|interface|enum|trait)[ \t]+([A-Za-z_]\w{0,79})",
    re.M,
)
_RECEIVER = re.compile(r"^func \([^)]*\) ")  # of a method in Go
_CALLED = re.compile(r"([A-Za-z_$~][\w$]*)\s*[(<]")
_NAMED = re.compile(
    r"\b(?:def|class|func|fn|function|struct|interface|enum|trait|impl|module|type)\s+([A-Za-z_$][\w$]*)"
)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
_LINE = re.compile(rb"^[+-](?![+-]{2} )([^\n]{3,400})", re.M)
_SECRET = re.compile(rb"(?i)passw|secret|token|api.?key|private.?key|BEGIN |://[^/\s]*:[^/\s]*@")
_WORD = re.compile(rb"[A-Za-z]{3,24}")


@dataclass(frozen=True, slots=True)
class Commit:
    sha: str
    author: str
    time: str
    message: str
    files: tuple[str, ...] = ()
    insertions: int = 0
    deletions: int = 0
    functions: tuple[str, ...] = ()
    words: tuple[str, ...] = field(default=(), repr=False)
    damaged: bool = False  # read without its changes: git cannot show them


@dataclass(frozen=True, slots=True)
class Reachable:
    """Commits that a repository's branches lead to, the newest first. `problem`: why they are not all."""

    shas: tuple[str, ...]
    problem: str = ""


def reachable(git: Git, tips: Sequence[str]) -> Reachable:
    """Branch by branch where one of them leads into something damaged."""
    if not tips:
        return Reachable(())
    shas, problem = _walk(git, tips)
    if problem and len(tips) > 1:
        seen = dict.fromkeys(shas)
        for tip in tips[:_MOST_DEATHS]:
            seen.update(dict.fromkeys(_walk(git, [tip])[0]))
        shas = list(seen)
    return Reachable(tuple(shas), problem)


def read_commits(git: Git, shas: Sequence[str]) -> Iterator[Commit]:
    """Each of these that can be read, in order."""
    left, deaths, level = list(shas), 0, 0
    while left:
        given, alive = left[:_AT_ONCE], True
        last: Commit | None = None
        done = 0
        for each in _stream(git, given, level):
            if each is None:
                alive = False
                break
            if last is not None:
                yield last
            last, done = each, done + 1
        if alive and last is not None:
            yield last
        if alive:
            left = left[len(given) :]
            continue
        # git died of the commit whose record came last, or of the one after it: both can be looked at alone.
        deaths += 1
        suspect = given[max(0, done - 1) : done + 1]
        yield from _with_less(git, suspect, level)
        left = left[max(0, done - 1) + len(suspect) :]
        if deaths == _MOST_DEATHS and level + 1 < len(_LEVELS):
            deaths, level = 0, level + 1


def _with_less(git: Git, shas: Sequence[str], level: int) -> Iterator[Commit]:
    for sha in shas:
        for fewer in range(level, len(_LEVELS)):
            found = list(_stream(git, [sha], fewer))
            if len(found) == 1 and found[0] is not None:
                yield found[0]
                break


def _walk(git: Git, tips: Sequence[str]) -> tuple[list[str], str]:
    with _ids_file(tips) as file, tempfile.TemporaryFile() as errors:
        process = git.start(("rev-list", "--stdin"), file.fileno(), errors.fileno())
        try:
            assert process.stdout is not None
            shas = [line.decode("ascii") for line in process.stdout.read().split()]
            failed = process.wait() != 0
        finally:
            _end(process)
        errors.seek(0)
        return shas, words_of(errors.read(4096).decode("utf-8", "replace")) if failed else ""


def _stream(git: Git, shas: Sequence[str], level: int) -> Iterator[Commit | None]:
    """Commits as git shows them; None at the end if it died."""
    mark = token_hex(16).encode()
    arguments = (
        "diff-tree", "--stdin", "--always", "--root", "-r", "-z", "-M", "-l200", "--no-color",
        "--no-ext-diff", "--no-textconv", "--encoding=UTF-8", f"--format={mark.decode()}{_FIELDS}", *_LEVELS[level],
    )  # fmt: skip
    with _ids_file(shas) as file:
        process = git.start(arguments, file.fileno(), subprocess.DEVNULL)
        try:
            assert process.stdout is not None
            for record in _records(process.stdout, mark):
                commit = _commit(record, level)
                if commit is not None:
                    yield commit
            if process.wait() != 0:
                yield None
        finally:
            _end(process)


def _records(stream: IO[bytes], mark: bytes) -> Iterator[bytes]:
    """What stands between two marks, at most so much of it."""
    held, skipping = b"", True  # before the first mark stands nothing
    while block := _block(stream):
        held += block
        *ended, held = held.split(mark)
        for number, record in enumerate(ended):
            if not (skipping and number == 0):
                yield record
        skipping = skipping and not ended
        if skipping:
            held = held[-len(mark) :]
        elif len(held) > _MOST_RECORD:
            yield held
            held, skipping = held[-len(mark) :], True
    if not skipping:
        yield held


def _block(stream: IO[bytes]) -> bytes:
    if not has_said(stream, _SILENT_SECONDS):
        raise DocumentError(
            f"git has said nothing for {_SILENT_SECONDS} s",
            code="timeout",
            hint="run the same command again; it goes on from here",
        )
    return os.read(stream.fileno(), _BLOCK)


def _commit(record: bytes, level: int) -> Commit | None:
    """None if it is no whole record. A message longer than a record may be leaves no room for what follows it."""
    fields = record.split(b"\0", 4)
    if len(fields) < 4:
        return None
    sha, author, at, message = fields[:4]
    rest = fields[4].lstrip(b"\0\n") if len(fields) == 5 else b""
    text = message[: 4 * LONGEST_MESSAGE].decode("utf-8", "replace").strip()
    names, patch = _listed(rest) if level == 0 else ([(0, 0, name) for name in rest.split(b"\0") if name], b"")
    return Commit(
        sha.decode("ascii", "replace"),
        author[:1000].decode("utf-8", "replace"),
        _time(at),
        text[:LONGEST_MESSAGE],
        tuple(_paths([name for _, _, name in names])),
        sum(plus for plus, _, _ in names),
        sum(minus for _, minus, _ in names),
        tuple(function_names(patch)),
        tuple(changed_words(patch)),
        level > 0,
    )


def _listed(rest: bytes) -> tuple[list[tuple[int, int, bytes]], bytes]:
    """git's numbers, (insertions, deletions, path) of each file, and the patch after them. Of a file that was renamed
    the path is the new one; a binary one has no numbers."""
    found: list[tuple[int, int, bytes]] = []
    while rest:
        entry, _, rest = rest.partition(b"\0")
        if not entry:  # the numbers end here
            break
        plus, _, more = entry.partition(b"\t")
        minus, _, path = more.partition(b"\t")
        if not path:
            _, _, rest = rest.partition(b"\0")
            path, _, rest = rest.partition(b"\0")
        found.append((_number(plus), _number(minus), path))
    return found, rest


def _paths(names: Sequence[bytes]) -> Iterator[str]:
    room = _PATHS_IN_ALL
    for name in names[:MOST_FILES]:
        path = name.decode("utf-8", "replace")
        room -= len(path)
        if room < 0:
            return
        if len(path) <= _LONGEST_PATH:
            yield path


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() else 0


def _time(seconds: bytes) -> str:
    """In UTC. A date that no calendar has is the beginning of time."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC).isoformat()


def _ids_file(shas: Sequence[str]) -> IO[bytes]:
    """A file and not a pipe: git writes while it reads, and nobody would have to do both."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    file.write("".join(f"{sha}\n" for sha in shas).encode())
    file.seek(0)
    return file


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def function_names(patch: bytes) -> list[str]:
    """Each once, in the order of the patch."""
    headers = (_function_name(found.decode("utf-8", "replace")) for found in _HUNK.findall(patch))
    begun = (found.decode() for found in _BEGUN.findall(patch))
    names = dict.fromkeys(name for each in (headers, begun) for name in each if 1 < len(name) <= _LONGEST_NAME)
    return list(names)[:MOST_FUNCTIONS]


def changed_words(patch: bytes) -> list[str]:
    """The words of lines that came or went, the most frequent first. No line that might tell a secret is among them."""
    counts: Counter[bytes] = Counter()
    for line in _changed_lines(patch):
        counts.update(list(dict.fromkeys(word.lower() for word in _WORD.findall(line))))  # in order: no set
    return [word.decode() for word, _ in counts.most_common(MOST_WORDS)]


def _changed_lines(patch: bytes) -> Iterator[bytes]:
    for number, found in enumerate(_LINE.finditer(patch)):
        if number == _MOST_LINES:
            return
        if not _SECRET.search(found[1]):
            yield found[1]


def _function_name(header: str) -> str:
    """`parse_date` of `static int parse_date(const char *text)`, `Store` of `class Store(Base):`; a heading whole."""
    if header.startswith("#"):
        return header.strip("# ")
    header = _RECEIVER.sub("func ", header)
    found = _NAMED.search(header) or _CALLED.search(header) or _IDENTIFIER.search(header)
    return found[found.lastindex or 0] if found else ""
