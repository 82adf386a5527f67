"""Rooms have doors and budgets: who may import what from where, and how large a room may be."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("cli", "ingest", "research")
ROOMS = sorted(f"research.{each.parent.name}" for each in (ROOT / "research").glob("*/__init__.py"))
# The roof: what is the library's own door, and the contract of seed 004, which stands on all rooms.
ROOF = ("research", "research.contract")
# Lines of Python that a room may have; it may pass them by a tenth. A room that grows gives the lines back elsewhere,
# and one that shrinks lowers its budget: all rooms together are to come to 52,000.
BUDGETS = {
    "cli": 7_550,
    "ingest": 8_350,
    "research.answer": 3_450,
    "research.context": 3_200,
    "research.conversation": 3_400,
    "research.encoders": 2_410,
    "research.evaluation": 550,
    "research.experiences": 1_250,
    "research.governance": 3_700,
    "research.graph": 1_200,
    "research.index": 2_200,
    "research.llm": 1_400,
    "research.observe": 620,
    "research.packages": 1_900,
    "research.search": 5_300,
    "research.service": 5_350,
    "research.sources": 1_700,
    "research.store": 10_350,
    "root": 4_700,
}
PATHS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
}


def room_of(module: str) -> str:
    """The room that a module stands in: a package, a folder of `research`, its roof, or its other modules together."""
    if not module.startswith("research"):
        return module.split(".", maxsplit=1)[0]
    if module in ROOF:
        return "roof"
    room = ".".join(module.split(".")[:2])
    return room if room in ROOMS else "root"


@cache
def imports_of(module: str) -> list[tuple[str, str, bool]]:
    """What a module imports of ours: from where, which name, and whether for its types alone."""
    tree = ast.parse(PATHS[module].read_text(encoding="utf-8"))
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for each in block.body
        for node in ast.walk(each)
    }
    return [
        (node.module or "", alias.name, id(node) in for_types)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES
        for alias in node.names
    ]


@pytest.mark.parametrize("room", [*ROOMS, "cli", "ingest", "root", "roof"])
def test_a_room_is_entered_by_its_door(room: str) -> None:
    for module in PATHS:
        if room_of(module) != room:
            continue
        for source, name, _ in imports_of(module):
            other = room_of(f"{source}.{name}" if f"{source}.{name}" in PATHS else source)
            if other in (room, "root") or (source, name) == ("research", "__version__"):
                continue
            assert source == other or (other == "roof" and source in ROOF), f"{module} imports {name} from {source}"


@pytest.mark.parametrize("room", [*ROOMS, "ingest"])
def test_a_door_gives_what_it_names(room: str) -> None:
    door = import_module(room)
    named = {name for _, name, for_types in imports_of(room) if for_types}
    modules = {name for name in door.__all__ if f"{room}.{name}" in PATHS}
    assert named | modules == set(door.__all__)
    for name in door.__all__:
        assert getattr(door, name) is not None
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = door.Nonsense


def test_no_room_imports_one_that_imports_it() -> None:
    graph: dict[str, set[str]] = {}
    for module in PATHS:
        room = _floor(room_of(module))
        for source, name, for_types in imports_of(module):
            other = _floor(room_of(f"{source}.{name}" if f"{source}.{name}" in PATHS else source))
            if "roof" not in (room, other) and other != room and not for_types:
                graph.setdefault(room, set()).add(other)
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert order[0] == "root"
    assert order.index("cli") > order.index("ingest") > order.index("research.store")
    assert not [room for room, others in graph.items() if "cli" in others]


def _floor(room: str) -> str:
    """The root's modules and the log of what happens are one: everybody needs both."""
    return "root" if room == "research.observe" else room


def test_a_room_keeps_its_budget() -> None:
    lines = dict.fromkeys(BUDGETS, 0)
    for module, path in PATHS.items():
        room = room_of(module)
        lines["root" if room == "roof" else room] += len(path.read_text(encoding="utf-8").splitlines())
    assert {room: count for room, count in lines.items() if count > 1.1 * BUDGETS[room]} == {}
