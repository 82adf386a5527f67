"""The commits of a repository that somebody else may have made, read by one git for many of them, as they come.

git can be told by a repository's own config to start programs and to fetch what is missing. So its place and its
branches are asked for with all of that switched off; commits are read from a folder of our own that borrows its
objects, in which its config, hooks, attributes and remotes do not exist.

git writes for each commit a mark that nobody can foresee, the fields, and then numbers and patch. From the patch comes
what a change was about: the functions its hunks lie in or begin, and the words of its lines. What one commit may take
of memory is bounded; of a longer one the end is not looked at. Where git dies of a damaged object, the commit at hand
is read again with less, and those after it as ever.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import IO

from research.errors import CtxError, DocumentError, UsageError
from research.process import environment_without_secrets, has_said
from research.text import phrase

_ASK_SECONDS = 60
_MOST_ANSWER = 64 << 20  # bytes: a million branches
_MOST_SAID = 300  # characters of git's own words
_OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_HARMLESS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.commitGraph": "false",  # one that is stale or damaged would hide what is there
    "core.bigFileThreshold": "4m",  # larger files are not compared line by line
    "diff.external": "",
    "protocol.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "i18n.logOutputEncoding": "UTF-8",
    "color.ui": "false",
}
# By git's own rules for languages a hunk's header names the function it lies in.
_DRIVERS = {
    "bash": "sh bash", "cpp": "c h cc cpp cxx hpp hh hxx", "csharp": "cs", "css": "css scss", "elixir": "ex exs",
    "fortran": "f f90", "golang": "go", "html": "html htm", "java": "java", "kotlin": "kt kts", "markdown": "md",
    "matlab": "m", "pascal": "pas", "perl": "pl pm", "php": "php", "python": "py pyi", "ruby": "rb", "rust": "rs",
    "tex": "tex",
}  # fmt: skip
_ATTRIBUTES = "".join(f"*.{end} diff={name}\n" for name, ends in _DRIVERS.items() for end in ends.split())


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as it was found. Work trees of one repository share its name."""

    name: str  # the folder in which git keeps it, links followed
    objects: Path
    tips: tuple[str, ...]  # HEAD and all local branches, and what other work trees have out; empty without a commit
    sha256: bool = False
    shallow: str = ""  # where its history was cut off, in git's own words

    @contextmanager
    def borrowed(self) -> Iterator[Git]:
        """git over its objects alone."""
        with tempfile.TemporaryDirectory(prefix="ctx-git-") as made:
            folder = Path(made)
            for name in ("refs", "info"):
                (folder / name).mkdir()
            form = "\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
            plain = "\trepositoryformatversion = 0\n"
            (folder / "config").write_text(f"[core]\n\tbare = true\n{form if self.sha256 else plain}")
            (folder / "HEAD").write_text("ref: refs/heads/none\n")
            (folder / "info" / "attributes").write_text(_ATTRIBUTES)
            if self.shallow:
                (folder / "shallow").write_text(self.shallow)
            yield Git(
                folder,
                {
                    "GIT_DIR": made,
                    "GIT_OBJECT_DIRECTORY": str(self.objects),
                    "GIT_CONFIG_NOSYSTEM": "1",
                    "GIT_CONFIG_GLOBAL": os.devnull,
                    "GIT_ATTR_NOSYSTEM": "1",
                },
            )


@dataclass(frozen=True, slots=True)
class Git:
    """The program git, to be run in a folder."""

    folder: Path
    variables: Mapping[str, str]

    def start(self, arguments: Sequence[str], stdin: int, stderr: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [_program(), *_options(), *arguments],
            cwd=self.folder,
            env=_environment(self.variables),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )


def find_repository(path: Path) -> Repository:
    """Find the repository that a folder is or lies in. Raises CtxError: none there, somebody else's, damaged."""
    if not path.is_dir():
        what = "is no folder" if path.exists() else "does not exist"
        raise UsageError(f"{path} {what}", hint="name the folder of a git repository: ctx ingest --commits REPO")
    asked = ("rev-parse", "--git-common-dir", "--git-path", "objects", "--show-object-format")
    lines = _ask(path, asked).splitlines()
    if len(lines) != 3:
        raise CtxError(f"git does not tell where the repository of {path} is", hint=f"try: git -C {path} status")
    common, objects = (Path(os.path.realpath(path / line)) for line in lines[:2])
    shallow = common / "shallow"
    return Repository(
        str(common).encode("utf-8", "replace").decode(),
        objects,
        tuple(dict.fromkeys(_tips(path))),
        lines[2] == "sha256",
        shallow.read_text("ascii", "replace") if shallow.is_file() else "",
    )


