"""No leak: whatever the policy, the labels, the principal and the request are, what may not be seen is nowhere."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from research.errors import NothingFoundError
from research.governance.access import Principal
from research.index import Index
from research.models import WITHHELD
from research.settings import Settings
from tests.conftest import built_once
from tests.pace import draws
from tests.research.governance.canaries import NAME, fill
from tests.research.governance.governed_index import policy_of
from tests.research.governance.leak_drawing import BROKEN, EXAMPLE, INTENTS, OWNER, PRINCIPALS, Example, beside
from tests.research.governance.leak_oracle import Rules
from tests.research.governance.leak_watching import Looking, Watched, every_way, look_at_many


@pytest.fixture
def watched(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, loopback: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watched]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))  # with an audit of its own
    made = Watched(built_once(tmp_path_factory, NAME, fill), tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("number", [16, pytest.param(60, marks=pytest.mark.slow)])
def test_what_may_not_be_seen_is_nowhere(watched: Watched, number: int) -> None:
    """`make soak` looks at a thousand."""
    look_at_many(watched, draws(number))
    assert watched.seen > 10 * watched.examples, "whatever may be seen is found in what is looked at"


def test_a_quote_does_not_stand_under_a_heading_of_a_page_that_is_denied(watched: Watched) -> None:
    for example in beside(watched.corpus, "salaries"):
        Looking(watched, example).ask()


@pytest.mark.slow
def test_what_lies_beside_a_page_tells_nothing_of_it(watched: Watched) -> None:
    """A sentence that runs on to it, the section that begins on it, a heading that later pages stand under."""
    for example in beside(watched.corpus, "salaries"):
        Looking(watched, example, every_way=True).look()


PARTS = {
    name: type(getattr(Index("nowhere"), name))
    for name in ("documents", "memories", "sessions", "experiences", "packages", "graph", "policy", "admin")
}

# Methods that change the index, tell of it as a whole, or are the parts that others are made of.
NOT_ASKED = {
    "access", "acting", "acting_as", "answer", "assembler", "catalog", "close", "counter", "create", "drop_packages",
    "exists", "experience_store", "item_source", "keep_answer", "keep_vectors", "memory_source", "memory_store",
    "nothing_found", "of", "one_document", "open", "prepare", "question_of", "recorder", "refresh", "room", "root",
    "scoped_question", "session_store", "source", "source_of", "store_item_vectors", "tenant_of", "thresholds",
    "timed", "unrestricted", "value_store", "vectors", "with_passages", "workers", "writer", "written_by",
    "admin.backup",
    "admin.check", "admin.plan_removal", "admin.reindex", "admin.remove", "admin.repair", "admin.restore",
    "admin.status", "documents.matches", "documents.tag", "documents.totals", "documents.untag", "experiences.close",
    "experiences.embed", "experiences.import_lines", "experiences.put", "experiences.rebuild_values",
    "experiences.record", "experiences.remove", "experiences.renew_values", "experiences.start", "experiences.update",
    "experiences.where", "graph.update", "memories.feedback", "memories.forget", "memories.maintain",
    "memories.remember", "memories.remember_batch", "packages.feedback", "policy.audit", "policy.decide",
    "policy.labels", "sessions.remove",
}  # fmt: skip


# Tried with every example.
WITH_EVERY_EXAMPLE = {
    "packages.build", "packages.get", "packages.rebuild", "packages.list", "sessions.get", "sessions.list",
}  # fmt: skip


def _example(watched: Watched, rules: Rules, principal: Principal = OWNER, way: int = 7) -> Example:
    refs = tuple(next(ref for ref in watched.corpus.things if ref.startswith(kind)) for kind in ("page:", "memory:"))
    request = {"intent": INTENTS[1], "tokenBudget": 4000}
    return Example(rules, rules, principal, PRINCIPALS[1], request, way, (refs[0], refs[1]), "*")


def test_every_method_is_known(watched: Watched) -> None:
    """One that is added later must be tried, or be none that gives anything away."""
    public = {name for name, _ in inspect.getmembers(Index) if not name.startswith("_")} - set(PARTS)
    for name, part in PARTS.items():
        public |= {f"{name}.{each}" for each, _ in inspect.getmembers(part) if not each.startswith("_")}
    rules = Rules(EXAMPLE)
    tried = {name for name, _ in every_way(watched.index(rules), _example(watched, rules))} | WITH_EVERY_EXAMPLE
    assert public == tried | NOT_ASKED | {"settings", "paths", "principal"} & public


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (Rules(EXAMPLE, default="Restricted"), OWNER),
        (Rules(BROKEN[0], broken=True), OWNER),
        (Rules(None), PRINCIPALS[2]),
        (Rules(EXAMPLE, default="Confidential"), OWNER),
    ],
)
def test_what_is_denied_is_nowhere(watched: Watched, rules: Rules, principal: Principal) -> None:
    """By any way, with every way."""
    Looking(watched, _example(watched, rules, principal), every_way=True).look()
    index = watched.index(rules)
    assert index.policy.audit().verify().ok
    if principal == OWNER and rules.default != "Confidential":
        assert index.ask(INTENTS[1]).sources == []


def test_what_is_confidential_is_a_reference(watched: Watched) -> None:
    rules = Rules(EXAMPLE, default="Confidential")
    index = watched.index(rules)
    watched.set(index, rules)
    sources = index.ask(INTENTS[1], max_tokens=3000).sources
    assert not any(WITHHELD in source.markdown_content for source in sources), "no header without a text to cite"
    assert index.documents.page("*notes-2024.pdf", 1).item.text == WITHHELD
    for way in (index.documents.file_of, lambda name: index.documents.picture_path(name, 1)):
        with pytest.raises(NothingFoundError):
            way("*notes-2024.pdf")


@pytest.mark.slow
def test_where_much_is_denied_the_rest_is_still_found(tmp_path: Path) -> None:
    from ingest import Observer, ingest
    from research.store import IndexPaths
    from tests.conftest import write_pdf

    folder = tmp_path / "docs"
    secret = [f"Walrus feeding walrus feeding report {number} of the walrus." for number in range(25)]
    write_pdf(folder / "secret" / "reports.pdf", secret)
    write_pdf(folder / "open.pdf", ["Feeding of animals. The walrus eats herring at noon."])
    paths = IndexPaths(tmp_path / "index")
    ingest(paths, [folder], settings=Settings(ocr="off", images=False), observer=Observer())
    policy = 'permit (principal, action, resource) unless { resource.path like "*/secret/*" };'
    with Index(paths.root, Settings(policy=policy_of(tmp_path, policy))) as index:
        found = index.ask("walrus feeding", num_results=3, max_sources=3)
        assert [source.filename for source in found.sources] == ["open.pdf"]
        assert [result.filename for result in index.search("walrus feeding", num_results=3).results] == ["open.pdf"]
