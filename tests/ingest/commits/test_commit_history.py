"""What is read of commits, and that nothing of a repository runs while they are."""

from __future__ import annotations

import resource
from contextlib import ExitStack
from pathlib import Path

import pytest

from ingest.commits.git import (
    LONGEST_MESSAGE,
    MOST_FUNCTIONS,
    Commit,
    changed_words,
    find_repository,
    function_names,
    reachable,
    read_commits,
)
from research.errors import CtxError, UsageError
from tests.ingest.commits.git_making import Made

CODE = """\
class Store:
    def open(self):
        self.file = 1

    def close(self):
        self.file = 2
"""


def history(folder: Path) -> list[Commit]:
    """The newest first."""
    repository = find_repository(folder)
    with repository.borrowed() as git:
        shas, problem = reachable(git, repository.tips)
        assert not problem
        return list(read_commits(git, shas))


def test_a_commit_has_its_message_author_time_files_numbers_and_functions(tmp_path: Path) -> None:
    made = Made(tmp_path)
    first = made.commit("Begin\n\nWith a store.", {"src/store.py": CODE, "grün & blau.txt": "a\n"})
    picture = b"\x89PNG\0\0\1"
    changed = CODE.replace("file = 2", "handle = None")
    second = made.commit("Close for good", {"src/store.py": changed, "x.png": picture})
    later, earlier = history(tmp_path)
    assert (earlier.sha, later.sha) == (first, second)
    assert earlier.message == "Begin\n\nWith a store."
    assert earlier.author == "Ada Lovelace"
    assert earlier.time == "2023-11-14T22:14:20+00:00"
    assert set(earlier.files) == {"src/store.py", "grün & blau.txt"}
    assert (earlier.insertions, earlier.deletions) == (7, 0)
    assert {"Store", "open", "close"} <= set(earlier.functions)
    assert later.files == ("src/store.py", "x.png")
    assert (later.insertions, later.deletions) == (1, 1)
    assert later.functions == ("close",)
    assert {"handle", "file"} <= set(later.words)


