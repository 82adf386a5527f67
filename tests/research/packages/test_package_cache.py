"""Packages under their id: one suite for the catalog and for a real Redis, and what a Redis may do wrong."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from research.errors import BusyError, UsageError
from research.packages.cache import (
    LARGEST,
    Cached,
    PackageCache,
    RedisLink,
    cache_for,
    shown_address,
)
from research.settings import Settings
from research.store import Catalog, IndexPaths, index_id
from tests.research.packages.redis_server import RedisServer


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 6, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with closing(RedisServer()) as server:
        server.start()
        yield server


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog(IndexPaths(tmp_path / "index"), writable=True) as catalog:
        for number in range(10):
            _add_record(catalog, f"p{number}")
        yield catalog


def _add_record(catalog: Catalog, package_id: str) -> None:
    """The package's record, whatever other columns it has: what is cached belongs to one."""
    connection = catalog.connection
    connection.execute("PRAGMA foreign_keys = OFF")
    names = [str(row["name"]) for row in connection.execute("PRAGMA table_info(packages)")]
    marks = ", ".join("?" for _ in names)
    values = [{"package_id": package_id, "record": "{}"}.get(name, "") for name in names]
    connection.execute(f"INSERT INTO packages ({', '.join(names)}) VALUES ({marks})", values)
    connection.execute("PRAGMA foreign_keys = ON")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def redis_cache(catalog: Catalog, clock: Clock, server: RedisServer, loopback: None) -> Iterator[PackageCache]:
    link = RedisLink(server.url, pause=0.0)
    yield PackageCache(lambda: catalog, link, index_id(catalog.paths.root), now=clock)
    link.close()


@pytest.fixture(params=["catalog", "redis"])
def cache(request: pytest.FixtureRequest, catalog: Catalog, clock: Clock) -> PackageCache:
    if request.param == "catalog":
        return PackageCache(lambda: catalog, now=clock)
    found: PackageCache = request.getfixturevalue("redis_cache")
    return found


def _cached(clock: Clock, text: str = "walrus", *, seconds: float = 60.0, **more: Any) -> Cached:
    package = json.dumps({"content": text}).encode()
    made = Cached(package, clock.now + timedelta(seconds=seconds), "ann", "lab", "policy-1", "content-1")
    return replace(made, **more)


def _stored_text(catalog: Catalog, package_id: str) -> bytes:
    row = catalog.execute("SELECT package FROM package_cache WHERE package_id = ?", (package_id,)).fetchone()
    return bytes(row[0])


# One suite for both.


def test_what_was_put_is_got_with_what_it_was_built_for(cache: PackageCache, clock: Clock) -> None:
    made = _cached(clock)
    assert cache.get("p1") is None
    assert cache.put("p1", made)
    assert cache.get("p1") == made
    other = _cached(clock, "seal", principal="ben", policy="policy-2")
    assert cache.put("p1", other)
    assert (cache.get("p1"), cache.get("p2")) == (other, None)


def test_its_time_is_over_once_and_for_all(cache: PackageCache, clock: Clock) -> None:
    cache.put("p1", _cached(clock, seconds=60))
    began = clock.now
    clock.now = began + timedelta(seconds=59.999)
    assert cache.get("p1") is not None
    clock.now = began + timedelta(seconds=60)
    assert cache.get("p1") is None
    clock.now = began
    assert cache.get("p1") is None, "a clock that is set back revives nothing"
    cache.put("p2", _cached(clock))
    clock.now = began - timedelta(days=300)
    assert cache.get("p2") is None, "it would last for months"
    assert not cache.put("p3", _cached(clock, seconds=0))
    assert not cache.put("p3", _cached(clock, seconds=-5))


def test_whoever_keeps_one_takes_away_what_is_over(cache: PackageCache, catalog: Catalog, clock: Clock) -> None:
    cache.put("p1", _cached(clock, seconds=10))
    clock.now += timedelta(seconds=25)
    cache.put("p2", _cached(clock))
    assert catalog.column("SELECT package_id FROM package_cache") == ["p2"]


def test_removed(cache: PackageCache, clock: Clock) -> None:
    for number in range(4):
        cache.put(f"p{number}", _cached(clock))
    cache.remove(["p0", "p1", "nowhere"])
    assert cache.remove([])
    assert [cache.get(f"p{number}") is None for number in range(4)] == [True, True, False, False]


