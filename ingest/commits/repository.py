"""A repository that somebody else may have made: where its objects are, and git run over them without its settings.

git can be told by a repository's own config to start programs and to fetch what is missing. So its place and its
branches are asked for with all of that switched off; commits are read from a folder of our own that borrows its
objects, in which its config, hooks, attributes and remotes do not exist.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from research.errors import CtxError, UsageError
from research.process import environment_without_secrets
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
    """The repository that a folder is or lies in. Raises CtxError: none there, somebody else's, damaged."""
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
    """What git said on stderr, in a line."""
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
