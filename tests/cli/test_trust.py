"""What a folder, an index or a backup from elsewhere can make the real command do: nothing that loads a model, runs
code or opens a connection, until the user says so."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from research.encoders import DEFAULT
from tests.conftest import write_pdf
from tests.in_process import Ran, run_in_process
from tests.research.encoders.test_unsafe_models import evil_code, foreign_module

HOME = str(Path(__file__).parents[2])
# Stands in for what strace would show: any look-up or connection leaves a mark.
WATCH = """
import os, socket
def seen(*_): open(os.environ["TRIED"], "w").close(); raise OSError("no network here")
socket.socket.connect = seen
socket.getaddrinfo = seen
"""

Command = Callable[..., Ran]


def _checked(ran: Ran, tried: Path, *, connects: bool) -> Ran:
    assert tried.exists() == connects, "whether it tried to reach the network"
    assert "Traceback" not in ran.err
    return ran


@pytest.fixture
def process(tmp_path: Path) -> Command:
    """The command as a user runs it: the folder it runs in is not on the module path, and connections are watched."""
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    path = os.pathsep.join((str(tmp_path / "watch"), HOME))

    def run(*args: str, cwd: Path = tmp_path, connects: bool = False, **variables: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "cli.main", *args],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": path, "TRIED": str(tmp_path / "TRIED"), **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return _checked(Ran(done.returncode, done.stdout, done.stderr), tmp_path / "TRIED", connects=connects)

    return run


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same in this process, where torch is loaded once for all."""

    def seen(*_: object) -> None:
        (tmp_path / "TRIED").touch()
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", seen)
    monkeypatch.setattr(socket, "getaddrinfo", seen)

    def run(*args: str, cwd: Path = tmp_path, connects: bool = False, **variables: str) -> Ran:
        return _checked(run_in_process(*args, cwd=cwd, env=variables), tmp_path / "TRIED", connects=connects)

    return run


