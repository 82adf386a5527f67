"""Packages as a caller gets them: what is in them and why, within the budget, traceable."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from research.errors import NothingFoundError, PackageRequestError
from research.governance import Principal
from research.index import Index
from research.memories import NewMemory
from research.packages.request import ContextPackage, published
from research.sources import DocumentsSource
from tests.pace import draws

ASKED = "why do uploads stop and are parts sent again"
EVA = Principal("eva", "eva")


def asked(**more: Any) -> dict[str, Any]:
    return {"intent": ASKED, **more}


def kinds(package: ContextPackage) -> set[str]:
    return {source.kind for source in package.sources}


def manual(index: Index) -> str:
    return next(each.doc_id for each in index.documents.list() if each.filename == "manual.pdf")


def test_a_package_has_everything_of_every_kind_and_is_as_its_schema_says(index: Index) -> None:
    package = index.packages.build(asked(taskId="t-1", traceId="0af7651916cd43dd8448eb211c80319c", id="r-1"))
    Draft202012Validator(published("package")).validate(json.loads(package.model_dump_json(by_alias=True)))
    assert kinds(package) >= {"page", "memory", "code", "commit", "experience"}
    assert (package.task_id, package.context_build_request_id) == ("t-1", "r-1")
    assert package.trace_id == "0af7651916cd43dd8448eb211c80319c"
    assert package.policy_decision_id
    assert package.graph_projection_id
    for number, source in enumerate(package.sources, start=1):
        assert source.citation == number
        assert f" {number}: " in package.content
        assert source.link
        assert source.classification == "Internal"
        assert 0 < source.score <= 1
        assert source.parts.quality > 0
    scores = [source.score for source in package.sources]
    assert scores == sorted(scores, reverse=True)
    assert sum(source.tokens for source in package.sources) == package.tokens_used
    assert not package.coverage.reduced


@draws(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(budget=st.integers(1, 1500), pins=st.booleans(), limit=st.integers(1, 20))
def test_the_budget_is_hard_and_exact(index: Index, budget: int, pins: bool, limit: int) -> None:
    pinned = [f"page:{manual(index)}#1"] if pins else []
    package = index.packages.build(
        asked(tokenBudget=budget, pinned=pinned, retrieval={"limits": {"sources": limit}, "sources": ["vector"]})
    )
    assert package.tokens_used == index.counter.count(package.content) <= budget
    assert sum(source.tokens for source in package.sources) == package.tokens_used
    assert len(package.sources) <= max(limit, len(pinned))
    assert bool(package.sources) == bool(package.content)


def test_too_small_for_anything_is_an_empty_valid_package_that_says_so(index: Index) -> None:
    package = index.packages.build(asked(tokenBudget=3))
    assert (package.sources, package.content, package.tokens_used) == ([], "", 0)
    assert package.excluded.budget > 0
    assert package.coverage.notes == ["nothing that was found fits into 3 tokens"]


def test_what_is_too_large_comes_as_passages_then_as_a_summary_with_its_whole_named(index: Index) -> None:
    long = " ".join(f"Sentence {number} is about trees and their leaves." for number in range(190))
    index.memories.remember(f"{long} An upload stops when its part is sent again too late. {long}", id="long")
    found = {}
    for budget in (12_000, 2_000, 130):
        package = index.packages.build(asked(tokenBudget=budget, pinned=["memory:long"]))
        found[budget] = next(each for each in package.sources if each.ref == "memory:long").projection
        assert "part is sent again too late" in package.content
        if found[budget] == "summary":
            assert "the whole is memory:long" in package.content
    assert found == {12_000: "full", 2_000: "passages", 130: "summary"}


def test_pinned_refs_are_in_or_it_says_why_not(index: Index) -> None:
    page = f"page:{manual(index)}#2"
    pinned = [page, "memory:none", "code:/no/such.py#x", "page:nothing#1", "session:a", f"document:{manual(index)}"]
    package = index.packages.build(asked(pinned=pinned, retrieval={"limits": {"sources": 1}}))
    pinned_there = [source.ref for source in package.sources if source.pinned]
    assert pinned_there[0] == page
    assert all(ref.startswith(f"page:{manual(index)}#") for ref in pinned_there)
    out = {each.ref: each.reason for each in package.pinned_out}
    assert out == dict.fromkeys(["memory:none", "code:/no/such.py#x", "page:nothing#1", "session:a"], "unknown")
    small = index.packages.build(asked(pinned=[page], tokenBudget=5))
    assert [(each.ref, each.reason) for each in small.pinned_out] == [(page, "budget")]


def test_refs_that_forge_others_find_nothing(index: Index) -> None:
    [eva] = index.memories.list(tenant="eva")
    document = manual(index)
    forged = [
        f"memory:{eva.id}", f"page:{document}#01", f"page:{document}#١", f"page:{document}#2#1", f"page:{document}#-1",
        "code:%", "experience:' OR 1=1 --", f"page:{document}#1 ", f"Page:{document}#1",
    ]  # fmt: skip
    package = index.packages.build(asked(pinned=forged))
    assert not any(source.pinned for source in package.sources)
    assert {each.reason for each in package.pinned_out} == {"unknown"}
    assert "under the mat" not in package.content, "that is Eva's alone"


def test_memories_are_those_of_whoever_asks(governed: Any) -> None:
    index = governed("permit (principal, action, resource);")
    request = {"intent": "where is the secret upload key", "scope": {"types": ["memories"]}}
    assert "under the mat" in index.acting_as(EVA).packages.build(request).content
    assert "under the mat" not in index.packages.build(request).content
    assert "under the mat" not in index.acting_as(Principal("eva", "other")).packages.build(request).content


def test_scope_restricts_everything_but_what_is_pinned(index: Index) -> None:
    page = f"page:{manual(index)}#1"
    package = index.packages.build(asked(scope={"types": ["memories"]}, pinned=[page]))
    assert kinds(package) == {"page", "memory"}
    assert [source.ref for source in package.sources if source.kind == "page"] == [page]
    only = index.packages.build(asked(scope={"documents": ["manual.pdf"]}))
    assert kinds(only) == {"page"}


def test_a_scope_that_fits_nothing_is_an_empty_package(index: Index) -> None:
    for scope in ({"documents": ["nosuch.pdf"]}, {"project": "no such project"}):
        package = index.packages.build(asked(scope=scope))
        assert package.sources == []
        assert package.coverage.notes


def test_metadata_brings_what_its_filters_name_exactly(index: Index) -> None:
    def found(types: Sequence[str] = (), **filters: Any) -> set[str]:
        package = index.packages.build(
            {
                "intent": "something else entirely",
                "scope": {"types": list(types)},
                "retrieval": {"sources": ["metadata"], "filters": filters},
            }
        )
        assert all(source.origins == ["metadata"] for source in package.sources)
        return {source.ref for source in package.sources}

    document = manual(index)
    assert found(exact="manual.pdf") >= {f"page:{document}#1"}
    assert {ref.partition(":")[0] for ref in found(where={"language": "python"})} == {"code"}
    assert {ref.partition(":")[0] for ref in found(where={"outcome_status": "confirmed"})} == {"experience"}
    [named] = found(exact="send_part")
    assert named.endswith("#send_part")
    index.documents.tag(document, "guide")
    assert found(tags=["guide"], types=["documents"]) >= {f"page:{document}#1"}
    assert found(tags=["nothing has this"]) == set()
    assert found(until="1999") == set()
    assert found(types=["memories"], since="2000") == {f"memory:{each.id}" for each in index.memories.list()}
    assert index.packages.build({"intent": "x y", "retrieval": {"sources": ["metadata"]}}).sources == []


def test_the_graph_brings_what_is_near_and_its_projection_is_kept(index: Index) -> None:

    commit = next(source.ref for source in index.packages.build(asked()).sources if source.kind == "commit")
    package = index.packages.build(
        {"intent": "zebra", "pinned": [commit], "retrieval": {"sources": ["graph"], "limits": {"hops": 3}}}
    )
    with index.catalog.snapshot() as reader:
        kept = reader.packages.projection(package.graph_projection_id)
    assert kept is not None
    assert kept["seeds"] == [commit]
    assert all(source.parts.graph > 0 for source in package.sources if not source.pinned)


@pytest.mark.parametrize("name", ["documents", "graph", "metadata"])
def test_a_retrieval_that_fails_is_named_and_the_rest_answers(
    index: Index, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the secret text of a page")

    if name == "documents":
        monkeypatch.setattr(DocumentsSource, "retrieve", fail)
    else:
        monkeypatch.setattr(f"research.packages.retrieval.{'by_graph' if name == 'graph' else 'by_metadata'}", fail)
    package = index.packages.build(asked())
    [down] = [each for each in package.coverage.retrievals if each.status == "down"]
    assert (down.name, down.reason) == (name, "RuntimeError")
    assert package.coverage.reduced
    assert package.sources


def test_superseded_memories_rank_lower(index: Index) -> None:
    index.memories.remember("Ana lives in Kiel.", id="old", speaker="Ana")
    index.memories.remember_batch([NewMemory("Ana moved to Lyon.", "new", speaker="Ana", replaces="old")])
    assert index.memories.get("old").superseded_by == "new"
    package = index.packages.build({"intent": "Where does Ana live, in Kiel?", "scope": {"types": ["memories"]}})
    found = {source.ref: source for source in package.sources}
    assert found["memory:old"].parts.recency == 0.0
    assert found["memory:new"].score > found["memory:old"].score


def test_a_newer_version_of_a_document_comes_first(sample_index: Path, tmp_path: Path) -> None:
    """Both handbooks answer in nearly the same words; nobody asks for the old one, until somebody does."""
    with Index.open(shutil.copytree(sample_index, tmp_path / "samples")) as samples:
        names = {info.doc_id: info.filename for info in samples.documents.list()}

        def first(intent: str) -> str:
            package = samples.packages.build({"intent": intent, "tokenBudget": 800, "scope": {"types": ["documents"]}})
            return names[package.sources[0].ref.removeprefix("page:").partition("#")[0]]

        assert first("how long is sick pay paid in full") == "saltmarsh-handbook-2025.pdf"
        assert first("sick pay by the saltmarsh handbook 2024") == "saltmarsh-handbook-2024.pdf"


def test_what_was_of_use_counts_more_and_what_was_not_less(index: Index) -> None:
    first = index.packages.build(asked())
    ref = first.sources[-1].ref
    before = {source.ref: source for source in index.packages.build(asked()).sources}[ref]
    assert index.packages.feedback(first.context_package_id, ref) == [ref]
    after = {source.ref: source for source in index.packages.build(asked()).sources}[ref]
    assert after.parts.reuse > before.parts.reuse
    assert after.score > before.score
    index.packages.feedback(first.context_package_id, ref, useful=False)
    assert {s.ref: s for s in index.packages.build(asked()).sources}[ref].parts.reuse < after.parts.reuse
    with pytest.raises(NothingFoundError):
        index.packages.feedback(first.context_package_id, "memory:none")
    with pytest.raises(NothingFoundError):
        index.acting_as(EVA).packages.feedback(first.context_package_id)


def test_two_identical_requests_at_once_are_built_once(index: Index) -> None:
    barrier, built = threading.Barrier(8), []

    def build() -> None:
        barrier.wait()
        built.append(index.packages.build(asked(tokenBudget=700)).context_package_id)

    threads = [threading.Thread(target=build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 8
    assert len(set(built)) == len(index.packages.list()) < 8


def test_an_id_means_one_request_for_good(index: Index) -> None:
    first = index.packages.build(asked(id="r"))
    assert index.packages.build(asked(id="r")).context_package_id == first.context_package_id
    with pytest.raises(PackageRequestError, match="belongs to another"):
        index.packages.build(asked(id="r", tokenBudget=7))


def test_a_memory_that_expires_ends_the_package_with_it(index: Index) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=1)
    index.memories.remember("An upload stops for maintenance.", id="brief", expires_at=soon)
    package = index.packages.build(asked(pinned=["memory:brief"], ttlSeconds=3600))
    assert package.expires_at == soon.isoformat()
