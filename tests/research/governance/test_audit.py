"""The audit: what is recorded, what is not, and that whatever is done to it afterwards is found."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from research.errors import BusyError, NothingFoundError
from research.governance import check_audit
from research.governance.access import MemoryAccessDecision, Principal, Resource, Ruling
from research.governance.audit import MOST_REFS, Audit, _End, _genesis, _hash_of, _Head, _write_head, head_file
from research.index import Index
from research.store import Catalog, IndexPaths, backup, index_id, restore
from tests.pace import draws
from tests.research.governance.audit_killing import kill_recorders
from tests.research.governance.audit_making import Clock, audited, decision

OWNER = Principal("me", owner=True)
COUNT = 12
COLUMNS = "seq, at, kind, tenant, principal, decision, denied, hash, entry"


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[Audit]:
    with audited(tmp_path / "index") as made:
        yield made


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with some entries. Tests change a copy of its catalog in place, under the same marker and head."""
    root = tmp_path_factory.mktemp("kept") / "index"
    with audited(root) as audit:
        for number in range(COUNT):
            audit.record(decision(f"d{number}", refs=number % 4), "ask", trace_id=f"t{number}")
        assert audit.verify().ok
    _sql(root, "PRAGMA wal_checkpoint(TRUNCATE)")
    return root