def _tips(path: Path) -> Iterator[str]:
    # A HEAD without a commit is no error: the repository is new, or its branch is.
    yield from _ids(_ask(path, ("rev-parse", "--quiet", "--verify", "HEAD^{commit}"), may_fail=True))
    yield from _ids(_ask(path, ("for-each-ref", "--format=%(objectname)", "refs/heads"), may_fail=True))
    trees = _ask(path, ("worktree", "list", "--porcelain"), may_fail=True)
    heads = (line.removeprefix("HEAD ") for line in trees.splitlines() if line.startswith("HEAD "))
    yield from (head for each in heads for head in _ids(each) if head.strip("0"))  # all zeros: no commit yet


def _ids(text: str) -> list[str]:
    return [line for line in text.split() if _OBJECT_ID.fullmatch(line)]


def _ask(path: Path, arguments: Sequence[str], *, may_fail: bool = False) -> str:
    """What git answers, in text. The user's own config counts here: it says whose repositories are trusted."""
    try:
        done = subprocess.run(
            [_program(), *_options(), *arguments],
            cwd=path,
            env=_environment({}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CtxError(f"git did not answer for {_ASK_SECONDS} s in {path}", hint="try again later") from None
    except OSError as error:
        raise CtxError(f"{path} cannot be entered: {error.strerror}", hint="make it readable") from error
    if done.returncode and not may_fail:
        raise _refusal(path, done.stderr.decode("utf-8", "replace"))
    return done.stdout[:_MOST_ANSWER].decode("utf-8", "surrogateescape")


def _refusal(path: Path, said: str) -> CtxError:
    if "dubious ownership" in said:
        return CtxError(
            f"{path} belongs to somebody else, and git does not read such repositories",
            hint=f"if you trust it: git config --global --add safe.directory {path.absolute()}",
        )
    if "not a git repository" in said:
        return UsageError(f"{path} is no git repository", hint="name the folder of one: ctx ingest --commits REPO")
    return CtxError(f"git cannot read {path}: {words_of(said)}", hint=f"check it with: git -C {path} fsck")


def words_of(said: str) -> str:
    """Shorten what git said on stderr to a line."""
    return phrase(said.replace("fatal: ", "").replace("error: ", ""))[:_MOST_SAID] or "it says nothing"


def _program() -> str:
    found = shutil.which("git")
    if found is None:
        raise CtxError("git is not installed, and commits are read with it", hint="install git and try again")
    return found


def _options() -> list[str]:
    settings = (f"{name}={value}" for name, value in _HARMLESS.items())
    return ["--no-pager", "--no-replace-objects", *(word for each in settings for word in ("-c", each))]


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Nothing that a caller's git has set, as in a hook; no secrets; and nobody is asked for a password."""
    kept = {name: value for name, value in environment_without_secrets().items() if not name.startswith("GIT_")}
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    return {**kept, **quiet, **more}


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


def reachable(git: Git, tips: Sequence[str]) -> tuple[list[str], str]:
    """Return the commits that a repository's branches lead to, the newest first, and why they are not all: branch by
    branch where one of them leads into something damaged."""
    if not tips:
        return [], ""
    shas, problem = _walk(git, tips)
    if problem and len(tips) > 1:
        seen = dict.fromkeys(shas)
        for tip in tips[:_MOST_DEATHS]:
            seen.update(dict.fromkeys(_walk(git, [tip])[0]))
        shas = list(seen)
    return shas, problem


def read_commits(git: Git, shas: Sequence[str]) -> Iterator[Commit]:
    """Read those of the commits that can be read, in order."""
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
    """Return the functions that a patch changes, each once, in its order."""
    headers = (_function_name(found.decode("utf-8", "replace")) for found in _HUNK.findall(patch))
    begun = (found.decode() for found in _BEGUN.findall(patch))
    names = dict.fromkeys(name for each in (headers, begun) for name in each if 1 < len(name) <= _LONGEST_NAME)
    return list(names)[:MOST_FUNCTIONS]


def changed_words(patch: bytes) -> list[str]:
    """Return the words of lines that came or went, the most frequent first. No line that might tell a secret is among
    them."""
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
