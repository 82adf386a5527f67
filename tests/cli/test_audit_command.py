"""ctx audit: lists, shows and verifies what was recorded, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from research.store import Catalog, IndexPaths
from tests.cli.test_schemas import validate
from tests.in_process import Ran
from tests.research.governance.audit_making import audited, decision

Call = Callable[..., Ran]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    root = tmp_path / "index"
    with audited(root) as audit:
        audit.record(decision("first"), "ask", trace_id="abc")
        audit.record(decision("second\x1b[31m", refs=1), "search", trace_id="def")
        audit.record(decision("third", refs=1200, problem="the policy does not parse"), "package")
    return root


def test_it_lists_and_shows(call: Call, recorded: Path) -> None:
    at = ("--index", str(recorded))
    ran = call("audit", *at)
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert [line[0] for line in lines] == ["3", "2", "1"]
    assert lines[2][2:] == ["ann", "lab", "ask", "1", "1", "1"]
    assert call("audit", "list", "--denied", "--since", "1d", "--limit", "1", *at).out.startswith("3\t")
    none = call("audit", "list", "--principal", "bob", *at)
    assert (none.code, none.out) == (0, "")
    assert "nothing is recorded that fits" in none.err
    shown = call("audit", "show", "third", *at).out
    assert "problem\tthe policy does not parse" in shown
    assert "deny\tpage:2" in shown
    assert shown.endswith("more\t200\n")
    assert "\x1b" not in ran.out + call("audit", "show", "2", *at).out
    for args in (("list",), ("list", "--since", "2026-01-01"), ("show", "1"), ("verify",)):
        document = call("audit", *args, *at, "--json").document
        validate(document)


def test_it_verifies_and_accepts(call: Call, recorded: Path) -> None:
    at = ("--index", str(recorded))
    ran = call("audit", "verify", *at)
    assert (ran.code, ran.out) == (0, "ok\t3 entries, to number 3\n")
    with Catalog(IndexPaths(recorded)) as catalog, catalog.short_write() as connection:
        connection.execute("UPDATE audit SET principal = 'bob' WHERE seq = 2")
    ran = call("audit", "verify", *at)
    assert (ran.code, ran.out) == (1, "broken\tentry 2: it was changed, or does not follow the one before it\n")
    assert "ctx audit accept" in ran.err
    ran = call("audit", "verify", *at, "--json")
    validate(ran.document)
    assert (ran.code, ran.document["verification"]["problems"][0]["first"]) == (1, 2)
    assert call("audit", "accept", *at).code == 0
    ran = call("audit", "verify", *at)
    assert (ran.code, ran.out) == (0, "ok\t1 entries, to number 4\n")


@pytest.mark.parametrize(
    "args", [("show",), ("verify", "3"), ("list", "--since", "yesterday"), ("list", "--limit", "0"), ("nonsense",)]
)
def test_wrong_usage(call: Call, recorded: Path, args: tuple[str, ...]) -> None:
    assert call("audit", *args, "--index", str(recorded)).code == 2


def test_nothing_there(call: Call, tmp_path: Path, recorded: Path) -> None:
    assert call("audit", "verify", "--index", str(tmp_path / "none")).code == 0
    assert call("audit", "show", "99", "--index", str(recorded)).code == 3
