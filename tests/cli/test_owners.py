"""What is found upward is used only if it is the user's own. Where the tests are root, also as an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import MakePdf
from tests.in_process import Ran, run_in_process

NOBODY = 65534
IS_ROOT = os.geteuid() == 0
# The interpreter may lie where only root can read: reading is allowed, and nothing else that root may do.
_CAPABILITIES = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
_BECOME_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *_CAPABILITIES]
AS: dict[str, list[str]] = {"root": [], "ordinary": _BECOME_NOBODY} if IS_ROOT else {"ordinary": []}

Project = Path


# As another user it takes a process a command: a test below is the quick witness of that.
@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if become else ()) for name, become in AS.items()])
def who(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def project(make_pdf: MakePdf, tmp_path: Path, who: str) -> Project:
    """A folder with a document, all of it the user's."""
    folder = tmp_path / "project"
    make_pdf("a.pdf", ["A page about walruses"], folder / "docs")
    _give(tmp_path, _id(who))
    return folder


def _id(who: str) -> int:
    return NOBODY if IS_ROOT and who == "ordinary" else os.geteuid()


def _give(path: Path, owner: int) -> None:
    for found in (path, *path.rglob("*")):
        os.chown(found, owner, -1, follow_symlinks=False)


def _ctx(who: str, args: Sequence[str], cwd: Path, **variables: str) -> Ran:
    """The command as that user, in this process if it is the same."""
    if not AS[who]:
        return run_in_process(*args, cwd=cwd, env=variables)
    command = [*AS[who], sys.executable, "-m", "cli.main", *args]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def _index(filled: Path, folder: Path, who: str) -> Path:
    """An index of that user's."""
    shutil.copytree(filled, folder)
    _give(folder, _id(who))
    return folder


def test_ones_own_index_is_used(project: Project, who: str) -> None:
    assert _ctx(who, ["init"], project).code == 0
    assert _ctx(who, ["ingest", "docs"], project).code == 0
    assert (project / ".ctx").stat().st_uid == _id(who)
    assert "walruses" in _ctx(who, ["ask", "walruses"], project / "docs").out


def _strange_owner(path: Path, who: str) -> str:
    _give(path, NOBODY if _id(who) != NOBODY else 0)
    return "belongs to another user"


def _strange_mode(path: Path, who: str) -> str:
    path.chmod(0o777 if path.is_dir() else 0o666)
    return "can be written by everybody"


STRANGE = [_strange_mode, *([_strange_owner] if IS_ROOT else [])]


@pytest.mark.parametrize("estrange", STRANGE)
def test_an_index_of_somebody_else_is_not_used(project: Project, who: str, filled: Path, estrange) -> None:
    index = _index(filled, project / ".ctx", who)
    reason = estrange(index, who)
    before = sorted((path.as_posix(), path.lstat().st_mtime_ns) for path in index.rglob("*"))
    for args in (["ask", "walruses"], ["ingest", "."], ["status"], ["doctor", "--fix"], ["remove", "*", "--yes"]):
        done = _ctx(who, args, project / "docs")
        assert done.code == 1, done.out
        assert reason in done.err
        assert "--index" in done.err
        assert "safe_folders" in done.err
    assert sorted((path.as_posix(), path.lstat().st_mtime_ns) for path in index.rglob("*")) == before
    # Named, it is the user's decision.
    named = _ctx(who, ["ask", "walruses", "--index", str(index)], project / "docs")
    assert "belongs" not in named.err
    listed = _ctx(who, ["status"], project / "docs", CTX_SAFE_FOLDERS=str(project))
    assert listed.code == 0


@pytest.mark.parametrize("estrange", STRANGE)
def test_a_ctx_toml_of_somebody_else_is_not_used(project: Project, who: str, estrange) -> None:
    settings = project / "ctx.toml"
    settings.write_text("max_tokens = 77\n")
    os.chown(settings, _id(who), -1)
    assert _ctx(who, ["status"], project / "docs").code == 0
    reason = estrange(settings, who)
    done = _ctx(who, ["status"], project / "docs")
    assert done.code == 1
    assert reason in done.err
    assert "ctx.toml" in done.err
    assert _ctx(who, ["status"], project / "docs", CTX_SAFE_FOLDERS=str(project)).code == 0


def test_safe_folders_are_the_users_own_to_list(project: Project, who: str) -> None:
    (project / "ctx.toml").write_text(f'safe_folders = ["{project}"]\n')
    os.chown(project / "ctx.toml", _id(who), -1)
    done = _ctx(who, ["status"], project)
    assert done.code == 2
    assert "safe_folders" in done.err


def test_safe_folders_in_the_users_config(project: Project, who: str) -> None:
    assert _ctx(who, ["init"], project).code == 0
    (project / ".ctx").chmod(0o777)
    assert _ctx(who, ["status"], project).code == 1
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "ctx" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'safe_folders = ["{project}"]\n')
    assert _ctx(who, ["status"], project).code == 0


def test_a_found_index_that_is_a_link_is_not_used(project: Project, who: str, tmp_path: Path, filled: Path) -> None:
    _index(filled, tmp_path / "other", who)
    (project / ".ctx").symlink_to(tmp_path / "other")
    os.chown(project / ".ctx", _id(who), -1, follow_symlinks=False)
    for args in (["ask", "walruses"], ["ingest", "docs"], ["init"]):
        done = _ctx(who, args, project)
        assert done.code == 1
        assert "link" in done.err


def test_an_index_that_ctx_toml_names_is_looked_at_too(project: Project, who: str, filled: Path) -> None:
    (project / "ctx.toml").write_text('index = "ix"\n')
    os.chown(project / "ctx.toml", _id(who), -1)
    _index(filled, project / "ix", who)
    assert _ctx(who, ["ask", "housing"], project).code == 0
    (project / "ix").chmod(0o777)
    done = _ctx(who, ["ask", "walruses"], project)
    assert done.code == 1
    assert "can be written by everybody" in done.err


def test_an_ordinary_user(tmp_path: Path, filled: Path) -> None:
    """Uses an index of their own, finds none of another's, and can by permissions not write what was made read-only."""
    project = tmp_path / "project"
    project.mkdir()
    index = _index(filled, project / ".ctx", "ordinary")
    _give(tmp_path, _id("ordinary"))
    assert "mortgages" in _ctx("ordinary", ["show", "crisis.pdf", "2"], project).out
    index.chmod(0o500)
    done = _ctx("ordinary", ["remove", "gardening.pdf", "--yes", "--index", str(index)], project)
    assert done.code == 1
    assert "make the folder writable" in done.err
    for estrange in STRANGE:
        reason = estrange(index, "ordinary")
        done = _ctx("ordinary", ["show", "crisis.pdf", "2"], project)
        assert (done.code, done.out, reason in done.err) == (1, "", True)
    index.chmod(0o700)
    shutil.rmtree(index)
