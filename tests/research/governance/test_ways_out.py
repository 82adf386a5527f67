"""What may not be read leaves an index by no way: every method that gives something is tried under a policy."""

from __future__ import annotations

import inspect
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from research.errors import CtxError, NothingFoundError
from research.governance.access import Principal
from research.governance.labels import Labels
from research.index import Index
from research.models import WITHHELD
from research.packages import ContextPackage
from research.request import AskRequest
from research.settings import Settings
from research.sources import CONTEXT_TYPES
from tests.research.sources.everything import EXPERIENCES

EXAMPLE = Path(__file__).parents[3] / "research/governance/example.cedar"
ASKED = "why do uploads stop and how often is a part sent again"
REQUEST = {"intent": ASKED, "tokenBudget": 4000}
MAIL = "mail.boss@saltmarsh.example"
EVA = Principal("eva", "eva")
STRANGER = Principal("mallory", "mallory")

PARTS = {
    name: type(getattr(Index("nowhere"), name))
    for name in ("documents", "memories", "sessions", "experiences", "packages", "graph", "policy", "admin")
}

# Ways that change the index, tell of it as a whole, or are the parts that others are made of.
NOT_ASKED = {
    "access", "acting", "acting_as", "answer", "assembler", "catalog", "close", "counter", "create", "drop_packages",
    "exists", "experience_store", "item_source", "keep_answer", "keep_vectors", "memory_source", "memory_store",
    "nothing_found", "of", "one_document", "open", "prepare", "question_of", "recorder", "refresh", "room", "root",
    "scoped_question", "session_store", "source", "source_of", "store_item_vectors", "tenant_of", "thresholds",
    "timed", "unrestricted", "value_store", "vectors", "with_passages", "writer", "written_by", "admin.backup",
    "admin.check", "admin.plan_removal", "admin.reindex", "admin.remove", "admin.repair", "admin.restore",
    "admin.status", "documents.matches", "documents.tag", "documents.totals", "documents.untag", "experiences.close",
    "experiences.embed", "experiences.import_lines", "experiences.put", "experiences.rebuild_values",
    "experiences.record", "experiences.remove", "experiences.renew_values", "experiences.start", "experiences.update",
    "experiences.where", "graph.update", "memories.feedback", "memories.forget", "memories.maintain",
    "memories.remember", "memories.remember_batch", "packages.feedback", "policy.audit", "policy.decide",
    "policy.labels", "sessions.remove",
}  # fmt: skip