def _sql(audit_or_root: Path, *statements: str) -> None:
    with closing(sqlite3.connect(IndexPaths(audit_or_root).catalog, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement)


def _problems(root: Path) -> list[str]:
    with audited(root) as audit:
        found = audit.verify()
        assert found.ok is not bool(found.problems)
        return [str(problem) for problem in found.problems]


def test_an_entry_tells_who_saw_what_and_no_more(audit: Audit, tmp_path: Path) -> None:
    made = audit.record(decision("d1", refs=4), "search", trace_id="abc")
    assert (made.seq, made.principal, made.tenant, made.owner, made.purpose) == (1, "ann", "lab", False, "search")
    assert (made.allowed, made.redacted, made.denied, made.action, made.policy) == (2, 1, 1, "read", "r1")
    assert made.refs == (("page:0", "allow"), ("page:1", "redact"), ("page:2", "deny"), ("page:3", "allow"))
    assert (made.policies, made.trace_id, made.decision, made.kind) == (("rule",), "abc", "d1", "access")
    assert audit.entry("1") == audit.entry("d1") == made
    audit.record(decision("d2", principal=Principal("ann", "other"), refs=1), "ask")
    audit.record(decision("d3", problem="the policy does not parse"), "ask")
    assert [each.decision for each in audit.entries()] == ["d3", "d2", "d1"]
    assert [each.decision for each in audit.entries(principal="ann", tenant="lab")] == ["d3", "d1"]
    assert [each.decision for each in audit.entries(denied=True, limit=1)] == ["d3"]
    assert audit.entries(since="2100-01-01") == audit.entries(principal="bob") == []
    with pytest.raises(NothingFoundError):
        audit.entry("d9")
    assert b"/secret/path" not in IndexPaths(tmp_path / "index").catalog.read_bytes()
    assert stat.S_IMODE(head_file(index_id(tmp_path / "index")).stat().st_mode) == 0o600


def test_an_entry_is_bounded_whatever_is_asked(audit: Audit) -> None:
    rulings = tuple(Ruling(Resource(f"code:{'x' * number}\ud800#f", "code"), "deny") for number in range(0, 30_000, 10))
    long = MemoryAccessDecision(
        "d\n1", Principal("a" * 900 + "\x1b"), "read", rulings, problem="p" * 9999, policies=("q" * 999,) * 999
    )
    made = audit.record(long, "ask\n" * 999, trace_id="\ud800")
    assert made.denied == len(rulings) == len(made.refs) + made.more_refs
    assert len(made.refs) <= MOST_REFS
    assert made.refs[-1][0].startswith("sha256:")
    assert "\n" not in made.decision + made.purpose
    with Catalog(audit._paths) as catalog:
        row = catalog.execute("SELECT * FROM audit").fetchone()
    assert sum(len(str(value)) for value in row) < 1 << 20
    assert audit.verify().ok
    assert audit.record(decision("none", refs=0), "ask").refs == ()


def test_several_threads(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 30.0)  # however busy the machine is
    audit.record(decision("a"), "ask")
    threads = [
        threading.Thread(target=lambda n=n: [audit.record(decision(f"{n}-{k}"), "ask") for k in range(5)])
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.seq for each in audit.entries()] == list(range(21, 0, -1))
    assert audit.verify().ok


def test_what_cannot_be_recorded_raises(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    audit.record(decision("d1"), "ask")
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 0.0)  # nobody waits for who has it
    with closing(sqlite3.connect(audit._paths.catalog, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyError):
            audit.record(decision("d2"), "ask")
        other.execute("ROLLBACK")
    assert audit.verify().ok, "what was never written is not missing"
    assert [each.decision for each in audit.entries()] == ["d1"]


def _lengthened(column: str) -> Callable[[int, int], tuple[str, ...]]:
    return lambda n, m: (f"UPDATE audit SET {column} = {column} || 'x' WHERE seq = {n}",)


def _hashed_anew(root: Path) -> None:
    """As a forger would, who knows how entries are hashed."""
    with audited(root) as audit, audit._catalog().short_write() as connection:
        last = _End(0, _genesis(index_id(root)))
        for row in list(connection.audit.between()):
            last = _End(row.seq, _hash_of(row, last.hash))
            connection.execute("UPDATE audit SET hash = ? WHERE seq = ?", (last.hash, last.seq))


# Whatever is done to the rows without the head. `n` and `m` are two different entries, the first before the second.
CHANGES: dict[str, Callable[[int, int], tuple[str, ...]]] = {
    "removed": lambda n, m: (f"DELETE FROM audit WHERE seq = {n}",),
    "some removed": lambda n, m: (f"DELETE FROM audit WHERE seq BETWEEN {n} AND {m}",),
    "the beginning cut": lambda n, m: (f"DELETE FROM audit WHERE seq <= {n}",),
    "the end cut": lambda n, m: (f"DELETE FROM audit WHERE seq >= {n}",),
    "all removed": lambda n, m: ("DELETE FROM audit",),
    "the end cut and renumbered": lambda n, m: (
        f"DELETE FROM audit WHERE seq = {n}",
        *(f"UPDATE audit SET seq = {k - 1} WHERE seq = {k}" for k in range(n + 1, COUNT + 1)),
    ),
    "changed places": lambda n, m: (
        "UPDATE audit SET seq = -1 WHERE seq = " + str(n),
        f"UPDATE audit SET seq = {n} WHERE seq = {m}",
        f"UPDATE audit SET seq = {m} WHERE seq = -1",
    ),
    "told twice": lambda n, m: (
        f"INSERT INTO audit SELECT {COUNT + 1}, {COLUMNS.removeprefix('seq, ')} FROM audit WHERE seq = {n}",
    ),
    "one for another": lambda n, m: (
        f"UPDATE audit SET entry = (SELECT entry FROM audit a WHERE a.seq = {m}) || ' ' WHERE seq = {n}",
    ),
    "called accepted": lambda n, m: (
        f"DELETE FROM audit WHERE seq < {n}",
        f"UPDATE audit SET kind = 'accepted' WHERE seq = {n}",
    ),
    "called a restart": lambda n, m: (
        f"DELETE FROM audit WHERE seq < {n}",
        f"UPDATE audit SET kind = 'restart' WHERE seq = {n}",
    ),
    "no number": lambda n, m: (
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, 'denied INTEGER', 'denied ANY') WHERE name = 'audit'",
        "PRAGMA writable_schema = RESET",
        f"UPDATE audit SET denied = x'00' WHERE seq = {n}",
    ),
    "no text": lambda n, m: (f"UPDATE audit SET entry = CAST(x'ff' AS TEXT) WHERE seq = {n}",),
    **{f"another {column}": _lengthened(column) for column in COLUMNS.split(", ") if column not in ("seq", "denied")},
    "fewer denied": lambda n, m: (f"UPDATE audit SET denied = denied + 1 WHERE seq = {n}",),
}


@draws(120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(CHANGES)), st.integers(1, COUNT), st.integers(1, COUNT), st.booleans())
def test_any_change_is_found_and_stays_found(kept: Path, change: str, n: int, m: int, then: bool) -> None:
    if n == m:
        m = n % COUNT + 1
    catalog, head = IndexPaths(kept).catalog, head_file(index_id(kept))
    before = (catalog.read_bytes(), head.read_bytes())
    try:
        _sql(kept, *CHANGES[change](min(n, m), max(n, m)), "PRAGMA wal_checkpoint(TRUNCATE)")
        assert _problems(kept)
        if then and change != "no text":  # a row that cannot be read stops whoever would write after it
            with audited(kept) as audit:
                audit.record(decision("later"), "ask")
            assert _problems(kept), "the next entry does not cover it up"
    finally:
        for ending in ("-wal", "-shm"):
            catalog.with_name(catalog.name + ending).unlink(missing_ok=True)
        catalog.write_bytes(before[0])
        head.write_bytes(before[1])
    assert not _problems(kept)


