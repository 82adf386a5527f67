"""Tokens of a server: the owner's in its file, further ones as hashes, and whom each stands for."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from research.errors import CtxError, UntrustedError
from research.governance import Principal, owner_principal
from research.service import tokens
from research.service.tokens import (
    TokenBook,
    digest,
    make_token,
    owner_token,
    read_tokens,
    revoke_tokens,
    tokens_of,
)
from research.store import IndexPaths


@pytest.fixture
def paths(tmp_path: Path) -> IndexPaths:
    paths = IndexPaths(tmp_path / "index")
    paths.create()
    return paths


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "state" / "tokens.json"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "token"


def test_the_owners_token_is_made_once(token_file: Path) -> None:
    token = owner_token(token_file).reveal()
    assert owner_token(token_file).reveal() == token
    assert len(token) >= 43, "256 bits"
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(token_file.parent.stat().st_mode) == 0o700
    assert token not in repr(owner_token(token_file))
    other = owner_token(token_file.with_name("other")).reveal()
    assert other != token


def test_many_servers_that_start_at_once_have_one_token(token_file: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(owner_token(token_file).reveal())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert os.listdir(token_file.parent) == ["token"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"short", "something else than a token"),
        (b"twenty letters and spaces in it", "something else"),
        (b"\x00" * 40, "something else"),
    ],
)
def test_an_odd_file_is_refused_without_repeating_it(token_file: Path, content: bytes, words: str) -> None:
    token_file.parent.mkdir()
    token_file.write_bytes(content)
    token_file.chmod(0o600)
    with pytest.raises(CtxError, match=words) as raised:
        owner_token(token_file)
    assert raised.value.hint
    assert content.decode("latin-1").strip() == "" or content.decode("latin-1") not in raised.value.message
    assert token_file.read_bytes() == content


def test_a_token_of_ones_own_is_taken_as_it_is(token_file: Path) -> None:
    token_file.parent.mkdir()
    token_file.write_text("a.token~of+my/own-choosing==\n")
    token_file.chmod(0o600)
    assert owner_token(token_file).reveal() == "a.token~of+my/own-choosing=="


def test_a_file_that_others_may_read_is_refused(token_file: Path) -> None:
    owner_token(token_file)
    token_file.chmod(0o644)
    with pytest.raises(UntrustedError, match="may be read or written by others") as raised:
        owner_token(token_file)
    assert "chmod 600" in raised.value.hint


def test_who_a_token_stands_for(paths: IndexPaths, store: Path, token_file: Path) -> None:
    owner = owner_token(token_file).reveal()
    ann, entry = make_token(paths, "ann", "lab", days=3, store=store)
    book = TokenBook(paths.root, owner_file=token_file, store=store)
    assert book.caller_for(owner) == owner_principal() == book.owner
    assert book.caller_for(owner).owner  # type: ignore[union-attr]
    assert book.caller_for(ann.reveal()) == Principal("ann", "lab", owner=False)
    assert entry.index
    assert datetime.fromisoformat(entry.expires_at) - datetime.fromisoformat(entry.created_at) == timedelta(days=3)
    assert ann.reveal() not in store.read_text()
    assert ann.reveal() not in repr((ann, entry, book))


@pytest.mark.parametrize(
    "odd", ["", "ü" * 40, "\udcff" * 40, "x" * 10_000_000, digest(""), "ctx_" + "A" * 43], ids=range(6)
)
def test_whatever_else_is_brought_is_nobody(paths: IndexPaths, store: Path, token_file: Path, odd: str) -> None:
    owner_token(token_file)
    _, entry = make_token(paths, "ann", "lab", store=store)
    book = TokenBook(paths.root, owner_file=token_file, store=store)
    assert book.caller_for(odd) is None
    assert book.caller_for(entry.sha256) is None, "the hash is no token"
    assert book.caller_for(entry.id) is None


def test_revoked_and_expired_ones_open_nothing_without_a_restart(paths: IndexPaths, store: Path) -> None:
    book = TokenBook(paths.root, owner_file=None, store=store)
    ann, entry = make_token(paths, "ann", "lab", store=store)
    bob, _ = make_token(paths, "bob", "lab", days=1, store=store)
    assert book.caller_for(ann.reveal()) == Principal("ann", "lab")
    assert book.caller_for(bob.reveal()) == Principal("bob", "lab")
    revoke_tokens([entry.id], store)
    assert book.caller_for(ann.reveal()) is None
    grant = book.grant_for(bob.reveal())
    assert grant is not None
    assert book.still_gives(grant)
    [left] = read_tokens(store)
    before = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    tokens._write(store, [replace(left, expires_at=before)])
    assert book.caller_for(bob.reveal()) is None
    assert not book.still_gives(grant)
    assert tokens_of(paths, store)[0].is_over(datetime.now(UTC)), "it is listed until another is made"
    make_token(paths, "eve", "lab", store=store)
    assert [entry.principal for entry in tokens_of(paths, store)] == ["eve"]


def test_one_that_expires_while_nothing_changes(paths: IndexPaths, store: Path) -> None:
    token, entry = make_token(paths, "ann", "lab", days=1, store=store)
    soon = datetime.now(UTC) + timedelta(milliseconds=200)
    tokens._write(store, [replace(entry, expires_at=soon.isoformat())])
    book = TokenBook(paths.root, owner_file=None, store=store)
    assert book.caller_for(token.reveal()) is not None
    while datetime.now(UTC) < soon:
        pass
    assert book.caller_for(token.reveal()) is None


def test_the_owners_token_follows_its_file(paths: IndexPaths, token_file: Path) -> None:
    token = owner_token(token_file).reveal()
    book = TokenBook(paths.root, owner_file=token_file)
    grant = book.owner_grant()
    assert grant is not None
    token_file.unlink()
    assert book.caller_for(token) is None
    assert not book.still_gives(grant)
    assert book.owner_grant() is None
    new = owner_token(token_file).reveal()
    assert book.caller_for(token) is None
    assert book.caller_for(new) == book.owner
    assert not book.still_gives(grant), "what began with the old one is over"
    token_file.chmod(0o644)
    assert book.caller_for(new) is None, "it may be known to others"


def test_an_index_in_the_place_of_another_is_not_opened(paths: IndexPaths, store: Path) -> None:
    token, _ = make_token(paths, "ann", "lab", store=store)
    book = TokenBook(paths.root, owner_file=None, store=store)
    assert book.caller_for(token.reveal()) is not None
    shutil.rmtree(paths.root)
    assert book.caller_for(token.reveal()) is None
    paths.create()
    assert book.caller_for(token.reveal()) is None
    assert tokens_of(paths, store) == []


def _entry(**changes: object) -> bytes:
    good = {
        "id": "0123abcd",
        "principal": "ann",
        "tenant": "lab",
        "created_at": "2026-01-01T00:00:00+00:00",
        "expires_at": "",
        "index": "a" * 32,
        "sha256": "b" * 64,
    }
    return json.dumps({"schema": "ctx.tokens/1", "tokens": [good | changes]}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"schema": "ctx.tokens/2", "tokens": []}',
        b'{"schema": "ctx.tokens/1", "tokens": [1]}',
        _entry(id="../../x"),
        _entry(principal="a b"),
        _entry(expires_at="tomorrow"),
        _entry(expires_at="2026-01-01T00:00:00"),
        _entry(sha256="b" * 63),
        _entry().replace(b'"tenant"', b'"owner"'),
    ],
    ids=range(11),
)
def test_a_damaged_file_gives_nobody_anything(paths: IndexPaths, store: Path, token_file: Path, content: bytes) -> None:
    assert _entry() != content
    store.parent.mkdir()
    store.write_bytes(content)
    store.chmod(0o600)
    with pytest.raises(CtxError, match="is damaged"):
        read_tokens(store)
    with pytest.raises(CtxError, match="is damaged"):
        make_token(paths, "ann", "lab", store=store)
    assert store.read_bytes() == content
    owner = owner_token(token_file).reveal()
    book = TokenBook(paths.root, owner_file=token_file, store=store)
    assert book.caller_for(owner) == book.owner, "the owner is let in all the same"


def test_a_sound_file_is_read(store: Path) -> None:
    store.parent.mkdir()
    store.write_bytes(_entry())
    store.chmod(0o600)
    assert [entry.principal for entry in read_tokens(store)] == ["ann"]