def test_a_package_goes_with_its_record(cache: PackageCache, catalog: Catalog, clock: Clock) -> None:
    cache.put("p1", _cached(clock))
    with catalog.short_write() as connection:
        connection.execute("DELETE FROM packages WHERE package_id = 'p1'")
    assert cache.get("p1") is None
    cache.put("p1", _cached(clock))
    assert cache.get("p1") is None, "one that was removed while it was built does not come back"


def test_what_is_no_package_is_not_kept(cache: PackageCache, clock: Clock) -> None:
    assert not cache.put("p1", _cached(clock, package=b""))
    assert not cache.put("p1", _cached(clock, package=b"x" * (LARGEST + 1)))
    odd = _cached(clock, 'a "text"\n\0 with ☃', principal="ann@example.org")
    assert cache.put("p1", odd)
    assert cache.get("p1") == odd


def test_a_catalog_that_is_written_costs_a_build_and_no_error(
    cache: PackageCache, catalog: Catalog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put("p1", _cached(clock))
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 0.0)
    catalog.execute("BEGIN IMMEDIATE")
    try:
        assert not cache.put("p2", _cached(clock))
        assert cache.get("p1") == _cached(clock)
        with pytest.raises(BusyError):
            cache.remove(["p1"])
    finally:
        catalog.execute("ROLLBACK")


def test_threads(cache: PackageCache, clock: Clock) -> None:
    wrong: list[object] = []

    def work(seed: int) -> None:
        random = Random(seed)
        for _ in range(15):
            which = random.randrange(4)
            if random.random() < 0.5:
                cache.put(f"p{which}", _cached(clock, f"text {which}"))
            else:
                got = cache.get(f"p{which}")
                if got is not None and got != _cached(clock, f"text {which}"):
                    wrong.append(got)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Redis alone.


def test_texts_stand_in_redis_with_their_time(
    redis_cache: PackageCache, catalog: Catalog, clock: Clock, server: RedisServer
) -> None:
    redis_cache.put("p1", _cached(clock))
    key = f"ctx:{index_id(catalog.paths.root)}:package:p1"
    with server.client() as client:
        assert client.get(key) == _cached(clock).package
        assert 0 < client.pttl(key) <= 60_000
        assert _stored_text(catalog, "p1") == b""
        redis_cache.remove(["p1"])
        assert client.get(key) is None


@pytest.mark.parametrize("value", [b"", b"{}", b"\xff\x00", b"x" * 100_000, "list", "gone", "other"])
def test_a_value_that_is_not_ours_is_none(
    redis_cache: PackageCache, catalog: Catalog, clock: Clock, server: RedisServer, value: bytes | str
) -> None:
    redis_cache.put("p1", _cached(clock))
    redis_cache.put("p2", _cached(clock, "seal"))
    prefix = f"ctx:{index_id(catalog.paths.root)}:package:"
    with server.client() as client:
        if value == "other":
            client.set(f"{prefix}p1", client.get(f"{prefix}p2") or b"")
        else:
            client.delete(f"{prefix}p1")
            if value == "list":
                client.lpush(f"{prefix}p1", b"x")
            elif isinstance(value, bytes):
                client.set(f"{prefix}p1", value)
    assert redis_cache.get("p1") is None
    redis_cache.put("p1", _cached(clock))
    assert redis_cache.get("p1") == _cached(clock)


def test_what_was_removed_while_redis_was_away_never_comes_back(catalog: Catalog, clock: Clock, loopback: None) -> None:
    with closing(RedisServer()) as server:
        server.start()
        cache = PackageCache(lambda: catalog, RedisLink(server.url, pause=0.0), "1" * 32, now=clock)
        cache.put("p1", _cached(clock))
        with server.client() as client:
            kept = client.dump("ctx:" + "1" * 32 + ":package:p1")
        server.kill()
        assert not cache.remove(["p1"]), "it is to be tried again"
        server.start()
        with server.client() as client:
            client.restore("ctx:" + "1" * 32 + ":package:p1", 0, kept)  # as a Redis that keeps its data on disk
            assert cache.get("p1") is None
            assert cache.remove(["p1"])
            assert client.keys() == []


