"""Question files: what is read, and what is said about a line that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.errors import UsageError
from research.evaluation.questions import check_field, document_key, field_values, read_questions

GOOD = '{"query": "Why?", "gold": [["a.pdf", 1]]}'


def written(folder: Path, *lines: str) -> Path:
    path = folder / "questions.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_line_needs_only_a_question_and_its_pages(tmp_path: Path) -> None:
    first, second = read_questions(written(tmp_path, GOOD, "", '{"query": " Who? ", "gold": [["B", 2], ["c", 3]]}'))
    assert (first.qid, first.query, first.gold) == (1, "Why?", (("a.pdf", 1),))
    assert (second.qid, second.query, second.gold) == (3, "Who?", (("B", 2), ("c", 3)))


def test_ids_keep_their_type_and_other_fields_are_kept(tmp_path: Path) -> None:
    lines = [
        '{"qid": "x", "query": "a", "gold": [["a", 1]], "kind": "table"}',
        '{"qid": 7, "query": "b", "gold": [["a", 1]]}',
    ]
    first, second = read_questions(written(tmp_path, *lines))
    assert (first.qid, first.fields) == ("x", {"kind": "table"})
    assert second.qid == 7


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode() + b"\r\n" + GOOD.encode() + b"\r\n")
    assert [question.qid for question in read_questions(path)] == [1, 2]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Invalid JSON"),
        ('{"query": NaN}', "`query`"),
        ("[" * 100_000, "Invalid JSON"),
        ("[1]", "object"),
        ('{"gold": [["a", 1]]}', "`query`"),
        ('{"query": "  ", "gold": [["a", 1]]}', "`query`"),
        ('{"query": 3, "gold": [["a", 1]]}', "`query`"),
        ('{"query": "x"}', "`gold`"),
        ('{"query": "x", "gold": []}', "`gold`"),
        ('{"query": "x", "gold": {"a": 1}}', "`gold`"),
        ('{"query": "x", "gold": ["a", 1]}', "`gold.0`"),
        ('{"query": "x", "gold": [["", 1]]}', "`gold.0.0`: Value error, this is no file's name"),
        ('{"query": "x", "gold": [["a", "1"]]}', "`gold.0.1`: Input should be a valid integer"),
        ('{"query": "x", "gold": [["a", true]]}', "`gold.0.1`: Input should be a valid integer"),
        ('{"query": "x", "gold": [["a", 0]]}', "`gold.0.1`: Input should be greater than or equal to 1"),
        ('{"query": "x", "gold": [["a", 1]], "qid": [1]}', "`qid.int`"),
        ('{"query": "x", "gold": [["a", 1]], "qid": 1}', "stands on line 1 already"),
    ],
)
def test_a_wrong_line_is_named_with_its_number_and_reason(tmp_path: Path, line: str, reason: str) -> None:
    path = written(tmp_path, GOOD, "", line, GOOD)
    with pytest.raises(UsageError) as caught:
        read_questions(path)
    assert caught.value.message.startswith(f"{path}:3: ")
    assert reason in caught.value.message
    assert caught.value.hint


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(GOOD.encode() + b'\n{"query": "\xff"}\n')
    with pytest.raises(UsageError, match=r":2: Invalid JSON"):
        read_questions(path)


def test_files_without_questions(tmp_path: Path) -> None:
    for path, reason in [
        (written(tmp_path, ""), "holds no questions"),
        (tmp_path / "absent", "cannot read"),
        (tmp_path, "cannot read"),
    ]:
        with pytest.raises(UsageError, match=reason):
            read_questions(path)


def test_names_are_compared_without_folder_ending_and_case() -> None:
    assert {document_key(name) for name in ("Report.PDF", "a/b/report.pdf", "C:\\x\\REPORT", "report")} == {"report"}


def test_slices_by_dotted_names(tmp_path: Path) -> None:
    line = '{"query": "x", "gold": [["a", 1]], "meta": {"scan": true, "of": ["a", "b"]}, "kind": null}'
    questions = read_questions(written(tmp_path, line))
    values = [field_values(questions[0], name) for name in ("meta.scan", "meta.of", "kind", "meta.no", "kind.no")]
    assert values == [["True"], ["a", "b"], ["None"], [], []]
    check_field(questions, "meta.scan")
    with pytest.raises(UsageError) as caught:
        check_field(questions, "meta.no")
    assert caught.value.hint == "fields there are: meta.scan, meta.of, kind"