def test_findings_name_the_entry(kept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(kept, tmp_path / "copy")  # with its marker, so with the same head
    _sql(root, "UPDATE audit SET principal = 'bob' WHERE seq = 5")
    assert _problems(root) == ["entry 5: it was changed, or does not follow the one before it"]
    _sql(root, "DELETE FROM audit WHERE seq > 9")
    assert _problems(root)[1].startswith("entries 10 to 12: missing: the end of the audit was cut off, or an older")


def test_a_chain_hashed_anew_does_not_end_as_the_head_has_it(kept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(kept, tmp_path / "copy")
    file = head_file(index_id(root))
    before = file.read_bytes()
    _sql(root, "UPDATE audit SET principal = 'bob' WHERE seq = 5")
    _hashed_anew(root)
    assert _problems(root) == [
        f"entry {COUNT}: it is not the one that the head knows: the chain was rewritten or added to"
    ]
    with audited(root) as audit:
        audit.record(decision("later"), "ask")
        assert "the newest entries were not those" in str(audit.verify().problems[0]), (
            "the next entry does not cover it up"
        )
    _sql(root, f"DELETE FROM audit WHERE seq = {COUNT + 1}")
    _hashed_anew(root)
    assert _problems(root), "nor does it help to take out the mark"
    file.write_bytes(before)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"begin": 1, "before": [1, "x"], "last": [1e999, "x"]}', b"\xff", None]
)
def test_a_lost_head(tmp_path: Path, content: bytes | None) -> None:
    root = tmp_path / "index"
    with audited(root) as audit:
        audit.record(decision("d1"), "ask")
        file = head_file(index_id(root))
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        [problem] = _problems(root)
        assert "its newest entries cannot be verified: their head is missing or damaged" in problem
        assert audit.record(decision("d2"), "ask").seq == 3
        assert _problems(root)[0].startswith("entry 2: here the record went on, because their head is missing")
        assert audit.accept(OWNER).ok


def test_a_death_between_head_and_catalog(tmp_path: Path) -> None:
    """What was acknowledged to nobody may be there or not; what was, may not go."""
    root = tmp_path / "index"
    with audited(root) as audit:
        audit.record(decision("d1"), "ask")
        with (
            pytest.raises(ZeroDivisionError),
            audit._alone() as (file, _),
            audit._catalog().short_write() as connection,
        ):
            before = _End(1, audit.entry("1").hash)
            _write_head(file, _Head(_End(0, _genesis(index_id(root))), before, _End(2, "0" * 64)))
            connection.execute("DELETE FROM meta")
            raise ZeroDivisionError
        assert audit.verify().ok
        assert audit.record(decision("d2"), "ask").seq == 2
        assert audit.verify().ok
    _sql(root, "DELETE FROM audit WHERE seq = 2")
    assert _problems(root)


