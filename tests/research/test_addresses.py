"""Addresses of models: one way to write each, no secret in any, and a key only where it belongs."""

from __future__ import annotations

import pytest

from research.addresses import (
    BadAddress,
    encoder_address,
    encoder_name,
    is_this_machine,
    parse_address,
    reranker_address,
    same_encoder,
)
from research.errors import UsageError
from research.secret import API_KEY, ENCODER_KEY, MODEL_KEY, Secret, find_key
from research.settings import load_settings, misspelt_variables

OPENAI = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("openai:m@http://localhost:11434/v1", "openai:m@http://localhost:11434/v1"),
        ("openai:m@http://localhost:11434", "openai:m@http://localhost:11434/v1"),
        ("openai:m@http://localhost:11434/", "openai:m@http://localhost:11434/v1"),
        ("openai:m@HTTP://LocalHost:11434/v1/embeddings/", "openai:m@http://localhost:11434/v1"),
        ("openai:nomic:v1.5@http://[::1]:80/api", "openai:nomic:v1.5@http://[::1]:80/api"),
        ("openai:Qwen/Qwen3@4b@https://host/V2/x", "openai:Qwen/Qwen3@4b@https://host/V2/x"),
        ("openai:my model.gguf@http://h/v1", "openai:my model.gguf@http://h/v1"),
    ],
)
def test_a_server_has_one_name(written: str, name: str) -> None:
    assert encoder_name(encoder_address(written)) == name
    assert same_encoder(name, written)
    assert load_settings({"text_encoder": written}, environment={}).text_encoder == written


SECRET = "hunter2"
BAD = [
    "openai:m",
    "openai:@http://h/v1",
    "openai:m@ftp://h/v1",
    "http://h/v1",
    "m@http://h/v1",
    f"openai:m@http://user:{SECRET}@h/v1",
    f"openai:m@http://{SECRET}@h/v1",
    f"openai:m@http://h/v1?key={SECRET}",
    f"openai:m@http://h/v1#{SECRET}",
    f"openai:http://u:{SECRET}@x@http://h/v1",
    "openai:m@http://",
    "openai:m@http:///v1",
    "openai:m@http://h:99999/v1",
    "openai:m@http://h:x/v1",
    "openai:m@http://h/../v1",
    "openai:m@http://h/v1 x",
    "openai:m@http://h\\@x/v1",
    "openai:m\u202e@http://h/v1",
    "openai:m@http://h/\u202ev1",
    " openai:m@http://h/v1",
    f"openai:{'m' * 600}@http://h/v1",
    f"openai:m@http://h/{'v' * 600}",
]


@pytest.mark.parametrize("written", BAD)
def test_what_is_no_address_is_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(BadAddress) as caught:
        encoder_address(written)
    assert SECRET not in f"{caught.value}{caught.value.hint}"
    assert "openai:MODEL@URL" in caught.value.hint
    assert not same_encoder(written, written)
    for given in ({"text_encoder": written}, {"allowed_encoders": ["some/model", written]}):
        if "://" in written or written.startswith("openai:"):
            with pytest.raises(UsageError) as told:
                load_settings(given, environment={})
            assert SECRET not in f"{told.value.message}{told.value.hint}"
            assert told.value.message.startswith(f"--{next(iter(given)).replace('_', '-')}: ")


@pytest.mark.parametrize(
    ("written", "model", "url"),
    [
        ("http://localhost:8080/v1/rerank", "", "http://localhost:8080/v1/rerank"),
        ("jina-v2@https://api.jina.ai/v1/rerank/", "jina-v2", "https://api.jina.ai/v1/rerank"),
        ("BAAI/bge@http://H:1/rerank", "BAAI/bge", "http://h:1/rerank"),
    ],
)
def test_a_reranker_by_its_address(written: str, model: str, url: str) -> None:
    assert reranker_address(written) == (model, url)
    assert load_settings({"reranker": written}, environment={}).reranker == written


@pytest.mark.parametrize(
    "written", ["http://h", "http://h/", "ftp://h/rerank", f"http://u:{SECRET}@h/rerank", f"http://h/rerank?k={SECRET}"]
)
def test_a_wrong_address_of_a_reranker_is_told(written: str) -> None:
    with pytest.raises(UsageError) as told:
        load_settings({}, environment={"CTX_RERANKER": written})
    assert told.value.message.startswith("CTX_RERANKER: reranker ")
    assert SECRET not in f"{told.value.message}{told.value.hint}"
    assert "/rerank" in told.value.hint


def value_of(url: str, own: str = ENCODER_KEY) -> str:
    found = find_key(url, own).secret
    return found.reveal() if isinstance(found, Secret) else ""


def test_the_common_key_goes_encrypted_or_nowhere_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY, "common")
    monkeypatch.setenv("OPENAI_API_KEY", "vendor")
    for url in (OPENAI, "https://elsewhere/v1", "http://localhost:1/v1", "http://127.0.0.1/v1", "http://[::1]/v1"):
        assert value_of(url) == value_of(url, MODEL_KEY) == "common"
    for url in ("http://elsewhere/v1", "http://localhost.evil/v1", "http://127.0.0.1.evil/v1", "http://10.0.0.1/v1"):
        assert (value_of(url), find_key(url, ENCODER_KEY).withheld) == ("", API_KEY)
        assert not is_this_machine(url)
    monkeypatch.setenv(ENCODER_KEY, "own")
    for url in (OPENAI, "http://elsewhere/v1", "http://localhost/v1"):
        assert (value_of(url), find_key(url, ENCODER_KEY).variable) == ("own", ENCODER_KEY)


def test_a_vendors_key_goes_to_the_vendor_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "vendor")
    assert value_of(OPENAI) == "vendor"
    for url in ("http://api.openai.com/v1", "https://api.openai.com.evil/v1", "http://localhost/v1", "https://h/v1"):
        assert value_of(url) == ""


def test_a_key_is_no_setting_and_shows_itself_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY, SECRET)
    assert SECRET not in repr(find_key(OPENAI, ENCODER_KEY))
    assert misspelt_variables({API_KEY: "x", ENCODER_KEY: "x", "CTX_RERANKER_KEY": "x"}) == {}
    with pytest.raises(UsageError) as told:
        load_settings({"api_key": SECRET}, environment={})
    assert SECRET not in f"{told.value.message}{told.value.hint}"


@pytest.mark.parametrize(
    ("text", "base", "host", "loopback"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1", "127.0.0.1:11434", True),
        ("http://localhost:8080/", "http://localhost:8080/v1", "localhost:8080", True),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1", "[::1]:8080", True),
        ("https://API.Example.com/v1/", "https://api.example.com/v1", "api.example.com", False),
        ("https://host/api/v1/chat/completions", "https://host/api/v1", "host", False),
        ("https://host/v1beta/openai/", "https://host/v1beta/openai", "host", False),
        ("http://192.168.1.5:8000", "http://192.168.1.5:8000/v1", "192.168.1.5:8000", False),
    ],
)
def test_what_is_called(text: str, base: str, host: str, loopback: bool) -> None:
    address = parse_address(text)
    assert (address.base, address.host, address.loopback) == (base, host, loopback)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "llama",
        "localhost:11434",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "http://host:port",
        "http://host:99999",
        "http://[::1",
        "http://host/v1?api-key=hunter2",
        "http://host/v1#hunter2",
        "http://user:hunter2@host/v1",
        "http://hunter2@host/v1",
        "http://ho st/hunter2",
        "http://host/\nhunter2",
    ],
)
def test_what_is_refused_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"^it ") as caught:
        parse_address(text)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
