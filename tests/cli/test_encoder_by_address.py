"""An index whose vectors come from an address: filled, asked, moved and moved back; and a server that is not well."""

from __future__ import annotations

import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from research.encoders import DEFAULT, OpenAIEncoder
from research.store import PageBlobs
from tests.conftest import write_pdf
from tests.in_process import Ran, run_in_process
from tests.research.encoders.test_openai import embeddings
from tests.research.search.small_index import add, embed, open_catalog
from tests.serving import KEY, Asked, Reply, Served, free_port, serving

Command = Callable[..., Ran]
PAGES = ["Herring prices rose in the harbour.", "Tomatoes need sun, water and patience.", "The keeper left in March."]


@pytest.fixture
def docs(tmp_path: Path) -> None:
    write_pdf(tmp_path / "docs" / "a.pdf", PAGES)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The command in this process, with an index of its own and quick settings."""

    def run(*args: str, **variables: str) -> Ran:
        index = variables.pop("index", str(tmp_path / "index"))
        env = {"CTX_IMAGES": "false", "CTX_OCR": "off", "CTX_REQUEST_TIMEOUT": "20", **variables}
        ran = run_in_process(*args, "--index", index, cwd=tmp_path, env=env)
        assert "Traceback" not in ran.err
        return ran

    return run


@pytest.fixture(scope="module")
def _served() -> Iterator[Served]:
    with serving(_well) as served:
        yield served


def _well(asked: Asked) -> Reply:
    return Reply(embeddings(asked))


@pytest.fixture
def server(loopback: None, _served: Served) -> Served:
    """A server that is well, until a test says otherwise."""
    _served.answer = _well
    _served.asked.clear()
    return _served


@pytest.fixture(scope="module")
def _built(_served: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("by-address")
    write_pdf(folder / "docs" / "a.pdf", PAGES)
    env = {"CTX_IMAGES": "false", "CTX_OCR": "off", "CTX_TEXT_ENCODER": f"openai:m@{_served.url}"}
    assert run_in_process("ingest", "docs", "--index", "index", cwd=folder, env=env).code == 0
    return folder


@pytest.fixture
def by_address(_built: Path, server: Served, tmp_path: Path) -> dict[str, str]:
    """The index of the command filled through the server; gives the variables that name it."""
    shutil.copytree(_built / "index", tmp_path / "index")
    shutil.copytree(_built / "docs", tmp_path / "docs")
    return {"CTX_TEXT_ENCODER": f"openai:m@{server.url}"}


def legs_of(ran: Ran) -> dict[str, str]:
    return {leg["name"]: leg["status"] for leg in ran.document["coverage"]["legs"]}


WELL = {"lexical": "ok", "dense": "ok", "visual": "ok"}
WITHOUT = {"lexical": "ok", "dense": "failed", "visual": "failed"}


def vectors_in(index: Path) -> tuple[str, set[int]]:
    """The encoder an index names, and the lengths of its vectors."""
    with sqlite3.connect(index / "catalog.sqlite3") as catalog:
        [name] = catalog.execute("SELECT value FROM meta WHERE key = 'text_encoder'").fetchone()
        lengths = {len(blob) // 2 for (blob,) in catalog.execute("SELECT vector FROM vectors")}
        count = catalog.execute("SELECT COUNT(*) FROM vectors").fetchone()[0]
    catalog.close()
    assert count == len(PAGES)
    return str(name), lengths


@pytest.mark.slow
@pytest.mark.usefixtures("docs")
def test_the_whole_round_with_a_real_server(command: Command, llama: str, tmp_path: Path) -> None:
    """Filled, asked, re-opened, moved to the embedded encoder and back; and the key stands nowhere."""
    index, name = tmp_path / "index", f"openai:smollm2@{llama}/v1"
    key = {"CTX_API_KEY": KEY}
    log = {"CTX_LOG": str(tmp_path / "ctx.log"), "CTX_LOG_LEVEL": "debug"}
    told = []

    def ran(*args: str, **variables: str) -> Ran:
        found = command(*args, **{**key, **log, **variables})
        told.append(found.out + found.err)
        return found

    filled = ran("ingest", "docs", "--json", CTX_TEXT_ENCODER=f"openai:smollm2@{llama}")
    assert (filled.code, filled.document["chunks"]) == (0, 3), filled.err
    assert vectors_in(index) == (name, {576})
    asked = ran("ask", "herring prices", "--json", "--debug")
    assert (legs_of(asked), asked.document["sources"][0]["page"]) == (WELL, 1)
    [passage] = asked.document["sources"][0]["passages"]
    assert passage["text"] == PAGES[0]
    nothing = ran("ingest", "docs", "--json")
    assert (nothing.code, nothing.document["chunks"]) == (0, 0)
    status = ran("status", "--json").document
    assert status["contacts"] == [{"use": "text encoder", "address": f"{llama}/v1"}]
    assert f"contacts     {llama}/v1 (text encoder)" in ran("status").out
    doctor = ran("doctor")
    assert f"{name} answers in " in doctor.out
    assert "576 dimensions" in doctor.out

    # Without the key, and with a wrong one.
    for wrong in ("", "sk-wrong-key-0987"):
        refused = ran("ask", "herring prices", "--json", "--debug", CTX_API_KEY=wrong)
        assert (refused.code, legs_of(refused)) == (0, WITHOUT)
        assert refused.document["sources"][0]["page"] == 1
        assert "answered 401" in refused.err
        assert "sk-wrong" not in refused.out + refused.err
    stopped = ran("ingest", "docs", "--json", "--debug", CTX_API_KEY="sk-wrong-key-0987", CTX_TEXT_ENCODER="default")
    assert stopped.code == 0, "another encoder needs no key"

    # Back at the embedded one: everything anew, nobody contacted, and then forth again.
    assert vectors_in(index) == (DEFAULT, {384})
    assert legs_of(ran("ask", "herring", "--json")) == WELL
    assert ran("status", "--json").document["contacts"] == []
    forth = ran("ingest", "docs", "--json", CTX_TEXT_ENCODER=name)
    assert (forth.code, forth.document["chunks"]) == (0, 3)
    assert vectors_in(index) == (name, {576})

    # A backup names it, and another user who restores it contacts nobody.
    assert ran("backup", "b.zip").code == 0
    other = {"HOME": str(tmp_path / "other"), "XDG_STATE_HOME": str(tmp_path / "other"), "index": "restored"}
    assert f"it was filled by {name}" in ran("restore", "b.zip", **other).err
    foreign = ran("ask", "herring", "--json", **other)
    assert (legs_of(foreign), "which you have not allowed" in foreign.err) == (WITHOUT, True)
    assert ran("status", "--json", **other).document["contacts"] == []
    assert legs_of(ran("ask", "herring", "--json", CTX_ALLOWED_ENCODERS=name, **other)) == WELL

    assert not [text for text in told if KEY in text]
    with zipfile.ZipFile(tmp_path / "b.zip") as backup:
        assert not [entry for entry in backup.namelist() if KEY.encode() in backup.read(entry)]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".zip"]
    assert tmp_path / "ctx.log" in written
    assert not [path for path in written if KEY.encode() in path.read_bytes()]


@pytest.mark.usefixtures("docs")
def test_a_found_ctx_toml_may_not_name_an_address(command: Command, server: Served, tmp_path: Path) -> None:
    for line in (f'text_encoder = "openai:m@{server.url}"', f'reranker = "{server.url}/rerank"'):
        (tmp_path / "ctx.toml").write_text(line)
        for args in (["ingest", "docs"], ["ask", "herring"], ["search", "herring"], ["doctor"], ["status"]):
            ran = command(*args)
            assert (ran.code, "is the user's own to set" in ran.err) == (2, True)
    assert server.asked == []


@pytest.mark.usefixtures("docs")
def test_an_index_that_names_an_address_contacts_nobody(command: Command, server: Served, copied: Path) -> None:
    name = f"openai:m@{server.url}/v1"
    with sqlite3.connect(copied / "catalog.sqlite3") as catalog:
        catalog.execute("UPDATE meta SET value = ? WHERE key = 'text_encoder'", (name,))
        catalog.execute("UPDATE meta SET value = ? WHERE key = 'visual_encoder'", (f"regions:{name}",))
    catalog.close()
    where = {"index": str(copied)}
    asked = command("ask", "housing bubble", "--json", **where)
    assert (asked.code, legs_of(asked)) == (0, WITHOUT)
    assert f"CTX_ALLOWED_ENCODERS={name}" in asked.err
    assert asked.document["sources"][0]["filename"] == "crisis.pdf"
    for args in (["ask", "x", "--mode", "dense"], ["ingest", "docs"]):
        refused = command(*args, **where)
        assert (refused.code, "which you have not allowed" in refused.err) == (1, True)
    assert "which you have not allowed" in command("doctor", **where).out
    assert command("status", "--json", **where).document["encoders_not_allowed"] == [name]
    # Nor if another address is the user's own.
    command("ask", "housing", CTX_TEXT_ENCODER=f"openai:m@http://127.0.0.1:{free_port()}", **where)
    assert server.asked == []


@pytest.mark.slow
@pytest.mark.usefixtures("docs")
def test_a_server_that_stops_in_the_middle_loses_nothing(
    command: Command, server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("research.encoders.openai.PATIENTLY", (0.0,))
    monkeypatch.setattr("ingest.stages._BATCH", 1)  # a commit a chunk, so that there is a middle

    def failing(asked: Asked) -> Reply:
        return Reply(b"", 503) if "keeper" in asked.document["input"][0] else Reply(embeddings(asked))

    server.answer = failing
    named = {"CTX_TEXT_ENCODER": f"openai:m@{server.url}"}
    stopped = command("ingest", "docs", "--json", **named)
    assert (stopped.code, "answered 503" in stopped.err) == (1, True)
    asked = command("ask", "keeper left in March", "--json")
    assert asked.document["sources"][0]["page"] == 3, "found by its words"
    assert asked.document["coverage"]["pages_without_vectors"] == 1
    server.answer = lambda asked: Reply(embeddings(asked))
    seen = len(server.asked)
    gone_on = command("ingest", "docs", "--json")
    assert (gone_on.code, gone_on.document["chunks"]) == (0, 1)
    sent = [text for asked in server.asked[seen:] for text in asked.document["input"]]
    assert not [text for text in sent if text.endswith(PAGES[1])], "what has a vector is not sent again"
    assert legs_of(command("ask", "keeper", "--json")) == WELL


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        pytest.param(Reply(never=True), "did not answer within 1 s", marks=pytest.mark.slow),
        (Reply(b"<html>gateway</html>"), "answers with a web page, not with JSON"),
        (Reply({"data": []}), "gives 0 vectors for 2 texts"),
        (Reply({"error": "no such key"}, 401), "answered 401: no such key"),
    ],
)
def test_a_question_is_answered_without_it(
    command: Command, server: Served, by_address: dict[str, str], reply: Reply, told: str
) -> None:
    named = {"CTX_REQUEST_TIMEOUT": "1", **by_address}
    server.answer = lambda _: reply
    asked = command("ask", "herring prices", "--json", **named)
    assert (asked.code, legs_of(asked)) == (0, WITHOUT)
    assert asked.document["sources"][0]["page"] == 1
    assert asked.document["coverage"]["complete"] is False
    assert told in asked.err
    assert "the results come from the rest" in asked.err
    if reply.never:
        assert len(server.asked) == 1, "several parts of a question want its vector, and one waits"
    alone = command("ask", "herring", "--mode", "dense", **named)
    assert (alone.code, told in alone.err) == (1, True)


def test_doctor_tells_of_a_server_that_is_not_well(
    command: Command, server: Served, by_address: dict[str, str]
) -> None:
    assert f"ok\ttext\topenai:m@{server.url}/v1 answers in " in command("doctor", **by_address).out
    assert len(server.asked) == 1, "once, though settings and index both name it"
    server.answer = lambda _: Reply(b"<html>gateway</html>", 502)
    told = command("doctor", **by_address)
    assert f"warn\ttext\t{server.url}/v1/embeddings answered 502: a web page\ttry again in a while" in told.out
    elsewhere = command("doctor", CTX_TEXT_ENCODER=f"openai:other@{server.url}/x", index="none")
    assert f"warn\ttext encoder\t{server.url}/x/embeddings answered 502" in elsewhere.out
    assert (told.code, elsewhere.code) == (0, 0), "questions are answered, by the other legs"


@pytest.mark.parametrize("change", [{"dim": 12}, {"salt": "other"}])
def test_another_model_at_the_same_address_is_never_mixed_in(
    command: Command,
    server: Served,
    by_address: dict[str, str],
    tmp_path: Path,
    change: dict[str, Any],
) -> None:
    named = by_address
    server.answer = lambda asked: Reply(embeddings(asked, **change))
    asked = command("ask", "herring prices", "--json", **named)
    assert legs_of(asked) == WITHOUT
    assert f"CTX_TEXT_ENCODER=openai:m@{server.url}/v1 ctx ingest PATH" in asked.err + command("doctor", **named).out
    anew = command("ingest", "docs", "--json", **named)
    assert (anew.code, anew.document["chunks"]) == (0, 3)
    assert "all documents are embedded anew" in anew.err
    assert vectors_in(tmp_path / "index")[1] == {change.get("dim", 8)}
    assert legs_of(command("ask", "herring prices", "--json")) == WELL
    again = command("ingest", "docs", "--json", **named)
    assert (again.code, again.document["chunks"]) == (0, 0)


def test_with_nothing_to_embed_a_server_that_is_down_is_no_matter(
    command: Command, server: Served, by_address: dict[str, str]
) -> None:
    server.answer = lambda _: Reply(b"", 503)
    down = command("ingest", "docs", "--json", **by_address)
    assert (down.code, down.document["chunks"]) == (0, 0)


def test_lines_that_ocr_read_are_of_the_same_model(server: Served, tmp_path: Path) -> None:
    """What another model left behind under the same name goes with the chunks."""
    with open_catalog(tmp_path / "lines") as catalog:
        add(catalog, {"/a.pdf": ["Herring."]})
        encoder = OpenAIEncoder(f"openai:m@{server.url}")
        embed(catalog, encoder)
        catalog.visual.write([PageBlobs(1, b"", b"", b"", b"lines")])
        catalog.chunks.set_encoder(encoder.name, encoder.dim, sketch="1 2 3")
        assert catalog.visual.count() == 1
        catalog.chunks.set_encoder(encoder.name, encoder.dim, sketch="3 2 1", changed=True)
        assert (catalog.visual.count(), catalog.chunks.sketch()) == (0, "3 2 1")


@pytest.mark.usefixtures("docs")
def test_passages_longer_than_the_server_takes_are_told(command: Command, server: Served, tmp_path: Path) -> None:
    def picky(asked: Asked) -> Reply:
        long = max(map(len, asked.document["input"])) > 100
        return Reply({"error": "the input is too long"}, 400) if long else Reply(embeddings(asked))

    server.answer = picky
    write_pdf(tmp_path / "docs" / "b.pdf", ["The keeper left in March, and nobody knows where the herring went. " * 3])
    filled = command("ingest", "docs", "--json", CTX_TEXT_ENCODER=f"openai:m@{server.url}")
    assert (filled.code, filled.document["chunks"]) == (0, 4)
    assert f"passages longer than openai:m@{server.url}/v1 takes: 1;" in filled.err


@pytest.mark.slow
@pytest.mark.usefixtures("docs")
def test_the_window_of_another_index_is_not_exceeded(command: Command, server: Served, tmp_path: Path) -> None:
    """Chunks cut for an address also fit the embedded encoder, whatever script they are in."""
    words = "0123456789abcdef " * 60 + "Überraschungsmöglichkeiten " * 60 + "a.b.c.d/e-f_g " * 60
    write_pdf(tmp_path / "docs" / "odd.pdf", [words])
    assert command("ingest", "docs", CTX_TEXT_ENCODER=f"openai:m@{server.url}").code == 0
    back = command("ingest", "docs", "--json", CTX_TEXT_ENCODER="default")
    assert back.code == 0, back.err
    assert back.document["chunks"] > 3


@pytest.mark.usefixtures("docs")
def test_under_a_policy_it_is_sent_nothing_unless_it_is_named(command: Command, server: Served, tmp_path: Path) -> None:
    policy = tmp_path / "own" / "policy.cedar"
    policy.parent.mkdir()
    policy.write_text("permit (principal, action, resource);")
    policy.chmod(0o600)
    named = {"CTX_TEXT_ENCODER": f"openai:tiny@{server.url}", "CTX_POLICY": str(policy)}
    server.asked.clear()
    refused = command("ingest", "docs", **named)
    assert refused.code == 1
    assert "a policy is in force" in refused.err
    assert "allowed_encoders" in refused.err
    assert server.asked == []
    allowed = {"CTX_ALLOWED_ENCODERS": named["CTX_TEXT_ENCODER"]}
    assert command("ingest", "docs", **named, **allowed).code == 0
    assert server.asked
    server.asked.clear()
    words_only = command("ask", "herring", CTX_POLICY=str(policy))
    assert "a policy is in force" in words_only.err
    assert "Herring prices" in words_only.out
    assert server.asked == []
