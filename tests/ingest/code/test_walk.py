"""Finding source files: what is taken, what is passed over and counted, and that nothing hostile holds it up."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ingest.code import find
from ingest.code.find import find_code, no_code
from research.errors import UsageError


def make(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def names(root: Path, **options: bool) -> list[str]:
    return [file.file_path for file in find_code([root], **options).files]


def test_source_files_to_the_bottom_each_once(tmp_path: Path) -> None:
    make(tmp_path, {"b.py": "", "a/c.go": "", "a/d.txt": "", "a/e.md": "", ".hidden/f.py": "", "Makefile": "all:"})
    assert names(tmp_path) == ["Makefile", "b.py", "a/c.go"]
    found = find_code([tmp_path, tmp_path / "a", tmp_path / "b.py"])
    assert len(found.files) == 3
    assert found.passed_over == {".txt": 1, ".md": 1}


def test_gitignore_is_kept_as_git_keeps_it(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".gitignore": "/build.py\n*.gen.js\nout*/\n!keep.gen.js\n# a comment\n",
            "build.py": "",
            "src/build.py": "",
            "src/a.gen.js": "",
            "src/keep.gen.js": "",
            "out1/a.py": "",
            "src/.gitignore": "local.py\n!b.gen.js\n",
            "src/local.py": "",
            "src/b.gen.js": "",
            "local.py": "",
        },
    )
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".git/info/exclude").write_text("excluded.py\n")
    make(tmp_path, {"excluded.py": ""})
    command = ["git", "-C", str(tmp_path), "ls-files", "-o", "--exclude-standard"]
    ours = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert sorted(names(tmp_path)) == sorted(name for name in ours if not name.endswith(".gitignore"))
    # Inside a folder of the repository what stands above holds, too, and paths are those of the repository.
    assert names(tmp_path / "src") == ["src/b.gen.js", "src/build.py", "src/keep.gen.js"]


def test_a_hostile_gitignore_holds_nobody_up(tmp_path: Path) -> None:
    make(
        tmp_path,
        {".gitignore": "*a" * 60 + "b\n[\n" + "**/" * 90 + "x\n" + "fine.py\n", "fine.py": "", "a" * 200 + ".py": ""},
    )
    assert names(tmp_path) == ["a" * 200 + ".py"]


def test_what_others_wrote_is_passed_over(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            "node_modules/x/i.js": "",
            "vendor/y.go": "",
            "target/z.rs": "",
            "Cargo.toml": "[package]",
            "env/pyvenv.cfg": "",
            "env/lib/a.py": "",
            "src/build/real.py": "",
            "a.min.js": "",
            "x_pb2.py": "",
        },
    )
    found = find_code([tmp_path])
    assert [file.file_path for file in found.files] == ["Cargo.toml", "src/build/real.py"]
    assert found.passed_over[find.VENDORED] == 4
    assert found.passed_over[find.GENERATED] == 2


def test_a_vendored_folder_that_is_asked_for_is_taken(tmp_path: Path) -> None:
    make(tmp_path, {"vendor/y.go": ""})
    assert names(tmp_path / "vendor") == ["y.go"]


def test_large_files_are_not_even_opened(tmp_path: Path) -> None:
    with (tmp_path / "big.js").open("wb") as file:
        file.truncate(50_000_000)
    assert find_code([tmp_path]).passed_over == {find.TOO_LARGE: 1}


def test_links_are_not_followed_out_of_the_tree(tmp_path: Path) -> None:
    make(tmp_path, {"in/a.py": "", "out/b.py": ""})
    inside = tmp_path / "in"
    (inside / "b.py").symlink_to(tmp_path / "out/b.py")
    (inside / "folder").symlink_to(tmp_path / "out")
    (inside / "self").symlink_to(inside)
    (inside / "c.py").symlink_to(inside / "a.py")
    (inside / "nowhere.py").symlink_to(inside / "gone")
    os.mkfifo(inside / "pipe.py")
    found = find_code([inside])
    assert [file.file_path for file in found.files] == ["a.py"]
    assert [Path(link).name for link in found.external_links] == ["b.py", "folder"]
    assert [Path(link).name for link in found.dangling_links] == ["nowhere.py"]
    assert names(inside, follow_links=True) == ["a.py", "b.py"]


def test_no_more_files_than_a_run_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {f"{number}.py": "" for number in range(9)})
    monkeypatch.setattr(find, "MOST_FILES", 5)
    found = find_code([tmp_path])
    assert len(found.files) == 5
    assert found.passed_over[find.BEYOND] == 4


def test_nothing_and_nowhere(tmp_path: Path) -> None:
    make(tmp_path, {"a.md": ""})
    found = find_code([tmp_path])
    assert found.empty
    assert ".md 1" in no_code([tmp_path], found).hint
    with pytest.raises(UsageError, match="no such file"):
        find_code([tmp_path / "nowhere"])


def test_an_odd_name_is_a_file_like_others(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/odd\xff\n.py"
    Path(os.fsdecode(odd)).write_text("def f(): pass")
    assert len(find_code([tmp_path]).files) == 1
