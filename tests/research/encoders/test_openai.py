"""Vectors from an address: a real server, and every way in which one can go wrong."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from research.encoders import openai
from research.encoders.allowed import check_allowed, remember
from research.encoders.base import (
    identify_text_encoder,
    is_light,
    load_remembered,
    load_text_encoder,
    token_counter,
)
from research.encoders.minilm import MiniLMEncoder
from research.encoders.openai import OpenAIEncoder, alike, describe, sketch_of
from research.errors import EncoderNotAllowed, EncoderUnavailable
from research.llm import model_endpoint
from tests.serving import KEY, Asked, Reply, Served, free_port, serving

DIM = 8


def vector(text: str, dim: int = DIM, salt: str = "") -> list[float]:
    """Of any text one of its own, of any length."""
    seed = int.from_bytes(hashlib.sha256(f"{salt}{text}".encode()).digest()[:4], "big")
    return [float(x) for x in np.random.default_rng(seed).normal(size=dim)]


def embeddings(asked: Asked, dim: int = DIM, salt: str = "") -> Any:
    rows = [
        {"object": "embedding", "index": index, "embedding": vector(text, dim, salt)}
        for index, text in enumerate(asked.document["input"])
    ]
    return {"object": "list", "model": "served", "data": rows[::-1]}


@pytest.fixture
def server(loopback: None) -> Iterator[Served]:
    with serving(lambda asked: Reply(embeddings(asked))) as served:
        yield served


def encoder(served: Served, **settings: Any) -> OpenAIEncoder:
    return OpenAIEncoder(f"openai:m@{served.url}", **settings)


def unit(text: str, **how: Any) -> Any:
    made = np.array(vector(text, **how))
    return made / np.linalg.norm(made)


@pytest.mark.slow
def test_a_real_server_gives_vectors(llama: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_API_KEY", KEY)
    made = load_text_encoder(f"openai:smollm2@{llama}")
    assert (made.name, made.dim) == (f"openai:smollm2@{llama}/v1", 576)
    texts = ["Herring prices rose in the harbour.", "Tomatoes need sun.", "", "   "]
    matrix = made.embed(texts)
    assert (matrix.shape, matrix.dtype) == ((4, 576), np.float32)
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    assert made.embed_query(texts[0]) @ matrix[0] > 0.999
    # One that is longer than the server's window of 128 tokens is told by the server, and halved.
    long = "The harbour keeper left in March. " * 20
    assert isinstance(made, OpenAIEncoder)
    halved = made.embed([texts[0], long, texts[1]])
    assert made.halved == 1
    assert np.allclose(halved[[0, 2]], matrix[:2], atol=1e-2)
    assert halved[1] @ made.embed([long[: len(long) // 4]])[0] > 0.9, "of the same words"
    assert describe(made.name, dim=576, sketch="", timeout=30).endswith("576 dimensions")


def test_texts_go_in_batches_and_come_back_in_order(server: Served) -> None:
    texts = [f"text {number}" for number in range(70)]
    matrix = encoder(server).embed(texts)
    assert np.allclose(matrix, [unit(text) for text in texts], atol=1e-6)
    assert [len(asked.document["input"]) for asked in server.asked] == [1, 32, 32, 6]  # the first is for the length
    assert {asked.path for asked in server.asked} == {"/v1/embeddings"}
    assert {tuple(sorted(asked.document)) for asked in server.asked} == {("input", "model")}
    assert encoder(server).embed([]).shape == (0, DIM)


def test_a_very_long_question_is_sent_by_its_beginning(server: Served) -> None:
    made = encoder(server, dim=DIM)
    made.embed_query("What caused the crisis? " * 100_000)
    [asked] = server.asked
    [sent] = asked.document["input"]
    assert 500 < len(sent) < 4096


def test_the_key_is_sent_in_a_header(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder(server).embed_query("x")
    assert "Authorization" not in server.asked[-1].headers
    monkeypatch.setenv("CTX_API_KEY", f" {KEY}\n")
    encoder(server).embed_query("x")
    assert server.asked[-1].headers["Authorization"] == f"Bearer {KEY}"
    monkeypatch.setenv("CTX_API_KEY", "two words")
    with pytest.raises(EncoderUnavailable, match="CTX_API_KEY holds characters that no key has") as caught:
        encoder(server).embed_query("x")
    assert "two words" not in f"{caught.value.message}{caught.value.hint}"


def spoiled(value: Any) -> list[Any]:
    return [value, *[0.5] * (DIM - 1)]


BROKEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{
        what: lambda row, made=made: {**row, "embedding": made}
        for what, made in {
            "nan": spoiled(float("nan")),
            "infinite": spoiled(float("inf")),
            "null": spoiled(None),
            "text": spoiled("0.5"),
            "zeros": [0.0] * DIM,
            "empty": [],
            "ragged": [0.5] * (DIM - 1),
            "huge": [0.5] * 9000,
            "base64": "AAAA",
        }.items()
    },
    "another number": lambda row: {**row, "index": 7},
    "no vector": lambda row: {"index": row["index"]},
    "no row": lambda _: None,
}
WHOLE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "fewer": lambda good: {**good, "data": good["data"][1:]},
    "twice": lambda good: {**good, "data": [*good["data"], good["data"][0]]},
    "list": lambda good: [good],
    "other": lambda _: {"embeddings": [[0.1]]},
    "data": lambda _: {"data": 3},
}


def broken(what: str, asked: Asked) -> Reply:
    good = embeddings(asked)
    if what in WHOLE:
        return Reply(WHOLE[what](good))
    return Reply({**good, "data": [BROKEN[what](good["data"][0]), *good["data"][1:]]})


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("nan", "a vector that is none"),
        ("infinite", "a vector that is none"),
        ("null", "something else than numbers"),
        ("text", "something else than numbers"),
        ("base64", "something else than numbers"),
        ("zeros", "a vector that is none"),
        ("fewer", "gives 1 vectors for 2 texts"),
        ("twice", "gives 3 vectors for 2 texts"),
        ("ragged", "in another form"),
        ("empty", "in another form"),
        ("huge", "in another form"),
        ("another number", "gives 2 vectors for 2 texts, or others than these"),
        ("no vector", "in another form"),
        ("no row", "in another form"),
        ("list", "in another form"),
        ("other", "in another form"),
        ("data", "in another form"),
    ],
)
def test_answers_that_are_none(server: Served, what: str, told: str) -> None:
    made = encoder(server, dim=DIM)
    server.answer = lambda asked: broken(what, asked)
    with pytest.raises(EncoderUnavailable, match=told) as caught:
        made.embed(["a", "b"])
    assert server.url in caught.value.message
    assert "ctx doctor" in caught.value.hint
    assert len(server.asked) == 1, "asking again would bring the same"


PAGE = b"<!DOCTYPE html><html><body>It works!</body></html>"


@pytest.mark.parametrize(
    ("reply", "told", "hint"),
    [
        (Reply(PAGE), "answers with a web page, not with JSON", "check the address"),
        (Reply(b""), "answers with nothing, not with JSON", "check the address"),
        (Reply(b"\xff\xfe"), "answers with text, not with JSON", "check the address"),
        (Reply(b"[" * 100_000), "answers with text, not with JSON", "check the address"),
        (Reply(PAGE, 404), "answered 404: a web page$", "check the address"),
        (Reply({"error": {"message": "no model 'm'"}}, 404), "answered 404: no model 'm'", "the name of the model"),
        (Reply({"error": "pull it first"}, 400), "answered 400: pull it first", "check the address"),
        (Reply({"detail": [{"msg": "Field required"}]}, 422), "answered 422: Field required", "check the address"),
        (Reply(b"\x1b[31mgo\r\naway", 418), "answered 418: go away", "check the address"),
        (Reply({"error": " ".join(map(str, range(99)))}, 400), "…$", "check the address"),
        (
            Reply({"message": f"bad key {KEY}"}, 401),
            r"answered 401: bad key \[key\]",
            "CTX_API_KEY is the key for",
        ),
        (
            Reply(f"<p>Bearer {KEY}</p>".encode(), 403),
            "answered 403: a web page",
            "_KEY is for it alone",
        ),
        (Reply({"error": f"your key {KEY[:9]}***"}, 401), r"answered 401: your key \[key\]", "CTX_TEXT_ENCODER_KEY"),
        (Reply(b"", 301, {"Location": "https://elsewhere/"}), "sends on to another address .elsewhere.", "https://"),
        (Reply({"error": "slow down"}, 429, {"Retry-After": "0"}), "answered 429: slow down", "try again in a while"),
        (Reply(PAGE, 502), "answered 502", "try again in a while"),
    ],
)
def test_servers_that_refuse(
    server: Served, monkeypatch: pytest.MonkeyPatch, reply: Reply, told: str, hint: str
) -> None:
    monkeypatch.setenv("CTX_API_KEY", KEY)
    server.answer = lambda _: reply
    with pytest.raises(EncoderUnavailable, match=told) as caught:
        encoder(server).embed_query("a question")
    assert hint in caught.value.hint
    assert KEY[:9] not in f"{caught.value.message}{caught.value.hint}{caught.value.__cause__}"
    assert "a question" not in caught.value.message
    assert len(server.asked) == (2 if reply.status in (429, 502) else 1)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("cannot embed 'Herring prices rose in the harbour.'", "cannot embed '…"),
        ("cannot embed Herring prices\n rose in", "cannot embed…"),
        ("no model m here", "no model m here"),
        ("prices are not known", "prices are not known"),
    ],
)
def test_a_server_that_repeats_a_document_is_not_quoted(server: Served, message: str, told: str) -> None:
    server.answer = lambda _: Reply({"error": message}, 400)
    with pytest.raises(EncoderUnavailable) as caught:
        encoder(server, dim=DIM).embed(["Tomatoes need sun.", "Herring prices rose in the harbour."])
    assert caught.value.message.endswith(f"answered 400: {told}")


def test_a_busy_server_is_asked_again_and_as_late_as_it_says(server: Served) -> None:
    replies = [Reply({}, 429, {"Retry-After": "0.2"}), Reply(b"", 503, {"Retry-After": "soon"}), Reply({"fine": 1})]
    server.answer = lambda _: replies[len(server.asked) - 1]
    client = model_endpoint(server.url, "CTX_API_KEY", waits=(0.0, 0.0))
    assert client.post({}) == {"fine": 1}
    assert len(server.asked) == 3


def test_a_server_that_comes_late_is_waited_for(loopback: None) -> None:
    port = free_port()
    client = model_endpoint(f"http://127.0.0.1:{port}/", "CTX_API_KEY", waits=(0.05,) * 100)
    made: list[Served] = []
    timer = threading.Timer(0.2, lambda: made.append(Served(lambda _: Reply({"late": True}), port)))
    timer.start()
    assert client.post({}) == {"late": True}
    timer.join()
    made[0].close()


@pytest.mark.parametrize("reply", [Reply(never=True), Reply({"a": "b" * 1000}, drip=10)])
def test_a_server_that_hangs_or_drips_costs_its_time_limit(server: Served, reply: Reply) -> None:
    server.answer = lambda _: reply
    made = encoder(server, dim=DIM, timeout=0.3)
    with pytest.raises(EncoderUnavailable, match=r"did not answer within 0\.3 s") as caught:
        made.embed_query("x")
    assert "CTX_REQUEST_TIMEOUT" in caught.value.hint
    # Several parts of a question want its vector; the server is asked once.
    for _ in range(3):
        with pytest.raises(EncoderUnavailable, match="did not answer"):
            made.embed_query("x")
    assert len(server.asked) == 1


@pytest.mark.slow
def test_a_slow_server_gets_smaller_requests(server: Served) -> None:
    """Without a graphics card 32 texts take a while; only a server that takes too long for one is given up."""
    server.answer = lambda asked: Reply(embeddings(asked), never=len(asked.document["input"]) > 8)
    made = encoder(server, patient=True, timeout=1.0)
    texts = [f"text {number}" for number in range(64)]
    assert np.allclose(made.embed(texts), [unit(text) for text in texts], atol=1e-6)
    assert [len(asked.document["input"]) for asked in server.asked] == [1, 32, *[8] * 8]


def test_texts_that_are_too_long_are_halved(server: Served) -> None:
    def picky(asked: Asked) -> Reply:
        if max(map(len, asked.document["input"])) > 300:
            return Reply({"error": {"message": "This model's maximum context length is 75 tokens."}}, 400)
        return Reply(embeddings(asked))

    server.answer = picky
    made = encoder(server)
    long = "word " * 200
    matrix = made.embed(["a", "b", long, "c"])
    assert made.halved == 1
    assert np.allclose(matrix[[0, 1, 3]], [unit("a"), unit("b"), unit("c")], atol=1e-6)
    assert np.isclose(np.linalg.norm(matrix[2]), 1, atol=1e-5)
    server.answer = lambda _: Reply(b"Payload Too Large", 413)
    with pytest.raises(EncoderUnavailable, match="too long for the model"):
        made.embed([long])


def test_another_number_of_dimensions_is_told(server: Served) -> None:
    made = encoder(server)
    assert made.dim == DIM
    server.answer = lambda asked: Reply(embeddings(asked, dim=12))
    with pytest.raises(EncoderUnavailable, match="now gives vectors of 12 dimensions, and not 8") as caught:
        made.embed(["x"])
    assert f"CTX_TEXT_ENCODER=openai:m@{server.url}/v1 ctx ingest PATH" in caught.value.hint


def test_another_model_behind_the_address_is_told(server: Served) -> None:
    sketch = encoder(server).tried.sketch
    made = encoder(server, dim=DIM, sketch=sketch)
    made.embed_query("first")
    made.embed_query("second")
    assert [len(asked.document["input"]) for asked in server.asked] == [1, 2, 1], "the proof comes with the question"
    server.answer = lambda asked: Reply(embeddings(asked, salt="other"))
    with pytest.raises(EncoderUnavailable, match="another model than the one that filled this index") as caught:
        encoder(server, dim=DIM, sketch=sketch).embed_query("first")
    assert "ctx ingest PATH" in caught.value.hint
    with pytest.raises(EncoderUnavailable, match="another model"):
        describe(made.name, dim=DIM, sketch=sketch, timeout=5)


def test_a_sketch_forgives_the_last_digits_alone() -> None:
    random = np.random.default_rng(1)
    for dim in (8, 64, 768, 4096):
        first = random.normal(size=dim).astype(np.float32)
        noise = random.normal(size=dim).astype(np.float32)
        assert len(sketch_of(first).split()) == min(dim, 64)
        assert alike(sketch_of(first), sketch_of(first + 0.02 * noise))
        assert not alike(sketch_of(first), sketch_of(noise))
        assert not alike(sketch_of(first), sketch_of(first[: dim // 2]))


def test_tokens_nobody_knows_are_estimated_high(loopback: None) -> None:
    name = f"openai:m@http://127.0.0.1:{free_port()}"
    assert is_light(name)
    counter, embedded = token_counter(name), MiniLMEncoder(threads=1)
    assert counter.max_tokens == embedded.max_tokens == 256
    # Where the embedded encoder sees one unknown word, another may see a token a character.
    unknown = {"ราคาปลาเฮอริ่งเพิ่มขึ้น": 23, "0123456789abcdef" * 8: 80, "🙂🚀🌍": 3}
    for text, least in unknown.items():
        assert counter.count_tokens(text) >= least
    for text in ("Boats in the harbour.", "Donaudampfschifffahrt", "1,234.56 | 78 %", "手表的静息心率", "", *unknown):
        assert counter.count_tokens(text) >= embedded.count_tokens(text)


def test_an_index_alone_contacts_nobody(server: Served) -> None:
    name = f"openai:m@{server.url}/v1"
    with pytest.raises(EncoderNotAllowed, match="which you have not allowed"):
        load_remembered(name, dim=DIM)
    for other in ("openai:other@" + server.url, f"openai:m@{server.url}/other", server.url, "m", "some/model"):
        with pytest.raises(EncoderNotAllowed):
            check_allowed(name, [other])
    for bad in (f"openai:m@{server.url}", f"openai:m@{server.url}/v1/", f"openai:m@{server.url}/v1?x", server.url):
        with pytest.raises(EncoderNotAllowed, match="no full name"):
            check_allowed(bad, [bad])
    assert server.asked == []
    for written in (f"openai:m@{server.url}", name, f"{name}/embeddings"):
        assert identify_text_encoder(written) == name
        assert load_remembered(name, dim=DIM, named=[written]).embed_query("x").shape == (DIM,)
        check_allowed(f"regions:{name}", [written])


def test_naming_it_to_an_ingest_is_permission(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    remember("openai:m@http://h/v1")
    check_allowed("openai:m@http://h/v1")
    with pytest.raises(EncoderNotAllowed):
        check_allowed("openai:m@http://other/v1")


def test_nothing_is_asked_until_a_text_is(server: Served) -> None:
    made = load_text_encoder(f"openai:m@{server.url}")
    assert made.count_tokens("some words") == 2
    assert (made.max_tokens, server.asked) == (openai.WINDOW, [])