@pytest.fixture
def root(of_everything: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, with an audit of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    copy = tmp_path / "index"
    shutil.copytree(of_everything, copy)
    with closing(sqlite3.connect(copy / "catalog.sqlite3")) as catalog, catalog:
        catalog.execute("DELETE FROM audit")  # of other tests, with another key
    return copy


def policy_of(tmp_path: Path, text: str) -> str:
    path = tmp_path / "policy.cedar"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def opened(root: Path, tmp_path: Path) -> Iterator[Callable[..., Index]]:
    """An index under a policy, in which everything is of one class."""
    held: list[Index] = []

    def open_index(policy: str, classification: str = "Internal", principal: Principal | None = None) -> Index:
        settings = Settings(policy=policy_of(tmp_path, policy) if policy else "", default_classification=classification)
        index = Index(root, settings)
        held.append(index)
        return index if principal is None else index.acting_as(principal)

    yield open_index
    for index in held:
        index.close()


def ways(index: Index) -> Iterator[tuple[str, Callable[[], Any]]]:  # noqa: PLR0915  a line each
    """Every way out, by the name of its method."""
    with Index(index.root) as whole:  # ids are no secret, and whoever has one may try it
        [info] = whole.documents.list()
        memory = next(whole.memories.list()).id
        experience = whole.experiences.list()[0].id
        values = [value.id for value in whole.experiences.values()] or ["none"]
    yield "ask", lambda: index.ask(ASKED, session="s", highlights=True)
    yield "ask", lambda: index.ask(ASKED, documents=["manual.pdf"])
    yield "ask", lambda: index.ask(ASKED, documents=["manaul"])
    yield "prompt", lambda: index.prompt(index.ask(ASKED))
    yield "search", lambda: index.search(ASKED)
    yield "context", lambda: index.context(ASKED, CONTEXT_TYPES, max_tokens=4000)
    yield "premortem", lambda: index.premortem("debugging", "read-the-error")
    yield "ask", lambda: index.ask(ASKED, types=CONTEXT_TYPES)
    yield "find", lambda: index.find(AskRequest(ASKED)).within(4000, index.counter)
    yield "find_context", lambda: index.find_context(AskRequest(ASKED)).within(4000, index.counter)
    yield "find_premortem", lambda: index.find_premortem("debugging").within(4000, index.counter)
    yield "search_code", lambda: index.search_code(ASKED)
    for ref in (f"document:{info.doc_id}", f"memory:{memory}", f"experience:{experience}", "session:s"):
        yield "graph.near", lambda ref=ref: index.graph.near(ref, hops=3)
        yield "graph.show", lambda ref=ref: index.graph.show(ref, hops=3)
    made: list[str] = []

    def build() -> ContextPackage:
        package = index.packages.build(REQUEST)
        made.append(package.context_package_id)
        return package

    yield "packages.build", build
    yield "packages.get", lambda: index.packages.get(made[0])
    yield "packages.rebuild", lambda: index.packages.rebuild(made[0])
    yield "packages.list", index.packages.list
    yield "rank", lambda: index.rank(ASKED, everything=True)
    yield "sessions.list", index.sessions.list
    yield "sessions.get", lambda: index.sessions.get("s")
    for name in (info.doc_id, "manual.pdf", "manual", "manaul.pdf", f"page:{info.doc_id}#2"):
        yield "documents.page", lambda name=name: index.documents.page(name, question=ASKED)
        yield "documents.pages", lambda name=name: index.documents.pages(name)
        yield "documents.outline", lambda name=name: index.documents.outline(name)
        yield "documents.file_of", lambda name=name: index.documents.file_of(name)
        yield "documents.list", lambda name=name: index.documents.list(name)
        yield "documents.tags", lambda name=name: index.documents.tags(name)
        yield "documents.picture_path", lambda name=name: index.documents.picture_path(name, 1)
    yield "documents.list", index.documents.list
    yield "documents.get", lambda: index.documents.get(info.doc_id)
    yield "documents.markdown", lambda: index.documents.markdown(info.doc_id)
    yield "documents.all_tags", index.documents.all_tags
    yield "documents.repositories", index.documents.repositories
    yield "documents.code_trees", index.documents.code_trees
    yield "memories.recall", lambda: index.memories.recall(ASKED)
    yield "memories.recall", lambda: index.memories.recall("where is the key?", tenant="eva")
    yield "memories.get", lambda: index.memories.get(memory)
    yield "memories.list", lambda: list(index.memories.list())
    yield "experiences.get", lambda: index.experiences.get(experience)
    yield "experiences.list", index.experiences.list
    yield "experiences.search", lambda: index.experiences.search(ASKED, axis="root_cause")
    yield "experiences.values", index.experiences.values
    yield "experiences.value", lambda: index.experiences.value(values[0])
    yield "experiences.search_values", lambda: index.experiences.search_values(ASKED)


def all_out(index: Index) -> str:
    """Whatever comes out, errors and their hints included."""
    said = []
    for name, way in ways(index):
        try:
            said.append(f"{name}: {way()!r}")
        except CtxError as error:
            said.append(f"{name}: {error.message} {error.hint}")
    return "\n".join(said)


def shingles(root: Path) -> set[str]:
    """Every three words that stand together in something that is stored, and the names of things."""
    with Index(root) as index, index.catalog.snapshot() as reader:
        texts = [str(row[0]) for row in reader.connection.execute("SELECT text FROM items")]
        texts += [str(row[0]) for row in reader.connection.execute("SELECT text FROM memories")]
        texts += [index.documents.markdown(info.doc_id) or "" for info in index.documents.list()]
    texts += [text for told in EXPERIENCES for text in told.values()]
    found = set()
    for text in texts:
        words = re.findall(r"\w+", text)
        found |= {" ".join(three) for three in zip(words, words[1:], words[2:], strict=False)}
    return found - {" ".join(three) for three in zip(*(ASKED.split()[n:] for n in range(3)), strict=False)}


def leaks(root: Path, said: str) -> list[str]:
    words = " ".join(re.findall(r"\w+", said))
    return sorted(three for three in shingles(root) if f" {three} " in f" {words} ")


def test_every_method_is_known() -> None:
    """One that is added later must be tried here, or be none that gives anything away."""
    public = {name for name, _ in inspect.getmembers(Index) if not name.startswith("_")} - set(PARTS)
    for name, part in PARTS.items():
        public |= {f"{name}.{each}" for each, _ in inspect.getmembers(part) if not each.startswith("_")}
    tried = {name for name, _ in ways_names()}
    assert public == tried | NOT_ASKED | {"settings", "paths", "principal"} & public


def ways_names() -> Iterator[tuple[str, None]]:
    source = inspect.getsource(ways)
    for name in re.findall(r'yield "([\w.]+)"', source):
        yield name, None


def test_without_a_policy_its_owner_reads_everything(opened: Callable[..., Index], root: Path) -> None:
    said = all_out(opened(""))
    assert "three times at most" in said
    assert "asked before it changes" in said
    assert len(leaks(root, said)) > 50


def test_without_a_policy_nobody_else_reads_anything_but_their_own(opened: Callable[..., Index], root: Path) -> None:
    said = all_out(opened("", principal=EVA))
    assert "under the mat" in said
    assert set(leaks(root, said)) <= shingles_of("Eva's secret upload key is under the mat.")
    assert "there is no document named 'manual.pdf'" in said or "'manual.pdf'" in said
    assert "of-everything" not in said
    assert leaks(root, all_out(opened("", principal=STRANGER))) == []


def shingles_of(text: str) -> set[str]:
    words = re.findall(r"\w+", text)
    return {" ".join(three) for three in zip(words, words[1:], words[2:], strict=False)}


@pytest.mark.parametrize(
    ("policy", "classification"),
    [
        (EXAMPLE.read_text(), "Restricted"),
        ("permit (principal, action", "Internal"),  # does not parse
        pytest.param('permit (principal == User::"eva", action, resource);', "Internal", marks=pytest.mark.slow),
        pytest.param("", "Internal", marks=pytest.mark.slow),
    ],
)
def test_what_is_denied_is_nowhere(opened: Callable[..., Index], root: Path, policy: str, classification: str) -> None:
    index = opened(policy or "// nothing is permitted", classification)
    said = all_out(index)
    assert leaks(root, said) == []
    assert "filename='manual" not in said
    assert index.ask(ASKED).sources == []
    audited = repr(index.policy.audit().entries(limit=1000))
    assert leaks(root, audited) == []
    assert index.policy.audit().verify().ok


@pytest.mark.slow
def test_what_is_confidential_is_masked_or_a_reference(opened: Callable[..., Index], root: Path) -> None:
    with Index(root) as whole:
        whole.memories.remember(f"Ask {MAIL} about uploads before you send a part again.", id="mail")
    index = opened(EXAMPLE.read_text(), "Confidential")
    said = all_out(index)
    assert MAIL not in said
    [masked] = [each.memory for each in index.memories.recall("ask about uploads").memories if each.memory.id == "mail"]
    assert "before you send a part again" in masked.text
    kept = shingles_of(masked.text) | shingles_of("read the error")  # a strategy is one of a list
    assert [three for three in leaks(root, said) if three not in kept] == []
    assert index.ask(ASKED).sources == [], "nobody is given a header without a text to cite"
    view = index.documents.page("manual.pdf", 1)
    assert view.item.text == WITHHELD
    assert index.documents.list()[0].filename == "manual.pdf"
    with pytest.raises(NothingFoundError):
        index.documents.picture_path("manual.pdf", 1)
    with pytest.raises(NothingFoundError):
        index.documents.file_of("manual.pdf")


def test_one_page_is_hidden_and_the_others_are_found(opened: Callable[..., Index], root: Path) -> None:
    index = opened('permit (principal, action, resource) unless { resource.classification == "Restricted" };')
    [info] = index.documents.list()
    Labels(lambda: index.catalog).put(f"page:{info.doc_id}#1", {"classification": "Restricted"})
    context = index.ask(ASKED)
    assert {source.page for source in context.sources} == {2}
    assert "three times at most" not in all_out(index)
    assert [view.item.ref.part for view in pages_of(index, info.doc_id)] == ["2"]
    with pytest.raises(NothingFoundError):
        index.documents.file_of(info.doc_id)  # it shows the first page, too


def pages_of(index: Index, doc_id: str) -> list[Any]:
    found = []
    for number in (1, 2):
        with suppress(NothingFoundError):
            found.append(index.documents.page(doc_id, number))
    return found


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
