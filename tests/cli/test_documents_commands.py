"""ctx show, list and remove."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_show_json_has_the_metadata_and_the_text_as_it_is(call, filled: Path) -> None:
    document = call("show", "cccc000000000003", "1", "--json", "--index", str(filled)).document
    assert document["schema"] == "ctx.show/2"
    assert "\x1b]0;owned\x07" in document["markdown_content"]
    assert document["filename"].startswith("evil\n")
    fields = {"doc_id", "page", "page_label", "section_path", "parent_heading", "num_tables", "title", "num_pages"}
    assert fields <= set(document)


def test_show_of_an_empty_page_prints_nothing(call, filled: Path) -> None:
    ran = call("show", "crisis-annex.pdf", "1", "--index", str(filled))
    assert (ran.code, ran.out) == (0, "")


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["crisis.pdf", "4"], 3, "crisis.pdf has no page 4\nhint: its pages are 1 to 3"),
        (["crisis.pdf", "0"], 3, "its pages are 1 to 3"),
        (["crisis.pdf", "9" * 30], 3, "its pages are 1 to 3"),
        (["nowhere.pdf", "1"], 3, "no document matches 'nowhere.pdf'"),
        (["crisis*", "1"], 2, "matches 2 documents: crisis-annex.pdf (dddd000000000004), crisis.pdf"),
    ],
)
def test_show_says_what_there_is(call, filled: Path, args: list[str], code: int, words: str) -> None:
    ran = call("show", *args, "--index", str(filled))
    assert ran.code == code
    assert words in ran.err


def test_list_is_a_line_a_document(call, filled: Path) -> None:
    ran = call("list", "--index", str(filled))
    assert ran.code == 0
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert [line[0][:4] for line in lines] == ["dddd", "aaaa", "cccc", "bbbb"]
    assert all(len(line) == 5 for line in lines)
    assert lines[1][1:3] == ["crisis.pdf", "3"]


def test_list_of_nothing_is_a_list(call, tmp_path: Path) -> None:
    """`set -e` in a script: an index without documents is no failure."""
    made, none = str(tmp_path / "made/.ctx"), str(tmp_path / "none")
    assert call("init", str(tmp_path / "made")).code == 0
    for index, words in ((made, f"the index {made} is empty"), (none, f"there is no index at {none}")):
        ran = call("list", "--json", "--index", index)
        assert (ran.code, ran.document) == (0, {"schema": "ctx.list/1", "documents": []})
        assert ran.err == f"ctx: note: {words}; add documents first: ctx ingest PATH\n"
        plain = call("list", "--index", index)
        assert (plain.code, plain.out, plain.err) == (0, "", ran.err)
        assert call("list", "--quiet", "--index", index).err == ""


def test_remove_takes_it_out_everywhere(call, copied: Path) -> None:
    ran = call("remove", "crisis.pdf", "bbbb0000", "--json", "--index", str(copied))
    assert ran.code == 0, ran.err
    assert [entry["filename"] for entry in ran.document["removed"]] == ["crisis.pdf", "gardening.pdf"]
    assert len(call("list", "--json", "--index", str(copied)).document["documents"]) == 2
    assert call("search", "housing bubble", "--mode", "lexical", "--index", str(copied)).code == 3
    status = call("status", "--json", "--index", str(copied)).document
    assert not status["collections_behind"]


def test_only_a_pattern_removes_several(call, copied: Path) -> None:
    ran = call("remove", "cris", "--index", str(copied))
    assert ran.code == 2
    assert "matches 2 documents" in ran.err
    assert call("remove", "nope", "--index", str(copied)).code == 3
    assert call("remove", " ", "--index", str(copied)).code == 2
    assert len(call("list", "--json", "--index", str(copied)).document["documents"]) == 4


def test_remove_without_collections(call, words_only: Path, tmp_path: Path) -> None:
    import shutil

    copy = Path(shutil.copytree(words_only, tmp_path / "words"))
    ran = call("remove", "crisis*", "--yes", "--index", str(copy))
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "removed\tcrisis-annex.pdf\tdddd000000000004",
        "removed\tcrisis.pdf\taaaa000000000001",
    ]
    assert not (copy / "chroma").exists()


def _names(call, index: Path) -> set[str]:
    return {d["doc_id"][:4] for d in call("list", "--json", "--index", str(index)).document["documents"]}


@pytest.mark.slow
def test_a_pattern_that_means_several_wants_a_yes(call, copied: Path) -> None:
    for pattern in ("*", "crisis*", "[c]risis*.pdf"):
        ran = call("remove", pattern, "--json", "--index", str(copied))
        assert ran.code == 2
        assert f"{pattern!r} means several documents" in ran.document["error"]
        assert "--dry-run" in ran.document["hint"]
        assert "--yes" in ran.document["hint"]
    assert len(_names(call, copied)) == 4
    assert call("remove", "garden*", "--index", str(copied)).code == 0, "one document is one, however it is named"
    assert call("remove", "crisis.pdf", "dddd000000000004", "--index", str(copied)).code == 0, "two that are named"
    assert _names(call, copied) == {"cccc"}


def test_a_dry_run_lists_what_would_go(call, copied: Path) -> None:
    ran = call("remove", "crisis*", "gardening.pdf", "--dry-run", "--index", str(copied))
    assert ran.code == 0
    assert [line.split("\t")[:2] for line in ran.out.splitlines()] == [
        ["would remove", "crisis-annex.pdf"],
        ["would remove", "crisis.pdf"],
        ["would remove", "gardening.pdf"],
    ]
    document = call("remove", "*", "--dry-run", "--json", "--index", str(copied)).document
    assert document["removed"] == []
    assert [entry["doc_id"][:4] for entry in document["would_remove"]] == ["dddd", "aaaa", "cccc", "bbbb"]
    assert call("remove", "nope", "--dry-run", "--index", str(copied)).code == 3
    assert len(_names(call, copied)) == 4


def test_everything_at_once_is_asked_for_on_a_terminal(call, on_terminal, copied: Path) -> None:
    ran = on_terminal(["remove", "*", "--index", str(copied)], typed=b"\n")
    assert "Remove 4 documents from the index? [y/N]" in ran.out
    assert ran.code == 1
    assert len(_names(call, copied)) == 4


def test_remove_asks_on_a_terminal(call, on_terminal, spawn_on_terminal, copied: Path) -> None:
    # Ctrl-D in a process of its own, for here Python may have loaded its line editor.
    for run, typed, left, code in (
        (spawn_on_terminal, b"\x04", 4, 130),
        (on_terminal, b"n\n", 4, 1),
        (on_terminal, b"y\n", 3, 0),
    ):
        ran = run(["remove", "gardening.pdf", "--index", str(copied)], typed=typed)
        assert "gardening.pdf  (1 page, bbbb000000000002)" in ran.out
        assert "Remove 1 document from the index? [y/N]" in ran.out
        assert ran.code == code
        assert len(_names(call, copied)) == left