def test_a_renamed_file_has_its_new_name_and_only_what_changed(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.commit("one", {"old name.py": CODE * 5})
    made.git("mv", "old name.py", "new name.py")
    made.commit("two", {"z.txt": "z\n"})
    assert history(tmp_path)[0].files == ("new name.py", "z.txt")
    assert (history(tmp_path)[0].insertions, history(tmp_path)[0].deletions) == (1, 0)


def test_a_merge_has_its_message_and_both_sides_are_there(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.commit("base", {"a": "a\n"})
    made.git("checkout", "-q", "-b", "side")
    made.commit("on the side", {"b": "b\n"})
    made.git("checkout", "-q", "main")
    made.commit("on main", {"c": "c\n"})
    made.git("merge", "-q", "--no-ff", "-m", "Merge the side", "side")
    assert [commit.message for commit in history(tmp_path)] == ["Merge the side", "on main", "on the side", "base"]
    assert history(tmp_path)[0].files == ()


def test_a_message_of_a_megabyte_is_cut_and_the_rest_of_the_commit_stays(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.commit("long\n" + "word " * 200_000, {"a.txt": "a\n"})
    made.commit("after it", {"b.txt": "b\n"})
    after, long = history(tmp_path)
    assert after.message == "after it"
    assert len(long.message) == LONGEST_MESSAGE
    assert long.files == ("a.txt",)


def test_a_commit_beyond_what_is_held_of_one_leaves_the_next_whole(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.commit("many lines", {f"{n}.txt": f"{n} {'x' * 100}\n" * 20_000 for n in range(3)})
    made.commit("small", {"small.txt": "s\n"})
    small, large = history(tmp_path)
    assert (small.message, small.files) == ("small", ("small.txt",))
    assert (large.insertions, len(large.files)) == (60_000, 3)


def test_odd_bytes_and_dates_are_read(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.git("config", "i18n.commitEncoding", "latin1")
    made.commit(
        "Größe geändert".encode("latin1"), {"a": "a\n"}, GIT_AUTHOR_NAME="Zo\xeb".encode("latin1").decode("latin1")
    )
    made.git("config", "i18n.commitEncoding", "utf-8")
    made.commit(b"broken \xff\xfe bytes", {"b": "b\n"}, GIT_AUTHOR_DATE="@99999999999999 +0000")
    broken, latin = history(tmp_path)
    assert latin.message == "Größe geändert"
    assert broken.message.startswith("broken ")
    assert broken.time.startswith("1970-") or broken.time > "2023"


def test_a_process_with_very_many_open_files_reads_them_as_well(tmp_path: Path) -> None:
    Made(tmp_path).commit("one", {"a.txt": "a\n"})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(1100):
            stack.enter_context(Path("/dev/null").open("rb"))
        assert [commit.message for commit in history(tmp_path)] == ["one"]


def test_nothing_that_a_repository_asks_for_is_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = tmp_path / "script.sh"
    script.write_text(f'#!/bin/sh\ntouch {ran}\ncat "$1"\n')
    script.chmod(0o755)
    made = Made(tmp_path / "repo")
    made.commit("one", {"a.txt": "a\n", ".gitattributes": "*.txt diff=evil filter=evil\n"})
    made.commit("two", {"a.txt": "b\n"})
    for name, value in {
        "core.fsmonitor": str(script),
        "core.pager": str(script),
        "core.sshCommand": str(script),
        "core.hooksPath": str(tmp_path),
        "core.alternateRefsCommand": str(script),
        "diff.external": str(script),
        "diff.evil.command": str(script),
        "diff.evil.textconv": str(script),
        "filter.evil.smudge": str(script),
        "pager.diff-tree": str(script),
        "alias.diff-tree": f"!{script}",
        "remote.origin.url": f"ext::{script}",
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "credential.helper": str(script),
    }.items():
        made.git("config", name, value)
    made.git("config", "core.repositoryformatversion", "1")
    made.lose("HEAD~1:a.txt")  # git would fetch it from where the config says
    read = history(made.folder)
    assert [commit.message for commit in read] == ["two", "one"]
    assert all(commit.damaged for commit in read)
    assert read[0].files == ("a.txt",)
    assert not ran.exists()


def test_the_git_of_a_hook_does_not_lead_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Made(tmp_path / "one").commit("mine")
    other = Made(tmp_path / "two")
    other.commit("not mine")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert [commit.message for commit in history(tmp_path / "one")] == ["mine"]


def test_sha256_repositories_are_read(tmp_path: Path) -> None:
    made = Made(tmp_path, "--object-format=sha256")
    sha = made.commit("long ids", {"a": "a\n"})
    assert [commit.sha for commit in history(tmp_path)] == [sha]
    assert len(sha) == 64


def test_what_is_no_repository_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        find_repository(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no git repository"):
        find_repository(tmp_path)
    made = Made(tmp_path / "repo")
    (made.folder / ".git" / "HEAD").write_text("nonsense")
    with pytest.raises(CtxError):
        find_repository(made.folder)


def test_without_git_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CtxError, match="git is not installed"):
        find_repository(tmp_path)


def test_names_of_functions_are_bounded_and_plain() -> None:
    headers = "".join(f"@@ -{n} +{n} @@ static int parse_{n}(const char *text)\n-a\n+b\n" for n in range(100))
    assert function_names(headers.encode())[:2] == ["parse_0", "parse_1"]
    assert len(function_names(headers.encode())) == MOST_FUNCTIONS
    assert function_names(b"@@ -1 +1 @@ ## How to add a leg\n+x\n") == ["How to add a leg"]
    assert function_names(b"@@ -1 +1 @@ func (s *Store) Close() error {\n+x\n") == ["Close"]
    assert function_names(b"@@ -1 +1 @@\n+x\n") == []


def test_words_of_lines_that_may_tell_a_secret_are_left_out() -> None:
    patch = b"@@ -1 +1,2 @@\n+password = 'correct horse battery'\n+the staple holds\n--- a/x\n"
    assert changed_words(patch) == ["the", "staple", "holds"]
