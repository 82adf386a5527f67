"""Source files into a real index, by the real reading processes, and out of it again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingest.code import run as code_run
from ingest.code.find import SourceFile
from ingest.code.run import ingest_code, items_of, remove_paths
from ingest.code.units import Unit
from ingest.pool import LIMITS, Limits
from ingest.report import IngestSummary
from ingest.run import ingest
from research.errors import NothingFoundError
from research.index import Index
from research.sources import CodeSource, trees_of
from research.store import StoredItem
from tests.conftest import write_pdf

DATES = '''
def parse_http_date(value):
    """The time that a header tells."""
    return to_time(value)


class Calendar:
    def next_holiday(self):
        return self.days[0]
'''
MAIL = 'def send_mail(to, body):\n    """Send it."""\n    return smtp.send(to, body)\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "src"
    root.mkdir()
    (root / "dates.py").write_text(DATES)
    (root / "mail.js").write_text("function sendMail(to) { return smtp(to) }\n")
    return root


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path / "index")


def held(index: Index) -> dict[str, StoredItem]:
    with index.catalog.snapshot() as reader:
        return {str(item.metadata["qualified_name"]): item for item in reader.items.all("code")}


def results(summary: IngestSummary) -> dict[str, str]:
    return {Path(file.path).name: file.result for file in summary.files}


def found(index: Index, question: str) -> list[str]:
    source = index.item_source(CodeSource)
    with index.catalog.snapshot() as reader:
        return [str(each.item.metadata["qualified_name"]) for each in source.find(reader, question, 3).items]


def test_a_tree_comes_in_and_follows_its_files(tree: Path, index: Index) -> None:
    first = ingest_code(index, tree)
    assert results(first) == {"dates.py": "added", "mail.js": "added"}
    assert first.code is not None
    assert (first.code.units, first.code.embedded, first.code.pending) == (4, 4, 0)
    item = held(index)["parse_http_date"]
    assert item.key == f"{tree}/dates.py#parse_http_date"
    assert {**item.metadata, "imports": [], "calls": []} == {
        "file_path": "dates.py",
        "start_line": 2,
        "end_line": 4,
        "language": "python",
        "qualified_name": "parse_http_date",
        "name": "parse_http_date",
        "unit_type": "function",
        "signature": "def parse_http_date(value):",
        "docstring": "The time that a header tells.",
        "calls": [],
        "imports": [],
    }
    for question in ("parseHttpDate", "parse http date", "when does the header say it was"):
        assert found(index, question)[0] == "parse_http_date"
    with index.catalog.snapshot() as reader:
        assert [(tree.files, tree.units) for tree in trees_of(reader)] == [(2, 4)]

    again = ingest_code(index, tree)
    assert set(results(again).values()) == {"unchanged"}

    (tree / "dates.py").write_text(f"# one line more\n{DATES.replace('days[0]', 'days[1]')}")
    (tree / "mail.js").unlink()
    (tree / "post.py").write_text(MAIL)
    changed = ingest_code(index, tree)
    assert results(changed) == {"dates.py": "replaced", "post.py": "added"}
    assert changed.gone == [str(tree / "mail.js")]
    assert changed.code is not None
    assert changed.code.embedded == 2, "the function that only moved keeps its vectors"
    assert "sendMail" in held(index)
    pruned = ingest_code(index, tree, prune=True)
    assert pruned.code is not None
    assert pruned.code.removed == [str(tree / "mail.js")]
    assert "sendMail" not in held(index)


def test_tests_stand_behind_what_they_test_unless_they_are_asked_for(tree: Path, index: Index) -> None:
    (tree / "tests").mkdir()
    (tree / "retry.py").write_text("def again(part):\n    return client.upload(part)\n")
    tested = "def test_upload_again():\n    assert again(part).upload\n"
    (tree / "tests" / "retry.py").write_text(tested)
    ingest_code(index, tree)
    assert found(index, "upload a part again")[:2] == ["again", "test_upload_again"]
    assert found(index, "tests of uploading again")[0] == "test_upload_again"


@pytest.mark.parametrize(
    ("path", "is_test"),
    [
        ("tests/uploads.py", True),
        ("src/test/java/app/Uploads.java", True),
        ("web/__tests__/upload.js", True),
        ("app/test_uploads.py", True),
        ("app/uploads_test.go", True),
        ("web/upload.spec.ts", True),
        ("src/upload_unittest.cc", True),
        ("app/UploadTest.kt", True),
        ("app/latest.py", False),
        ("app/contest.py", False),
        ("app/testing/client.py", False),
        ("app/attestation/upload.go", False),
    ],
)
def test_which_files_are_tests(path: str, is_test: bool) -> None:
    unit = Unit("function", "upload", "upload", 1, 1, "", "", "def upload(): ...")
    [item] = items_of([unit], SourceFile(path, path, "", "python"))
    assert item.prior == (-0.2 if is_test else 0.0)


@pytest.mark.slow
def test_a_touched_file_is_unchanged_and_one_no_longer_taken_is_gone(tree: Path, index: Index) -> None:
    ingest_code(index, tree)
    os.utime(tree / "dates.py", (1, 1))
    (tree / "mail.js").write_text("// Code generated by x. DO NOT EDIT.\nfunction sendMail() {}\n")
    summary = ingest_code(index, tree)
    assert results(summary) == {"dates.py": "unchanged"}
    assert summary.passed_over == {"generated": 1}
    assert set(held(index)) == {"parse_http_date", "Calendar", "Calendar.next_holiday"}
    assert ingest_code(index, tree).passed_over == {"generated": 1}, "known without being read again"
    (tree / ".gitignore").write_text("dates.py\n")
    (tree / "post.py").write_text(MAIL)
    ingest_code(index, tree)
    assert set(held(index)) == {"send_mail"}


def test_bad_files_cost_themselves(tree: Path, index: Index) -> None:
    (tree / "latin.py").write_bytes("def café():\n    return 'é'\n".encode("latin-1"))
    (tree / "nul.py").write_bytes(b"def nul():\n    return '\0'\n")
    (tree / "noise.py").write_bytes(bytes(range(256)) * 20)
    (tree / "broken.py").write_text(
        "def ok(): pass\ndef broken(:\n  x = (\nclass After:\n    def fine(self): return 1\n"
    )
    (tree / "open.py").write_text("x = (\n")
    (tree / "empty.py").write_text("")
    (tree / "keys.py").write_text(f'def connect():\n    return login(token="{"ghp_" + "a1B2" * 9}")\n')
    (tree / "hidden.py").write_text(MAIL)
    (tree / "run.sh").write_text("echo hello\n")
    (tree / "hidden.py").chmod(0)
    summary = ingest_code(index, tree)
    assert summary.passed_over == {"binary": 1}
    assert summary.code is not None
    assert (summary.code.syntax_errors, summary.code.secrets) == (2, 1)
    pieces = held(index)
    assert {"café", "nul", "ok", "After.fine", "connect", "run.sh:1-1"} <= set(pieces)
    assert "ghp_" not in pieces["connect"].text
    unreadable = [("unreadable", "hidden.py")] if os.geteuid() else []
    assert [(file.code, Path(file.path).name) for file in summary.failed] == unreadable


@pytest.mark.slow
def test_a_file_that_hangs_the_parser_is_given_up_once(tree: Path, index: Index) -> None:
    ingest_code(index, tree)
    (tree / "hang.py").write_text("(\n" * 200_000)
    limits = {**LIMITS, "code": Limits(60.0, 60.0, 0.5)}
    summary = ingest_code(index, tree, limits=limits)
    assert results(summary) == {"dates.py": "unchanged", "mail.js": "unchanged", "hang.py": "failed"}
    assert summary.failed[0].code == "timeout"
    again = ingest_code(index, tree, limits=limits)
    assert "not tried again" in again.failed[0].reason


@pytest.mark.parametrize("documents", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_a_stopped_run_left_is_embedded_by_the_next(
    tree: Path, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, documents: bool
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(code_run, "embed_items", interrupted)
        summary = ingest_code(index, tree)
    assert summary.interrupted
    assert summary.code is not None
    assert summary.code.pending == 4
    assert "parse_http_date" in found(index, "parse http date"), "by its words, until then"
    if documents:
        write_pdf(tmp_path / "papers" / "a.pdf", ["Of walruses"])
        ingest(index, tmp_path / "papers")
    else:
        again = ingest_code(index, tree)
        assert again.code is not None
        assert again.code.embedded == 4
    with index.catalog.snapshot() as reader:
        owners, _ = reader.items.vectors("code", "all-MiniLM-L6-v2/onnx-int8-1")
    assert len(set(owners)) == 4


@pytest.mark.slow
def test_two_definitions_of_one_name_are_two_pieces(tree: Path, index: Index) -> None:
    (tree / "dates.py").write_text("if a:\n    def f(): return 1\nelse:\n    def f(): return 2\n")
    ingest_code(index, tree / "dates.py")
    source = index.item_source(CodeSource)
    with index.catalog.snapshot() as reader:
        keys = [item.key.rpartition("#")[2] for item in reader.items.all("code") if item.metadata["name"] == "f"]
        assert keys == ["f", "f@2"]
        assert source.get(reader, f"code:{tree}/dates.py#f@2") is not None
        assert source.get(reader, "code:src/dates.py#f") is not None, "the end of a ref will do"
        assert source.get(reader, "code:nowhere.py#f") is None


@pytest.mark.slow
def test_removing_a_folder(tree: Path, index: Index) -> None:
    ingest_code(index, tree)
    assert remove_paths(index, [tree / "dates.py", tree / "nowhere"]) == [
        (str(tree / "dates.py"), 1, 3),
        (str(tree / "nowhere"), 0, 0),
    ]
    assert set(held(index)) == {"sendMail"}


def test_nothing_there_makes_no_index(tmp_path: Path, index: Index) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingFoundError):
        ingest_code(index, tmp_path / "empty")
    with pytest.raises(NothingFoundError):
        remove_paths(index, [tmp_path])
    assert not index.exists
