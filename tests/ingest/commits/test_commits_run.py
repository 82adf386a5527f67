"""Repositories into an index: only what is new, what is gone goes, and whatever is wrong with one is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ingest.commits.run import ingest_commits, remove_repositories
from ingest.report import Observer, RepositoryOutcome, Stage
from research.errors import CtxError, UsageError
from research.index import Index
from research.sources.items import CommitsSource
from research.store import IndexPaths, StoredItem
from tests.in_process import run_in_process
from tests.ingest.commits.git_making import Made


@pytest.fixture
def index(tmp_path: Path) -> IndexPaths:
    return IndexPaths(tmp_path / "index")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    repository = Made(tmp_path / "repo")
    repository.commit("Parse dates of servers\n\nThey send three forms.", {"src/dates.py": "def parse():\n    pass\n"})
    repository.commit("Send mail in the background", {"src/mail.py": "def send():\n    pass\n"})
    return repository


def take(index: IndexPaths, *folders: Path, prune: bool = False) -> RepositoryOutcome:
    return ingest_commits(index, folders, prune=prune).repositories[0]


def stored(index: IndexPaths) -> dict[str, StoredItem]:
    with Index(index.root) as opened, opened.catalog.snapshot() as reader:
        return {item.key: item for item in reader.items.all("commit")}


def test_only_what_is_new_is_read(index: IndexPaths, made: Made) -> None:
    first = ingest_commits(index, made.folder)
    assert (first.repositories[0].added, first.embedded, first.pending) == (2, 2, 0)
    again = ingest_commits(index, made.folder)
    assert (again.repositories[0].added, again.repositories[0].commits, again.embedded) == (0, 2, 0)
    made.commit("third")
    assert (third := take(index, made.folder)).added == 1
    assert third.commits == 3


def test_commits_that_no_branch_leads_to_go(index: IndexPaths, made: Made) -> None:
    take(index, made.folder)
    made.git("commit", "-q", "--amend", "-m", "Send mail later")
    amended = take(index, made.folder)
    assert (amended.added, amended.removed, amended.commits) == (1, 1, 2)
    assert {item.title for item in stored(index).values()} == {"Parse dates of servers", "Send mail later"}


def test_a_branch_keeps_its_commits_when_another_is_out(index: IndexPaths, made: Made) -> None:
    made.git("checkout", "-q", "-b", "side")
    made.commit("on the side")
    take(index, made.folder)
    made.git("checkout", "-q", "main")
    assert (take(index, made.folder).removed, len(stored(index))) == (0, 3)
    made.git("branch", "-q", "-D", "side")
    assert (take(index, made.folder).removed, len(stored(index))) == (1, 2)


def test_what_a_stopped_run_has_read_is_kept_and_the_next_goes_on(
    index: IndexPaths, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.commits.run._A_TRANSACTION", 1)

    class Stops(Observer):
        def on_progress(self, stage: Stage, done: int, total: int) -> None:
            if stage == "commits" and done:
                raise KeyboardInterrupt

    stopped = ingest_commits(index, made.folder, observer=Stops())
    assert (stopped.interrupted, stopped.pending) == (True, 1)
    assert [item.title for item in stored(index).values()] == ["Send mail in the background"]
    rest = ingest_commits(index, made.folder)
    assert (rest.repositories[0].added, rest.embedded, rest.pending) == (1, 2, 0)


def test_secrets_mail_and_escapes_do_not_get_in(index: IndexPaths, made: Made) -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    sha = made.commit(
        f"Clear \x1b[2Jscreen\n\naws {key} and bob@example.com",
        {"odd\x1b[31m.txt": "x\n"},
        GIT_AUTHOR_NAME="Eve\x1b]0;owned\x07 too",
    )
    take(index, made.folder)
    item = stored(index)[sha]
    told = f"{item.title}{item.text}{json.dumps(item.metadata)}"
    assert "\x1b" not in item.title + item.text
    assert "\\x1b[2J" in item.text
    assert key not in told
    assert "example.com" not in told
    assert item.metadata["author"] == "Eve\\x1b]0;owned\\x07 too"
    assert item.metadata["files_changed"] == ["odd\\x1b[31m.txt"]


def test_a_commit_of_very_many_files_is_bounded(index: IndexPaths, made: Made) -> None:
    sha = made.commit("Vendor it", {f"vendor/{'deep/' * 10}{n}.txt": "x\n" for n in range(450)})
    take(index, made.folder)
    metadata = stored(index)[sha].metadata
    assert 0 < len(metadata["files_changed"]) < 450
    assert metadata["insertions"] == 450


@pytest.mark.parametrize("kind", ["empty", "unborn", "detached", "bare", "locked"])
def test_repositories_in_other_states(index: IndexPaths, made: Made, tmp_path: Path, kind: str) -> None:
    folder, commits = made.folder, 2
    if kind == "empty":
        folder, commits = Made(tmp_path / "empty").folder, 0
    elif kind == "unborn":
        made.git("checkout", "-q", "--orphan", "new")
    elif kind == "detached":
        made.git("checkout", "-q", "--detach", "HEAD~1")
    elif kind == "bare":
        folder = tmp_path / "bare.git"
        made.git("clone", "-q", "--bare", str(made.folder), str(folder))
    else:
        (made.folder / ".git" / "index.lock").touch()
        (made.folder / ".git" / "HEAD.lock").touch()
    outcome = take(index, folder)
    assert (outcome.result, outcome.commits) == ("read", commits)
    assert (outcome.notes == ("it has no commits yet",)) == (kind == "empty")


def test_a_shallow_clone_says_that_it_is_one(index: IndexPaths, made: Made, tmp_path: Path) -> None:
    made.git("clone", "-q", "--depth", "1", f"file://{made.folder}", str(tmp_path / "shallow"))
    outcome = take(index, tmp_path / "shallow")
    assert (outcome.commits, outcome.damaged, outcome.unreadable) == (1, 0, 0)
    assert "shallow" in outcome.notes[0]


def test_work_trees_and_folders_within_are_the_same_repository(index: IndexPaths, made: Made, tmp_path: Path) -> None:
    made.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    tree = Made.__new__(Made)
    tree.folder, tree.seconds = tmp_path / "tree", made.seconds
    tree.commit("in the tree")
    assert take(index, made.folder).commits == 3
    assert take(index, tmp_path / "tree" / "src").added == 0
    assert {item.parent for item in stored(index).values()} == {str((made.folder / ".git").resolve())}


@pytest.mark.slow
def test_a_clone_adds_only_what_the_other_has_not(index: IndexPaths, made: Made, tmp_path: Path) -> None:
    take(index, made.folder)
    clone = Made(tmp_path / "clone")
    clone.git("pull", "-q", str(made.folder), "main")
    clone.commit("only here")
    outcome = take(index, clone.folder)
    assert (outcome.added, outcome.elsewhere, outcome.commits) == (1, 2, 1)
    remove_repositories(index, [made.folder])
    assert (take(index, clone.folder).added, len(stored(index))) == (2, 3)


def test_submodules_are_told_as_a_path(index: IndexPaths, made: Made) -> None:
    made.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},library")
    sha = made.commit("Take the library in")
    take(index, made.folder)
    assert stored(index)[sha].metadata["files_changed"] == ["library"]


def test_a_lost_file_costs_the_changes_of_its_commits_alone(index: IndexPaths, made: Made) -> None:
    made.commit("Change mail", {"src/mail.py": "def send():\n    return 1\n"})
    made.commit("Last", {"z.txt": "z\n"})
    made.lose("HEAD~2:src/mail.py")
    outcome = take(index, made.folder)
    assert (outcome.commits, outcome.damaged, outcome.unreadable) == (4, 2, 0)
    found = {item.title: item.metadata["files_changed"] for item in stored(index).values()}
    assert found["Change mail"] == ["src/mail.py"]
    assert found["Last"] == ["z.txt"]


def test_a_lost_commit_ends_the_history_and_removes_nothing(index: IndexPaths, made: Made) -> None:
    take(index, made.folder)
    made.commit("third")
    made.git("branch", "-q", "old", "HEAD~1")
    made.commit("fourth")
    made.lose("old~1")
    outcome = take(index, made.folder)
    assert outcome.result == "read"
    assert (outcome.removed, len(stored(index))) == (0, 4)
    assert "cannot follow all of its history" in outcome.notes[0]


def test_a_repository_that_cannot_be_read_stops_no_other(index: IndexPaths, made: Made, tmp_path: Path) -> None:
    summary = ingest_commits(index, [tmp_path, made.folder])
    assert [each.result for each in summary.repositories] == ["failed", "read"]
    assert summary.repositories[0].hint
    with pytest.raises(UsageError, match="no git repository"):
        ingest_commits(index, tmp_path)


def test_no_index_is_made_for_nothing(index: IndexPaths, tmp_path: Path) -> None:
    with pytest.raises(CtxError):
        ingest_commits(index, tmp_path / "nowhere")
    assert not index.exists


@pytest.mark.slow
def test_a_repository_that_is_gone_keeps_its_commits_until_told(index: IndexPaths, made: Made) -> None:
    take(index, made.folder)
    shutil.rmtree(made.folder)
    with pytest.raises(CtxError) as raised:
        take(index, made.folder)
    assert "--prune" in raised.value.hint
    with Index(index.root) as opened:
        assert [check.severity for check in opened.admin.check() if check.name == "commits"] == ["warning"]
    assert len(stored(index)) == 2
    assert (take(index, made.folder, prune=True).removed, len(stored(index))) == (2, 0)


def test_a_commit_is_found_by_message_path_and_function(index: IndexPaths, made: Made) -> None:
    take(index, made.folder)
    with Index(index.root) as opened, opened.catalog.snapshot() as reader:
        source = opened.item_source(CommitsSource)
        for question in ("forms that servers send", "src/dates.py", "dates"):
            found = source.find(reader, question, 1).items[0]
            assert found.item.title == "Parse dates of servers"
            assert str(source.ref(found)) == f"commit:{found.item.key}"
            assert 0.0 < found.score < 1.0
        assert found.item.metadata == {
            "sha": found.item.key,
            "author": "Ada Lovelace",
            "timestamp": "2023-11-14T22:14:20+00:00",
            "files_changed": ["src/dates.py"],
            "insertions": 2,
            "deletions": 0,
        }


def test_the_command_tells_counts_and_removes_them(index: IndexPaths, made: Made) -> None:
    at = ("--index", str(index.root))
    first = run_in_process("ingest", "--commits", str(made.folder), *at)
    assert (first.code, first.out) == (0, f"{made.folder}: added 2, 2 commits in the index\n")
    told = run_in_process("ingest", "--commits", str(made.folder), "--json", *at).document
    assert told["commits"]["repositories"][0]["commits"] == 2
    assert run_in_process("status", "--json", *at).document["items"] == {"commit": 2}
    assert "commits\t2 of 1 repository, all where they were" in run_in_process("doctor", *at).out
    listed = run_in_process("list", "--json", *at).document
    assert listed["repositories"] == [{"repository": str(made.folder / ".git"), "commits": 2}]
    assert "2 commits of" in run_in_process("list", *at).err
    assert run_in_process("remove", "--commits", str(made.folder), "--dry-run", *at).code == 2
    gone = run_in_process("remove", "--commits", str(made.folder), "--json", *at).document
    assert [each["commits"] for each in gone["removed_commits"]] == [2]
    assert run_in_process("remove", "--commits", str(made.folder), *at).code == 1
    with Index(index.root) as opened, opened.catalog.snapshot() as reader:
        assert reader.items.count() == {}


def test_the_command_without_anything_to_read_is_a_mistake(tmp_path: Path) -> None:
    assert run_in_process("ingest", cwd=tmp_path).code == 2
    assert run_in_process("ingest", "--commits", str(tmp_path), cwd=tmp_path).code == 2
