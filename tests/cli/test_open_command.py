"""ctx open: the right file at the right page in a real program, whatever the file is called."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.open import Place, find_viewer, from_template, start
from research.errors import CtxError, UsageError
from research.models import page_link
from tests.conftest import write_pdf
from tests.in_process import Ran, run_in_process

HOSTILE = ["-rf.pdf", "new\nline.pdf", 'it\'s "x" $(touch owned) `id`;&.pdf', "{page}{link}.pdf", "100 % #page=9.pdf"]

# Tells what it was called with, with a null after each word.
RECORD = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" > "$RECORD"
"""

# Stays until the first pipe is opened, and tells it by the second.
STAYS = """#!/bin/sh
read word < {close}
echo closed > {closed}
"""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder of documents with names that would do harm, and its index."""
    root = tmp_path_factory.mktemp("shelf")
    for name in ["walrus.pdf", *HOSTILE]:
        write_pdf(root / "docs" / name, [f"Page {n} of {name!a}" for n in (1, 2, 3)])
    ran = run_in_process("ingest", str(root / "docs"), "--no-images", "--index", str(root / "index"))
    assert ran.code == 0, ran.err
    return root / "docs", root / "index"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Programs on PATH that record how they are called; nothing else is there. They may take their time to end."""
    monkeypatch.setattr("cli.open._AT_ONCE", 60.0)
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.setenv("RECORD", str(tmp_path / "record"))
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)

    def make(*names: str, script: str = RECORD) -> Path:
        for name in names:
            (folder / name).write_text(script)
            (folder / name).chmod(stat.S_IRWXU)
        return folder

    return make


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[], list[str]]:
    def read() -> list[str]:
        return (tmp_path / "record").read_text().split("\0")[:-1]

    return read


@pytest.fixture
def open_it(call: Callable[..., Ran], shelf: tuple[Path, Path]) -> Callable[..., Ran]:
    def run(*args: str) -> Ran:
        return call("open", "--index", str(shelf[1]), *args)

    return run


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("evince", ["--page-index=2", "{path}"]),
        ("papers", ["--page-index=2", "{path}"]),
        ("okular", ["--page", "2", "{path}"]),
        ("zathura", ["--page=2", "{path}"]),
        ("qpdfview", ["{path}#2"]),
        ("mupdf", ["{path}", "2"]),
        ("firefox", ["{link}"]),
    ],
)
def test_a_viewer_is_told_the_page(open_it, programs, recorded, *, shelf, program: str, arguments: list[str]) -> None:
    programs(program)
    ran = open_it("walrus.pdf", "2")
    path = str(shelf[0] / "walrus.pdf")
    assert (ran.code, ran.out, ran.err) == (0, "", f"ctx: opened {path} at page 2\n")
    assert recorded() == [program, *(part.format(path=path, link=page_link(path, 2)) for part in arguments)]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("program", ["evince", "firefox", "xdg-open"])
def test_a_name_is_one_argument_and_never_an_option_or_a_command(
    open_it, programs, recorded, *, shelf, name: str, program: str
) -> None:
    programs(program)
    ran = open_it("--", name, "2")
    path = str(shelf[0] / name)
    assert ran.code == 0, ran.err
    called = recorded()
    assert called[0] == program
    assert called[-1] == (page_link(path, 2) if program == "firefox" else path)
    assert not any(part.startswith("-") for part in called[1:] if part != "--page-index=2")
    assert not Path("owned").exists()
    assert ran.err.count("\n") == 1


def test_the_viewer_that_was_chosen_comes_first(open_it, programs, recorded, shelf, monkeypatch) -> None:
    programs("evince", "my viewer")
    path = str(shelf[0] / HOSTILE[3])
    monkeypatch.setenv("CTX_VIEWER", "'my viewer' -p {page} --file={path}")
    assert open_it("--", HOSTILE[3], "3").code == 0
    assert recorded() == ["my viewer", "-p", "3", f"--file={path}"], "a file called {page} stays one"
    monkeypatch.setenv("CTX_VIEWER", "evince")
    ran = open_it("walrus.pdf", "3")
    assert recorded() == ["evince", str(shelf[0] / "walrus.pdf")]
    assert "the program cannot be told the page: go to page 3" in ran.err


@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ("nowhere --page {page}", 1, "the viewer nowhere cannot run: No such file or directory"),
        ("'open", 2, "viewer cannot be read: No closing quotation"),
        ("''", 1, "cannot run"),
    ],
)
def test_a_viewer_that_cannot_run_is_told(
    open_it, programs, monkeypatch, *, setting: str, code: int, words: str
) -> None:
    programs()
    monkeypatch.setenv("CTX_VIEWER", setting)
    ran = open_it("walrus.pdf", "2")
    assert ran.code == code
    assert words in ran.err
    assert "hint: " in ran.err
    path, page, link = ran.out.rstrip("\n").split("\t")
    assert (page, link) == ("2", page_link(path, 2)), "so that it can be opened by hand"


def test_a_viewer_that_fails_at_once_is_told(open_it, programs, shelf) -> None:
    programs("okular", script="#!/bin/sh\nexit 4\n")
    ran = open_it("walrus.pdf", "2", "--json")
    assert ran.code == 1
    assert ran.document["error"].endswith("okular ended with exit code 4")