def test_a_restored_backup(tmp_path: Path) -> None:
    root, file = tmp_path / "index", tmp_path / "backup.zip"
    with audited(root) as audit:
        for number in range(3):
            audit.record(decision(f"d{number}"), "ask")
    backup(IndexPaths(root), file)
    with audited(root) as audit:
        audit.record(decision("after"), "ask")
    restore(IndexPaths(root), file, force=True)
    assert _problems(root) == [
        "entry 4: missing: the end of the audit was cut off, or an older backup of the index was brought back"
    ]
    with audited(root) as audit:
        assert audit.record(decision("next"), "ask").seq == 6, "no number is given twice"
        assert len(audit.verify().problems) == 1
        assert audit.accept(OWNER).ok
        assert [each.kind for each in audit.entries(limit=3)] == ["accepted", "access", "restart"]
        assert audit.entries(limit=1)[0].principal == "me"
        audit.record(decision("then"), "ask")
        assert audit.verify().ok
    _sql(root, "UPDATE audit SET principal = 'bob' WHERE seq = 8")
    assert _problems(root), "what comes after is held as before"
    restore(IndexPaths(tmp_path / "elsewhere"), file)
    assert any("copied or restored here" in problem for problem in _problems(tmp_path / "elsewhere"))
    with audited(tmp_path / "elsewhere") as audit:
        assert audit.accept(OWNER).ok
        assert audit.record(decision("here"), "ask").seq == 5
        assert audit.verify().ok


def test_old_entries_are_removed_and_the_rest_holds(tmp_path: Path) -> None:
    root, clock = tmp_path / "index", Clock()
    with audited(root, clock, days=10) as audit:
        for day in range(15):
            audit.record(decision(f"d{day}"), "ask")
            clock.now += timedelta(days=1)
        found = audit.verify()
        assert (found.ok, found.entries, found.first, found.last, found.head) == (True, 11, 5, 15, 15)
        assert audit.verify(newest=2).entries == 2
        clock.now += timedelta(days=100)
        audit.record(decision("much later"), "ask")
        assert (audit.verify().ok, [each.seq for each in audit.entries()]) == (True, [16])
        audit.record(decision("then"), "ask")
    _sql(root, "DELETE FROM audit WHERE seq = 16")
    assert _problems(root) == ["entry 17: what stood before it is missing, from 16 on"]


def test_what_does_not_hold_is_not_removed(tmp_path: Path) -> None:
    root, clock = tmp_path / "index", Clock()
    with audited(root, clock, days=10) as audit:
        for number in range(4):
            audit.record(decision(f"d{number}"), "ask")
        _sql(root, "DELETE FROM audit WHERE seq = 2")
        clock.now += timedelta(days=30)
        audit.record(decision("later"), "ask")
        assert _problems(root) == ["entry 3: what stood before it is missing, from 2 on"]
        assert audit.accept(OWNER).ok
        audit.record(decision("and then"), "ask")
        assert [each.seq for each in audit.entries()] == [7, 6, 5]


def test_the_doctor_looks_at_the_newest(tmp_path: Path) -> None:
    root = tmp_path / "index"
    with audited(root) as audit:
        with Index(root) as index:
            assert check_audit(index.policy.audit) == []
        audit.record(decision("d1"), "ask")
    with Index(root) as index:
        [check] = check_audit(index.policy.audit)
        assert check.severity == "ok"
        _sql(root, "DELETE FROM audit")
        [check] = check_audit(index.policy.audit)
        assert (check.severity, check.remedy) == ("error", "ctx audit verify")


@pytest.mark.slow
def test_killed_recorders_lose_nothing(tmp_path: Path) -> None:
    """Two processes at once, of which each is killed four times; tests/soak does it fifty times."""
    root = tmp_path / "index"
    acknowledged, found = kill_recorders(root, 8, Random(1))
    assert found.ok, found.problems
    with audited(root) as audit:
        there = {each.seq: each.decision for each in audit.entries(limit=1_000_000)}
    assert acknowledged.items() <= there.items()
    assert len(acknowledged) >= 8