@pytest.fixture(params=["bare", pytest.param("whole", marks=pytest.mark.slow)])
def evil(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A model in a cloned folder, with code of its own that leaves the file PWNED; whole, or what is looked at first
    (to make a whole one takes torch, and looks for a network: it comes before `command`)."""
    folder = tmp_path / "repo" / "model"
    if request.param == "whole":
        shutil.copytree(request.getfixturevalue("tiny_text"), folder)
    else:
        folder.mkdir(parents=True)
        module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
        (folder / "modules.json").write_text(json.dumps([module]))
        (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    foreign_module(folder)
    evil_code(folder, "sentence_transformers.py")
    write_pdf(folder.parent / "docs" / "a.pdf", ["Herring prices rose."])
    return folder


def name_in(index: Path, text: str, visual: str = "") -> None:
    """Make an index name these encoders."""
    with sqlite3.connect(index / "catalog.sqlite3") as catalog:
        catalog.execute("UPDATE meta SET value = ? WHERE key = 'text_encoder'", (text,))
        catalog.execute("UPDATE meta SET value = ? WHERE key = 'visual_encoder'", (visual or f"regions:{text}",))
    catalog.close()


def legs_of(ran: Ran) -> dict[str, str]:
    return {leg["name"]: leg["status"] for leg in ran.document["coverage"]["legs"]}


def test_a_found_ctx_toml_loads_nothing(evil: Path, command: Command, process: Command) -> None:
    repo = evil.parent
    for line in ('text_encoder = "./model"', 'visual = "./model"', 'device = "cuda"', 'index = "../../outside"'):
        (repo / "ctx.toml").write_text(line)
        for args in (["ingest", "docs"], ["ask", "herring"], ["doctor"], ["status"]):
            ran = (process if args[0] == "ingest" and line.startswith("text") else command)(*args, cwd=repo)
            assert ran.code == 2
            assert line.partition(" ")[0] in ran.err
            assert str(repo / "ctx.toml") in ran.err
            assert "hint: take it out; say it yourself with" in ran.err
    assert not (repo.parent / "PWNED").exists()
    assert not (repo / ".ctx").exists()


@pytest.mark.parametrize(
    ("written", "way"),
    [
        ("model", "command"),
        pytest.param("./model", "process", marks=pytest.mark.slow),
        ("{}", "command"),
        ("sentence-transformers:{}", "command"),
        ("evil\x1b[31m/\nmodel", "command"),
    ],
)
def test_an_index_that_names_a_model_loads_nothing(
    request: pytest.FixtureRequest, evil: Path, copied: Path, written: str, way: str
) -> None:
    command: Command = request.getfixturevalue(way)
    index = Path(shutil.move(copied, evil.parent / ".ctx"))
    name_in(index, written.format(evil))
    ran = command("ask", "housing bubble", "--json", cwd=evil.parent)
    assert ran.code == 0
    assert legs_of(ran) == {"lexical": "ok", "dense": "failed", "visual": "failed"}
    assert ran.document["sources"][0]["filename"] == "crisis.pdf"
    assert "\x1b" not in ran.err
    said = "which you have not allowed" if written.startswith("sentence") else "which is no full name of one"
    assert said in ran.err
    for args in (["ask", "x", "--mode", "dense"], ["ingest", "docs"]):
        refused = command(*args, cwd=evil.parent)
        assert (refused.code, said in refused.err) == (1, True)
    assert said in command("doctor", cwd=evil.parent).out
    assert "not allowed" in command("status", cwd=evil.parent).out
    # Not even one that is named or allowed runs what lies in its folder.
    for variable in ("CTX_ALLOWED_ENCODERS", "CTX_TEXT_ENCODER"):
        assert command("ask", "housing", cwd=evil.parent, **{variable: str(evil)}).code == 0
        assert command("ingest", "docs", cwd=evil.parent, **{variable: str(evil)}).code == 1
    assert not (evil.parent / "PWNED").exists()


def test_a_backup_that_names_a_model_loads_nothing(evil: Path, command: Command, copied: Path) -> None:
    name_in(copied, f"sentence-transformers:{evil}", f"colpali:{evil}")
    assert command("backup", "b.zip", "--index", str(copied), cwd=evil.parent).code == 0
    restored = str(evil.parent / "restored")
    command("restore", "b.zip", "--index", restored, cwd=evil.parent)
    if Path(restored).exists():  # a restore that refuses such a name is as good
        ran = command("ask", "housing bubble", "--json", "--index", restored, cwd=evil.parent)
        assert legs_of(ran) == {"lexical": "ok", "dense": "failed", "visual": "failed"}
        assert ran.err.count("which you have not allowed") == 2
    assert not (evil.parent / "PWNED").exists()


def test_a_hub_name_in_an_index_contacts_nobody(command: Command, copied: Path) -> None:
    name_in(copied, "sentence-transformers:evil/model@0123456789ab", "colpali:evil/other")
    ran = command("ask", "housing bubble", "--json", "--index", str(copied))
    assert legs_of(ran) == {"lexical": "ok", "dense": "failed", "visual": "failed"}


@pytest.mark.slow
def test_a_hub_name_that_is_allowed_contacts_nobody_either(command: Command, copied: Path) -> None:
    name_in(copied, "sentence-transformers:evil/model@0123456789ab", "colpali:evil/other")
    asked = ("ask", "housing bubble", "--json", "--index", str(copied))
    allowed = command(*asked, CTX_ALLOWED_ENCODERS="evil/model,colpali:evil/other")
    assert legs_of(allowed) == {"lexical": "ok", "dense": "failed", "visual": "failed"}
    assert allowed.err.count("are not on this machine") == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CTX_TEXT_ENCODER", "CTX_VISUAL"])
def test_only_an_ingest_asks_the_hub_and_only_for_what_it_was_told(process: Command, tmp_path: Path, name: str) -> None:
    write_pdf(tmp_path / "docs" / "a.pdf", ["Herring prices rose."])
    ingest = ("ingest", "docs", "--index", "index")
    offline = process(*ingest, HF_HUB_OFFLINE="1", **{name: "some/model"})
    assert (offline.code, "HF_HUB_OFFLINE forbids fetching them" in offline.err) == (1, True)
    ran = process(*ingest, connects=True, **{name: "some/model"})
    assert (ran.code, "asking the model hub for them" in ran.err) == (1, True)


def test_the_embedded_encoder_needs_no_permission(command: Command, filled: Path, tmp_path: Path) -> None:
    ran = command("ask", "housing bubble", "--json", "--index", str(filled))
    assert legs_of(ran) == {"lexical": "ok", "dense": "ok", "visual": "ok"}
    assert f"encoder      {DEFAULT}" in command("status", "--index", str(filled)).out
    assert not list((tmp_path / "home").rglob("allowed-encoders*"))


@pytest.mark.slow
def test_naming_a_model_to_an_ingest_is_permission(command: Command, tiny_text: Path, tmp_path: Path) -> None:
    """The whole round: fill with a model, ask without naming it, from elsewhere, as somebody else, and back."""
    write_pdf(tmp_path / "docs" / "a.pdf", ["Herring prices rose in the harbour.", "Tomatoes need sun."])
    folder = Path(shutil.copytree(tiny_text, tmp_path / "my model"))
    index = str(tmp_path / "index")
    added = command("ingest", "docs", "--json", "--index", index, CTX_TEXT_ENCODER="./my model")
    assert (added.code, added.document["chunks"]) == (0, 2)
    remembered = tmp_path / "home" / ".local" / "state" / "ctx" / "allowed-encoders"
    [name] = remembered.read_text().splitlines()
    assert name.startswith(f"sentence-transformers:{folder}@")
    assert (remembered.stat().st_mode & 0o777, remembered.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    asked = command("ask", "herring prices", "--json", "--index", index, cwd=elsewhere)
    assert legs_of(asked) == {"lexical": "ok", "dense": "ok", "visual": "ok"}
    assert asked.err == ""
    # The same folder written otherwise is the same encoder, and so is none at all.
    for written in ("../my model", ""):
        again = command("ingest", "../docs", "--json", "--index", index, cwd=elsewhere, CTX_TEXT_ENCODER=written)
        assert (again.code, again.document["chunks"]) == (0, 0)
    assert remembered.read_text().splitlines() == [name]

    # Somebody else, who got the index as it is.
    other = {"HOME": str(tmp_path / "other")}
    refused = command("ask", "herring prices", "--json", "--index", index, **other)
    assert (refused.code, legs_of(refused)) == (0, {"lexical": "ok", "dense": "failed", "visual": "failed"})
    assert f"CTX_ALLOWED_ENCODERS='{name}'" in refused.err
    assert command("ingest", "docs", "--index", index, **other).code == 1
    assert name in command("status", "--json", "--index", index, **other).document["encoders_not_allowed"]
    allowed = command("ask", "herring prices", "--json", "--index", index, **other, CTX_ALLOWED_ENCODERS=name)
    assert legs_of(allowed) == {"lexical": "ok", "dense": "ok", "visual": "ok"}

    # Files that changed, and files that are gone.
    (folder / "2_Dense" / "model.safetensors").write_bytes(
        (folder / "2_Dense" / "model.safetensors").read_bytes()[:-4] + b"\0\0\0\0"
    )
    changed = command("ask", "herring", "--json", "--index", index)
    assert (legs_of(changed)["dense"], "its files have changed" in changed.err) == ("failed", True)
    folder.rename(tmp_path / "moved")
    moved = command("ask", "herring", "--json", "--index", index)
    assert f"is no longer at {folder}" in moved.err
    assert "CTX_TEXT_ENCODER=FOLDER ctx ingest PATH" in command("doctor", "--index", index).out

    # Back to the embedded one: everything anew, never mixed.
    back = command("ingest", "docs", "--json", "--index", index, CTX_TEXT_ENCODER="default")
    assert (back.code, back.document["chunks"]) == (0, 2)
    assert legs_of(command("ask", "herring", "--json", "--index", index, **other))["dense"] == "ok"