def test_a_full_redis(catalog: Catalog, clock: Clock, loopback: None) -> None:
    with closing(RedisServer()) as server:
        server.start("--maxmemory", "1mb", "--maxmemory-policy", "noeviction")
        cache = PackageCache(lambda: catalog, RedisLink(server.url), "1" * 32, now=clock)
        with server.client() as client:
            client.config_set("maxmemory", 1)
        large = _cached(clock, "x" * 100_000)
        assert cache.put("p1", large)
        assert cache.get("p1") == large
        assert _stored_text(catalog, "p1") == large.package
        with server.client() as client:
            client.config_set("maxmemory", 0)
        assert cache.put("p2", large), "being full is no reason not to ask it again"
        assert _stored_text(catalog, "p2") == b""


@pytest.mark.parametrize("speech", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"$99999999999\r\n", b"\xff" * 64])
def test_another_program_at_its_address(
    catalog: Catalog, clock: Clock, loopback: None, monkeypatch: pytest.MonkeyPatch, speech: bytes | None
) -> None:
    """One that says nothing, or nonsense, is waited for briefly, once."""
    monkeypatch.setattr("research.packages.cache._SECONDS", 0.05)
    with closing(RedisServer()) as place, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place.socket))
        listening.listen()
        asked = _Listener(listening, speech)
        cache = PackageCache(lambda: catalog, RedisLink(place.url, pause=60.0), "1" * 32, now=clock)
        for number in range(5):
            assert cache.put(f"p{number}", _cached(clock))
            assert cache.get(f"p{number}") == _cached(clock)
        assert asked.connections <= 2
        asked.end()


class _Listener(threading.Thread):
    def __init__(self, listening: socket.socket, speech: bytes | None) -> None:
        super().__init__(daemon=True)
        self._listening, self._speech = listening, speech
        self.connections = 0
        self._open: list[socket.socket] = []
        self.start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            if self._speech is not None:
                connection.sendall(self._speech)

    def end(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self.join()
        for each in self._open:
            each.close()


@pytest.mark.slow
def test_redis_killed_in_the_middle_of_five_hundred(catalog: Catalog, clock: Clock, loopback: None) -> None:
    """All are answered, none wrong, with threads beside each other; and it is used again once it is back."""
    wrong: list[object] = []
    answered: list[int] = []
    with closing(RedisServer()) as server:
        server.start()
        cache = PackageCache(lambda: catalog, RedisLink(server.url, pause=0.02), "1" * 32, now=clock)
        moments: dict[int, Callable[[], None]] = {100: server.kill, 250: server.start, 350: server.kill}
        turn = threading.Lock()

        def work(seed: int) -> None:
            random = Random(seed)
            for number in range(125):
                with turn:
                    step = moments.pop(len(answered), None)
                    answered.append(number)
                if step is not None:
                    step()
                which = random.randrange(10)
                wanted = _cached(clock, f"text {which}")
                got = cache.get(f"p{which}")
                if got is None:  # built anew
                    cache.put(f"p{which}", wanted)
                elif got != wanted:
                    wrong.append(got)
                if random.random() < 0.2:
                    with suppress(BusyError):  # on a machine that is busy itself
                        cache.remove([f"p{which}"])

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(answered), wrong, moments) == (500, [], {})


def test_which_one_the_settings_name(catalog: Catalog, clock: Clock, server: RedisServer, loopback: None) -> None:
    plain = cache_for(catalog.paths, lambda: catalog, Settings())
    cache = cache_for(catalog.paths, lambda: catalog, Settings(redis_url=server.url))
    clock.now = datetime.now(UTC)
    assert cache.put("p1", _cached(clock))
    assert cache.get("p1") == _cached(clock)
    assert plain.get("p1") is None, "without Redis its texts are not there, and nothing is wrong"
    assert shown_address("rediss://me:hidden@example.org:6380/0?password=hidden") == "rediss://example.org:6380"
    assert shown_address(server.url) == server.url
    for url in ("http://me:hidden@localhost", "redis://me:hidden@localhost:notaport"):
        with pytest.raises(UsageError) as raised:
            cache_for(catalog.paths, lambda: catalog, Settings(redis_url=url))
        assert "hidden" not in f"{raised.value} {raised.value.hint}"
