"""Tenants never see each other's memories: not their texts, and not in what their own are worth."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.errors import NothingFoundError
from research.governance import Principal
from research.index import Index
from research.memories import NewMemory
from tests.pace import draws
from tests.research.conversation.memory_index import open_index

STORE = Path(__file__).parents[3] / "research" / "store"
FILES = ("memories.py", "memory_writes.py")
# For whoever looks after the index: counts and names of tenants, no text.
OF_ALL = {
    "SELECT (SELECT COUNT(*) FROM memories), (SELECT COUNT(*) FROM memory_words), COUNT(*) FROM memory_vectors",
    "SELECT tenant FROM memory_tenants ORDER BY tenant",
    "SELECT COUNT(*), COALESCE(SUM(turns), 0) FROM (SELECT COUNT(*) AS turns FROM turns GROUP BY tenant, session)"
    " AS sessions",
    # A document that goes takes its words out of everybody's turns.
    "SELECT doc_id FROM documents WHERE doc_id IN",
    "UPDATE turns SET answer = '', searched = question WHERE (tenant, session) IN (SELECT tenant, session FROM"
    " turn_sources WHERE doc_id IN",
    "UPDATE turn_sources SET doc_id = ?, quotes = '[]' WHERE doc_id IN",
    "DELETE FROM turn_sources WHERE doc_id IN",
    "SELECT DISTINCT doc_id FROM turn_sources s WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.doc_id = s.doc_id)"
    " ORDER BY doc_id",
}

TENANTS = ("anna", "ben", "", "anna ", "ANNA", "an%a")
WORDS = st.sampled_from(
    ["walrus", "seal", "orca", "ice", "fish", "I live in Kiel", "I moved to Bonn", "password is 12"]
)
TELLING = st.tuples(
    st.sampled_from(TENANTS), st.lists(WORDS, min_size=1, max_size=4), st.sampled_from(["", "s1", "s2"])
)


def test_a_tenant_is_named_by_every_statement() -> None:
    """Told by the source: each statement on memories has `tenant = ?`, or writes the tenant with the row."""
    found = [(name, text) for name in FILES for text in _statements((STORE / name).read_text())]
    assert len(found) > 40
    for name, text in found:
        assert text in OF_ALL or "tenant = ?" in text or re.match(r"INSERT INTO \w+ \((tenant|\))", text), (name, text)


def _statements(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in inside:
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
            if re.match(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s", text):
                yield text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("tenants")


_rounds = iter(range(10_000))


@draws(12)
@given(told=st.lists(TELLING, min_size=1, max_size=14), query=WORDS)
def test_each_answers_as_if_it_were_alone(folder: Path, told: list[tuple[str, list[str], str]], query: str) -> None:
    """What is found and what it is worth, to the last digit: an index with all of them beside one for each alone."""
    number = next(_rounds)
    with open_index(folder / f"{number}-all") as together:
        for tenant, words, session in told:
            together.memories.remember(" ".join(words), tenant=tenant, session=session)
        for tenant in {tenant.strip() for tenant, _, _ in told}:
            with open_index(folder / f"{number}-{tenant or 'own'}") as alone:
                for owner, words, session in told:
                    if owner.strip() == tenant:
                        alone.memories.remember(" ".join(words), tenant=tenant, session=session)
                assert _seen(together, tenant, query) == _seen(alone, tenant, query)


def _seen(index: Index, tenant: str, query: str) -> object:
    found = index.memories.recall(query, tenant=tenant)
    ranked = [
        (each.memory.text, each.memory.session, round(each.score, 9), dict(each.parts)) for each in found.memories
    ]
    known = [(m.text, m.session, bool(m.joined_to), bool(m.superseded_by)) for m in index.memories.list(tenant=tenant)]
    return ranked, sorted(known), found.searched


def test_an_id_of_another_is_unknown(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        theirs = index.memories.remember("a secret", tenant="ben", id="same")
        index.memories.remember("something else", tenant="anna", id="same")
        other = index.memories.remember("ben's own", tenant="ben")
        assert index.memories.get("same", tenant="anna").text == "something else"
        for call in (index.memories.get, index.memories.forget):
            with pytest.raises(NothingFoundError):
                call(other.id, tenant="anna")
        with pytest.raises(NothingFoundError):
            index.memories.feedback(other.id, True, tenant="anna")
        index.memories.forget(tenant="anna", everything=True)
        assert index.memories.get("same", tenant="ben").id == theirs.id


def test_equal_texts_keys_and_ids_of_tenants_stay_apart(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        for tenant in ("anna", "ben"):
            memory = index.memories.remember("I live in Kiel", tenant=tenant, key="k", id="i")
            assert memory.outcome == "stored"
        index.memories.remember_batch([NewMemory("I moved to Bonn", replaces="i")], tenant="ben")
        assert index.memories.get("i", tenant="anna").superseded_by == ""
        assert index.memories.get("i", tenant="ben").superseded_by


def test_whoever_is_not_the_owner_has_their_own_whichever_they_name(tmp_path: Path) -> None:
    with open_index(tmp_path) as index:
        for tenant in ("anna", "ben"):
            index.memories.remember(f"the key of {tenant}", tenant=tenant, id="same")
        ben = index.acting_as(Principal("ben", "ben"))
        assert [each.memory.text for each in ben.memories.recall("key", tenant="anna").memories] == ["the key of ben"]
        ben.memories.forget("same", tenant="anna")
        assert index.memories.get("same", tenant="anna").text == "the key of anna"
