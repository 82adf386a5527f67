"""The audit: what is recorded, what is not, and that whatever is done to it afterwards is found."""

from __future__ import annotations

import json
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

from research.errors import BusyError, CtxError, NothingFoundError
from research.governance import check_audit
from research.governance.access import MemoryAccessDecision, Principal, Resource, Ruling
from research.governance.audit import MOST_REFS, Audit
from research.governance.audit_chain import AuditFiles, audit_folder
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
    for file in audit_folder().iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


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
        row = catalog.connection.execute("SELECT * FROM audit").fetchone()
    assert sum(len(str(value)) for value in row) < 1 << 20
    assert audit.verify().ok
    assert audit.record(decision("none", refs=0), "ask").refs == ()


def test_several_threads(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.store.catalog.catalog._SHORT_BUSY_SECONDS", 30.0)  # however busy the machine is
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
    monkeypatch.setattr("research.store.catalog.catalog._SHORT_BUSY_SECONDS", 0.0)  # nobody waits for who has it
    with closing(sqlite3.connect(audit._paths.catalog, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyError):
            audit.record(decision("d2"), "ask")
        other.execute("ROLLBACK")
    AuditFiles(index_id(audit._paths.root)).key_file.chmod(0o644)
    with pytest.raises(CtxError, match="others"):
        audit.record(decision("d2"), "ask")
    assert not audit.verify().ok, "a key that others may have seen proves nothing"
    AuditFiles(index_id(audit._paths.root)).key_file.chmod(0o600)
    assert audit.verify().ok
    assert [each.decision for each in audit.entries()] == ["d1"]


def _lengthened(column: str) -> Callable[[int, int], tuple[str, ...]]:
    return lambda n, m: (f"UPDATE audit SET {column} = {column} || 'x' WHERE seq = {n}",)


# Whatever is done to the rows without the key. `n` and `m` are two different entries, the first before the second.
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
    "a mark forged": lambda n, m: (
        f"DELETE FROM audit WHERE seq < {n}",
        f"UPDATE audit SET kind = 'checkpoint', entry = '{{\"through\": {n}, \"entries\": {n}}}' WHERE seq = {n}",
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
    catalog, head = IndexPaths(kept).catalog, AuditFiles(index_id(kept)).head_file
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


def test_a_chain_rewritten_with_another_key(kept: Path, tmp_path: Path) -> None:
    root = shutil.copytree(kept, tmp_path / "copy")
    files = AuditFiles(index_id(root))
    right, head = files.key_file.read_bytes(), files.head_file.read_bytes()
    files.key_file.unlink()
    files.head_file.unlink()
    _sql(root, "DELETE FROM audit")
    with audited(root) as audit:
        for number in range(COUNT):
            audit.record(decision(f"forged{number}"), "ask")
        assert audit.verify().ok, "with a key of their own"
    files.key_file.write_bytes(right)
    assert _problems(root)[0].startswith("its newest entries cannot be verified: the head was damaged, replaced")
    files.head_file.write_bytes(head)
    assert f"entries 1 to {COUNT}: it was changed" in _problems(root)[0]


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"seq": 99999999999999999999, "hash": "x", "signature": "y"}', b"\xff"]
)
def test_a_replaced_head(tmp_path: Path, content: bytes) -> None:
    root = tmp_path / "index"
    with audited(root) as audit:
        audit.record(decision("d1"), "ask")
        file = AuditFiles(index_id(root)).head_file
        file.write_bytes(content)
        assert "the head was damaged" in _problems(root)[0]
        assert audit.record(decision("d2"), "ask").seq == 3, "numbers of a false head are not believed"
        assert "entry 2: here the chain was begun anew" in _problems(root)[0]
        file.unlink()
        assert "no head was kept" in _problems(root)[0]


def test_an_older_head_signed_by_us_is_behind_and_fits(tmp_path: Path) -> None:
    """As a kill between catalog and head leaves it. The head only goes forward."""
    root = tmp_path / "index"
    with audited(root) as audit:
        audit.record(decision("d1"), "ask")
        files = AuditFiles(index_id(root))
        older = files.head_file.read_bytes()
        audit.record(decision("d2"), "ask")
        files.head_file.write_bytes(older)
        assert audit.verify().ok
        assert audit.record(decision("d3"), "ask").seq == 3
        assert audit.verify().head == 3


def test_a_lost_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "index"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))  # for the key is that of all indexes
    with audited(root) as audit:
        audit.record(decision("d1"), "ask")
        key = AuditFiles(index_id(root)).key_file
        kept_key = key.read_bytes()
        key.unlink()
        assert _problems(root) == [f"the audit cannot be verified: its key {key} is missing"]
        audit.record(decision("d2"), "ask")
        assert [problem.partition(",")[0] for problem in _problems(root)] == [
            "entry 1: it was changed",
            "entry 2: here the chain was begun anew",
        ]
        assert key.read_bytes() != kept_key
        key.write_text("no key")
        with pytest.raises(CtxError, match="holds no key"):
            audit.record(decision("d3"), "ask")


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
        [known] = audit.verify().accepted
        assert "entries 4 to 4 are not there" in known.what
    _sql(root, "DELETE FROM audit WHERE seq = 3")
    assert _problems(root), "more than was accepted"
    restore(IndexPaths(tmp_path / "elsewhere"), file)
    assert any("copied or restored here" in problem for problem in _problems(tmp_path / "elsewhere"))
    with audited(tmp_path / "elsewhere") as audit:
        assert audit.accept(OWNER).ok
        assert audit.record(decision("here"), "ask").seq == 6
        assert audit.verify().ok
    _sql(tmp_path / "elsewhere", "UPDATE audit SET principal = 'bob' WHERE seq = 2")
    assert _problems(tmp_path / "elsewhere"), "accepted as they were, not as they become"


def test_old_entries_leave_a_checkpoint(tmp_path: Path) -> None:
    root, clock = tmp_path / "index", Clock()
    with audited(root, clock, days=10) as audit:
        for day in range(15):
            audit.record(decision(f"d{day}"), "ask")
            clock.now += timedelta(days=1)
        found = audit.verify()
        assert (found.ok, found.removed, found.first, found.last, found.head) == (True, 4, 4, 15, 15)
        clock.now += timedelta(days=8)
        audit.record(decision("later"), "ask")
        found = audit.verify()
        assert (found.ok, found.removed, found.entries) == (True, 13, 4)
        mark = audit.entries()[-1]
        assert (mark.kind, mark.denied, json.loads(mark.note)["entries"]) == ("checkpoint", 13, 13)
        assert audit.verify(newest=2).ok
        clock.now += timedelta(days=100)
        audit.record(decision("much later"), "ask")
        assert [each.kind for each in audit.entries()] == ["access", "checkpoint"]
        assert audit.verify().removed == 16
    _sql(root, "UPDATE audit SET entry = replace(entry, '\"entries\":16', '\"entries\":17')")
    assert _problems(root)[0].startswith("entry 16: it is no checkpoint of this chain")


def test_a_checkpoint_covers_nothing_up(tmp_path: Path) -> None:
    root, clock = tmp_path / "index", Clock()
    with audited(root, clock, days=10) as audit:
        for number in range(4):
            audit.record(decision(f"d{number}"), "ask")
        _sql(root, "DELETE FROM audit WHERE seq = 2")
        clock.now += timedelta(days=30)
        audit.record(decision("later"), "ask")
    assert _problems(root) == ["entry 4: 1 problems were known in what was removed before it"]


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
