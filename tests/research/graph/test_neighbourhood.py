"""A neighbourhood is what a plain walk finds, whatever the graph is like; and it is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from graph_making import Graph
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from research.errors import UsageError
from research.graph.neighbourhood import find_neighbourhood
from research.store import CALLS, CONTAINS, EDGE_KINDS, REFERS, TOLD_IN, NewNode
from tests.pace import draws

NODES = [f"file:{number}" for number in range(12)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    made = Graph(tmp_path_factory.mktemp("graph") / "index")
    yield made
    made.catalog.close()


def _write(graph: Graph, edges: Sequence[tuple[int, int, int]]) -> None:
    with graph.catalog.transaction() as connection:
        connection.graph.drop()
        numbers = connection.graph.put_nodes([NewNode(ref) for ref in NODES])
        connection.graph.put_edges([(numbers[NODES[a]], kind, numbers[NODES[b]]) for a, kind, b in edges])


def _walked(edges: Sequence[tuple[int, int, int]], seeds: set[int], hops: int, kinds: set[int]) -> dict[str, int]:
    """A plain breadth-first walk, in both directions."""
    known = dict.fromkeys(seeds, 0)
    for hop in range(1, hops + 1):
        edge_ends = [(a, b) for a, kind, b in edges if kind in kinds]
        reached = {b for a, b in edge_ends if a in known} | {a for a, b in edge_ends if b in known}
        known.update((node, hop) for node in reached if node not in known)
    return {NODES[node]: hop for node, hop in known.items()}


@draws(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edges=st.lists(
        st.tuples(st.integers(0, 11), st.sampled_from([REFERS, CALLS, CONTAINS]), st.integers(0, 11)), max_size=40
    ),
    seeds=st.sets(st.integers(0, 11), min_size=1, max_size=3),
    hops=st.integers(1, 3),
    kinds=st.sets(st.sampled_from(["refers", "calls", "contains"]), min_size=1),
)
def test_it_is_what_a_walk_finds(
    shared: Graph, edges: list[tuple[int, int, int]], seeds: set[int], hops: int, kinds: set[str]
) -> None:
    proper = [edge for edge in dict.fromkeys(edges) if edge[0] != edge[2]]
    _write(shared, proper)
    ends = {end for a, _, b in proper for end in (a, b)}
    known = {seed for seed in seeds if seed in ends}  # what stands for itself is there as long as it has an edge
    with shared.catalog.snapshot() as reader:
        found = find_neighbourhood(reader, [NODES[seed] for seed in sorted(seeds)], hops=hops, kinds=sorted(kinds))
    expected = _walked(proper, known, hops, {EDGE_KINDS[kind] for kind in kinds})
    assert {node.ref: node.hop for node in found.nodes} == expected
    assert set(found.unknown) == {NODES[seed] for seed in seeds - known}
    assert {(edge.source, edge.kind, edge.target) for edge in found.edges} == {
        (NODES[a], kind, NODES[b])
        for a, number, b in proper
        for kind in kinds
        if EDGE_KINDS[kind] == number and min(expected.get(NODES[a], 9), expected.get(NODES[b], 9)) < hops
    }
    assert not found.cut
    assert all(0 < node.proximity <= 1 and (node.proximity == 1) == (node.hop == 0) for node in found.nodes)
    assert found.nodes == sorted(found.nodes, key=lambda node: -node.proximity)


def test_a_hub_and_a_circle_are_bounded(shared: Graph) -> None:
    with shared.catalog.transaction() as connection:
        connection.graph.drop()
        numbers = connection.graph.put_nodes([NewNode(f"file:{number}") for number in range(5000)])
        hub = numbers["file:0"]
        edges = [(hub, CONTAINS, other) for other in numbers.values()]
        edges += [(one, CALLS, hub) for one in numbers.values()]
        edges += [(hub, REFERS, numbers["file:4999"])]
        connection.graph.put_edges(edges)
    with shared.catalog.snapshot() as reader:
        for hops in (1, 2, 3):
            found = find_neighbourhood(reader, ["file:0"], hops=hops, limit=50)
            assert 10 < len(found.nodes) <= 50
            assert found.cut
            assert found.nodes[0].ref == "file:0"
            assert "file:4999" in found.proximity(), "what is worth most comes first, however many there are"
        all_of_them = find_neighbourhood(reader, [f"file:{number}" for number in range(5000)], hops=3, limit=50)
        assert len(all_of_them.nodes) <= 50
        assert all_of_them.cut


def test_memories_of_others_are_not_near(graph: Graph) -> None:
    graph.tell("anna", "first", session="thesis")
    graph.tell("anna", "second", session="thesis")
    graph.tell("anna", "over", session="thesis", expires="2026-01-02T00:00:00+00:00")
    graph.tell("ben", "third", session="thesis")
    graph.tell("", "own", session="thesis")
    for tenant, refs in {
        "anna": {"memory:first", "memory:second"},
        "ben": {"memory:third"},
        "": {"memory:own"},
    }.items():
        found = graph.near("session:thesis", hops=3, tenant=tenant)
        assert {node.ref for node in found.nodes} == {"session:thesis", *refs}
    assert graph.near("memory:first", tenant="ben").unknown == ["memory:first"]
    # Even if an edge led to another's: it is not walked.
    with graph.catalog.transaction() as connection:
        rows = connection.execute("SELECT ref, node_no FROM nodes WHERE ref IN ('memory:first', 'memory:third')")
        numbers = {str(row[0]): int(row[1]) for row in rows}
        connection.graph.put_edges([(numbers["memory:first"], TOLD_IN, numbers["memory:third"])])
    assert "memory:third" not in {node.ref for node in graph.near("memory:first", hops=3, tenant="anna").nodes}


@pytest.mark.parametrize("given_wrong", [{"hops": 0}, {"hops": 4}, {"limit": 0}, {"kinds": ["loves"]}, {"kinds": []}])
def test_what_is_refused(graph: Graph, given_wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        graph.near("document:none", **given_wrong)


def test_an_index_that_may_only_be_read_answers(graph: Graph, tmp_path: Path) -> None:
    from research.index import Index

    doc = graph.add("a.pdf", ["see page 2", "here"])
    index = Index(graph.catalog.paths.root)
    with graph.catalog.transaction():  # somebody writes for long
        found = index.graph.near(f"document:{doc}")
    assert (found.complete, found.unknown) == (False, [f"document:{doc}"])
    assert index.graph.near(f"document:{doc}").complete
    index.close()