def test_a_viewer_that_stays_is_left_alone(open_it, programs, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("cli.open._AT_ONCE", 0.1)
    close, closed = tmp_path / "close", tmp_path / "closed"
    os.mkfifo(close)
    os.mkfifo(closed)
    programs("okular", script=STAYS.format(close=close, closed=closed))
    ran = open_it("walrus.pdf", "--json")
    assert ran.code == 0
    assert ran.document["opened"] is True
    assert ran.document["page"] == 1
    close.write_text("now\n")
    assert closed.read_text() == "closed\n", "ctx did not wait for it to end, nor end it"


def test_the_desktops_own_program_is_preferred_if_it_takes_a_page(programs) -> None:
    folder = programs("evince", "okular", "firefox", "xdg-open")
    environment = {"PATH": str(folder), "DISPLAY": ":7"}
    place = Place("/docs/a.pdf", 2, page_link("/docs/a.pdf", 2))

    def chosen(default: str) -> str:
        programs("xdg-mime", script=f"#!/bin/sh\necho {default}\n")
        return Path(find_viewer(place, "", environment).command[0]).name

    assert chosen("org.kde.okular.desktop") == "okular"
    assert chosen("firefox.desktop") == "firefox"
    assert chosen("org.unknown.Reader.desktop") == "evince"
    programs("xdg-mime", script="#!/nowhere/at-all\n")
    assert Path(find_viewer(place, "", environment).command[0]).name == "evince"


def test_where_there_is_nothing_to_open_it_with(programs) -> None:
    place = Place("/docs/a.pdf", 2, "file:///docs/a.pdf#page=2")
    folder = str(programs())
    with pytest.raises(CtxError, match="no screen") as told:
        find_viewer(place, "", {"PATH": folder})
    assert "CTX_VIEWER" in told.value.hint
    with pytest.raises(CtxError, match="no program was found"):
        find_viewer(place, "", {"PATH": folder, "WAYLAND_DISPLAY": "wayland-0"})
    programs("wslview")
    found = find_viewer(place, "", {"PATH": folder, "WSL_DISTRO_NAME": "Debian"})
    assert ([Path(found.command[0]).name, *found.command[1:]], found.takes_page) == (["wslview", place.path], False)
    mac = find_viewer(place, "", {}, "darwin")
    assert (mac.command, mac.takes_page) == (["open", place.path], False)


def test_a_template_needs_a_program() -> None:
    place = Place("/a.pdf", 2, "file:///a.pdf#page=2")
    with pytest.raises(UsageError, match="names no program"):
        from_template("  ", place)
    assert from_template("v", place).command == ["v", "/a.pdf"]
    assert from_template("v {link}", place).command == ["v", "file:///a.pdf#page=2"]
    with pytest.raises(CtxError, match="cannot run"):
        start(from_template("v\0w", place))


def test_print_opens_nothing(open_it, programs, shelf) -> None:
    programs()
    link = page_link(str(shelf[0] / "walrus.pdf"), 2)
    assert open_it("walrus", "2", "--print").out == f"{link}\n"
    document = open_it("walrus", "2", "--print", "--json").document
    assert (document["schema"], document["link"], document["opened"]) == ("ctx.open/1", link, False)


def test_a_file_that_is_gone_is_told_with_what_can_still_be_seen(call, programs, filled: Path) -> None:
    programs("evince")
    ran = call("open", "crisis.pdf", "2", "--index", str(filled))
    assert (ran.code, ran.out) == (1, "")
    assert "ctx: error: the file is gone: /gone/crisis.pdf\n" in ran.err
    assert "moved? ctx ingest NEWPLACE" in ran.err
    assert "ctx show aaaa000000000001 2\n" in ran.err
    assert call("show", "aaaa000000000001", "2", "--index", str(filled)).code == 0


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["walrus.pdf", "4"], 3, "walrus.pdf has no page 4"),
        (["walrus.pdf", "0"], 3, "has no page 0"),
        (["penguin.pdf"], 3, "penguin.pdf"),
        (["walrus.pdf", "two"], 2, "'two' is not a whole number"),
        ([""], 2, "name is empty"),
        (["1"], 3, "there is no answer yet that a number could belong to"),
    ],
)
def test_what_is_not_there_is_a_clear_line(open_it, programs, args: list[str], code: int, words: str) -> None:
    programs()
    ran = open_it(*args)
    assert ran.code == code
    assert words in ran.err
    assert "hint: " in ran.err


def test_a_number_means_a_source_of_the_last_answer(
    on_terminal, call, programs, recorded, *, shelf: tuple[Path, Path], tmp_path: Path
) -> None:
    docs, index = shelf[0], tmp_path / "own"
    shutil.copytree(shelf[1], index)
    at = ("--index", str(index))
    path = os.environ["PATH"]
    shown = on_terminal(["search", "walrus page 2", "--json", "--mode", "lexical", *at], env={"PATH": path})
    results = json.loads(shown.out)["results"]
    programs("mupdf")
    first = results[0]
    assert call("open", "1", *at).code == 0
    assert recorded() == ["mupdf", str(docs / first["filename"]), str(first["page"])]

    for number in ("0", str(len(results) + 1), "9" * 5000):
        beyond = call("open", number, *at)
        assert beyond.code == 2
        assert f"its sources are 1 to {len(results)}" in beyond.err
    assert call("open", "1", "--index", str(shelf[1])).code == 3, "another index knows nothing of it"

    kept = next((tmp_path / "home").rglob("answers/*.json"))
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert [p.name for p in kept.parent.iterdir()] == [kept.name], "nothing else is left behind"
    assert "walrus" not in kept.read_text(), "neither question nor text"

    assert call("remove", first["doc_id"], "--yes", *at).code == 0
    gone = call("open", "1", *at)
    assert gone.code == 3
    assert "source 1 of the last answer is no longer in the index" in gone.err

    for broken in ("", "no json", "[[1]]", '[["", 7]]', '[["x", ["page:a"]]]', '[["x", ["nonsense"]]]', "[" * 100_000):
        kept.write_text(broken)
        assert call("open", "1", *at).code == 3
