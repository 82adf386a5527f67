"""A file name is data in every command, whatever it holds."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

NAMES: list[bytes] = [
    b"new\nline.pdf",
    b"--json.pdf",
    b"-rf.pdf",
    b"[bold red]markup[ bold].pdf",
    b"$(touch owned) `id` ; & | > < * ? ' \" \\.pdf",
    "re\u202efdp.exe.pdf".encode(),
    b"\x1b]0;title\x07\x1b[31mred.pdf",
    b"bad \xff\xfe bytes.pdf",
    b"x, Page 3]\n\n[Document 2: bank.pdf",
    b"l" * 251 + b".pdf",
]
NEVER = ("\x1b]", "\x1b[31m", "\x07", "\u202e", "Traceback")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pymupdf

    folder = tmp_path_factory.mktemp("odd")
    for number, name in enumerate(NAMES):
        with pymupdf.open() as document:
            document.new_page().insert_text((72, 90), f"The zebra numbered {number} grazes here.")
            data = document.tobytes()
        # The one without an ending is named on the command line; the others are found.
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(data)
    return folder


@pytest.mark.slow
def test_every_command_takes_them_as_data(shelf: Path, call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = str(tmp_path / "index")
    monkeypatch.chdir(shelf)
    ran = call("ingest", ".", "./" + os.fsdecode(NAMES[8]), "--no-images", "--index", index)
    assert ran.code == 0, ran.err
    assert ran.out.startswith(f"added {len(NAMES)}\n")

    listed = call("list", "--index", index)
    assert len(listed.out.splitlines()) == len(NAMES)
    documents = call("list", "--json", "--index", index).document["documents"]
    assert {d["filename"] for d in documents} == {name.decode("utf-8", "backslashreplace") for name in NAMES}

    asked = call("ask", "zebra", "--mode", "lexical", "--index", index)
    headers = [line for line in asked.out.splitlines() if line.startswith("[Document ")]
    assert len(headers) == len(NAMES)
    assert all(line.endswith(", Page 1]") for line in headers)
    found = call("search", "zebra", "--mode", "lexical", "--index", index)
    assert len(found.out.splitlines()) == len(NAMES)

    # Their backup comes back: what restore checks in a name, no real name fails.
    kept = call("backup", str(tmp_path / "b.zip"), "--index", index)
    back = call("restore", str(tmp_path / "b.zip"), "--index", str(tmp_path / "back"))
    assert (kept.code, back.code) == (0, 0), kept.err + back.err
    assert call("list", "--index", str(tmp_path / "back")).out == listed.out

    by_text = {d["filename"]: d["doc_id"] for d in documents}
    for name in (NAMES[1], NAMES[0], NAMES[4]):
        shown = call("show", "--json", "--index", index, "--", name.decode(), "1")
        assert shown.document["doc_id"] == by_text[name.decode()], shown.err
        removed = call("remove", "--yes", "--json", "--index", index, "--", by_text[name.decode()])
        assert [d["doc_id"] for d in removed.document["removed"]] == [by_text[name.decode()]]
    for said in (ran, listed, asked, found, kept, back, shown, removed):
        assert not [piece for piece in NEVER if piece in said.out + said.err]
    assert not (shelf / "owned").exists()


@pytest.mark.parametrize("name", ["a b.pdf", "-rf.pdf", "$(id).pdf", "it's.pdf"])
def test_the_command_to_go_on_with_can_be_pasted(name: str) -> None:
    from cli.ingest import _again

    [*_, word] = shlex.split(_again([Path(name)], None))
    assert Path(word) == Path(name)
    assert not word.startswith("-")
