"""A key is seen by who asks for it and by nobody else: not in words, records, pickles, logs or a server's echo."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from base64 import b64encode
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.errors import UsageError
from research.secret import MODEL_KEY, Secret, find_key, scrub, scrubbed_logs
from tests.pace import draws

KEY = "sk-live-0123456789abcdefghij/+="


@dataclass(frozen=True)
class Holder:
    key: Secret
    name: str = "x"


def test_no_way_to_show_it_by_accident() -> None:
    secret = Secret(KEY)
    holder = Holder(secret)
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>40}",
        "%s %r" % (secret, secret),  # noqa: UP031  a log does it so
        repr(holder),
        repr(asdict(holder)),
        repr(copy.deepcopy(holder)),
        repr(copy.copy(secret)),
        str(dir(secret)),
        str([getattr(secret, name) for name in dir(secret) if name != "reveal" and not name.startswith("__")]),
    ]
    assert not [text for text in shown if "sk-live" in text]
    for way in (pickle.dumps, json.dumps):
        with pytest.raises(TypeError) as caught:
            way(holder if way is pickle.dumps else asdict(holder))  # type: ignore[operator]
        assert "sk-live" not in str(caught.value)
    with pytest.raises(TypeError):
        vars(secret)
    assert asdict(holder)["key"].reveal() == secret.reveal() == KEY


def of_host(host: str, **environment: str) -> str:
    found = find_key(f"https://{host}/v1", MODEL_KEY, environment).secret
    return found.reveal() if found else ""


def test_the_key_is_the_environments() -> None:
    assert of_host("host") == of_host("host", CTX_MODEL_KEY=" ") == ""
    assert of_host("host", CTX_MODEL_KEY=f" {KEY}\n") == KEY
    assert of_host("host", CTX_MODEL_KEY=KEY, CTX_API_KEY="sk-common") == KEY, "that of a use before the common one"


@pytest.mark.parametrize("wrong", ["sk-one\nX-Other: header", "sk one", "sk-schlüssel", "sk-\x00"])
def test_what_cannot_be_a_key_is_refused_without_a_word_of_it(wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_key("https://host/v1", MODEL_KEY, {MODEL_KEY: wrong})
    told = "".join(traceback.format_exception(caught.value)) + caught.value.hint
    assert MODEL_KEY in told
    assert wrong[:3] not in told


def _keyring(folder: Path, body: str) -> None:
    """A package of that name; the real one needs a desktop behind it."""
    (folder / "keyring").mkdir()
    (folder / "keyring" / "errors.py").write_text("class KeyringError(Exception): pass")
    (folder / "keyring" / "__init__.py").write_text(body)


def test_the_systems_keyring_is_asked_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _keyring(tmp_path, f"def get_password(service, name): return {{('ctx', 'api.host'): {KEY!r}}}.get((service, name))")
    monkeypatch.syspath_prepend(tmp_path)
    _forget_keyring(monkeypatch)
    assert of_host("api.host") == of_host("api.host", CTX_API_KEY="sk-common") == KEY
    assert of_host("other.host") == ""
    assert of_host("api.host", CTX_MODEL_KEY="sk-mine") == "sk-mine", "who says it now means it"


def test_a_locked_keyring_has_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _keyring(tmp_path, "from keyring.errors import KeyringError\ndef get_password(*_): raise KeyringError('locked')")
    monkeypatch.syspath_prepend(tmp_path)
    _forget_keyring(monkeypatch)
    assert of_host("api.host") == ""
    assert "the keyring cannot be read" in caplog.text


def _forget_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in ("keyring", "keyring.errors"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(
    "said",
    [
        f"Incorrect API key provided: {KEY}.",
        f"unknown key {KEY[:14]}…",
        f"unknown key …{KEY[-10:]}",
        f"two: {KEY} and {KEY}",
        f"at ?key={quote(KEY, safe='')}",
        f"Basic {b64encode(KEY.encode()).decode()}",
    ],
)
def test_a_server_that_repeats_the_key(said: str) -> None:
    clean = scrub(said, Secret(KEY))
    assert "[key]" in clean
    assert not any(KEY[at : at + 8] in clean for at in range(len(KEY) - 7))
    assert clean.split()[0] == said.split(maxsplit=1)[0]


@draws(50)
@given(st.text(), st.text(min_size=1, alphabet=st.characters(min_codepoint=33, max_codepoint=126)))
def test_only_the_key_is_taken_out(text: str, value: str) -> None:
    assert value not in scrub(f"{text}{value}{text}", Secret(value)).replace("[key]", "")
    if not set(text) & set(value) and len(value) >= 8:
        assert scrub(text, Secret(value)) == text
    assert scrub(text, None) == text


def test_what_the_http_library_logs_is_scrubbed_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with scrubbed_logs(Secret(KEY)):
        logging.getLogger("httpcore.http11").debug("received %r", [(b"x-echo", KEY.encode())])
        logging.getLogger("httpx").info("HTTP Request: %s", KEY)
    assert "received" in caplog.text
    assert "sk-live" not in caplog.text
    assert not logging.getLogger("httpx").filters, "and nothing is left behind"
