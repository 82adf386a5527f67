"""What a principal sees of a catalog: what is allowed, what a redactor left, nothing of the rest; and all on record."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from research.errors import CtxError
from research.governance.access import CLASSIFICATIONS, MemoryAccessDecision, Principal
from research.governance.enforce import PolicyAccess
from research.governance.policy import MemoryAccessPolicy
from research.index import Index
from research.models import REDACTED, REFERENCE_ONLY, WITHHELD
from research.settings import Settings
from research.store import Label, NewItem, Reader, restricted
from tests.pace import draws
from tests.research.governance.governed_index import EVERYTHING, EXAMPLE, GovernedIndex, policy_of
from tests.research.store.memory_making import tell, told

OWNER, ANNA = Principal("me", owner=True), Principal("anna", "anna")
MAIL, CARD = "erika@example.com", "4111 1111 1111 1111"
READ_TEXT = EXAMPLE.replace('[Action::"read_redacted"]', '[Action::"read_redacted", Action::"read_text"]')


@pytest.fixture
def made(tmp_path: Path) -> Iterator[GovernedIndex]:
    index = GovernedIndex(tmp_path)
    yield index
    index.catalog.close()


class Looked:
    """What an access leaves of the made index."""

    def __init__(self, made: GovernedIndex, access: PolicyAccess) -> None:
        self._catalog = restricted.RestrictedCatalog(made.catalog, access.see, lambda: access.revision)
        self.look()

    def look(self) -> None:
        with self._catalog.snapshot() as reader:
            self.labels = dict(reader.masks.labels)
            self.documents = {info.doc_id: info for info in reader.documents.all()}
            self.pages = {
                f"page:{doc_id}#{page}": text
                for doc_id in self.documents
                for page, text in reader.pages.document_markdown(doc_id)
            }
            self.totals = reader.pages.totals()
            self.items = {
                f"{kind}:{item.key}": item for kind in ("code", "commit", "value") for item in reader.items.all(kind)
            }
            self.rows = {
                table: reader.execute(f"SELECT * FROM {table}").fetchall()
                for table in ("audit", "chunks", "vectors", "memories", "page_words", "name_words", "memory_words")
            }
            self.words = {term.word: term.pages for term in reader.words.statistics(["open", "mask", "secret"])}

    def close(self) -> None:
        self._catalog.close()


def look(made: GovernedIndex, access: PolicyAccess) -> Looked:
    looked = Looked(made, access)
    looked.close()
    return looked


def test_confidential_is_masked_or_withheld_and_restricted_is_not_there(made: GovernedIndex) -> None:
    added = made.add(f"for {MAIL}.pdf", ["open page", f"mask: write to {MAIL}, card {CARD}.", "secret page"])
    made.embed()
    for number, level in ((1, "Public"), (2, "Confidential"), (3, "Restricted")):
        made.classify(made.page(number, added), level)
    made.classify("paper.pdf", "Confidential")
    seen = look(made, made.access(OWNER, EXAMPLE))
    own = {ref: text for ref, text in seen.pages.items() if added.doc_id in ref}
    assert own == {made.page(1, added): "open page", made.page(2, added): "mask: write to <EMAIL_1>, card <CARD_1>."}
    assert seen.pages[made.page(1, made.paper)] == WITHHELD
    assert seen.labels[made.page(2, added)] == REDACTED
    assert seen.labels[made.page(1, made.paper)] == REFERENCE_ONLY
    assert seen.words == {"open": 1, "mask": 1, "secret": 0}, "words are counted among what is seen"
    assert (seen.totals.pages, len(seen.rows["chunks"]), len(seen.rows["vectors"])) == (6, 4, 4)
    assert MAIL in seen.documents[added.doc_id].filename, "it stands with a page that may be read"
    assert seen.rows["audit"] == []


def test_names_of_a_document_of_which_nothing_may_be_read_as_it_is_are_masked(made: GovernedIndex) -> None:
    added = made.add(f"for {MAIL}.pdf", [f"write to {MAIL}"])
    made.classify(f"document:file-{added.doc_id}", "Confidential")
    seen = look(made, made.access(OWNER, EXAMPLE))
    info = seen.documents[added.doc_id]
    assert MAIL not in info.filename + info.source_path + str([tuple(row) for row in seen.rows["name_words"]])
    assert seen.labels[f"document:{added.doc_id}"] == REDACTED


def test_the_text_of_what_has_nothing_to_mask_needs_a_permit(made: GovernedIndex) -> None:
    made.classify("report.pdf", "Confidential")
    seen = look(made, made.access(OWNER, READ_TEXT))
    assert seen.pages[made.page(1)] == "first page"
    assert seen.labels[made.page(1)] == REDACTED
    assert look(made, made.access(OWNER, EXAMPLE)).pages[made.page(1)] == WITHHELD


def test_what_is_told_is_masked_and_found_by_what_is_left(made: GovernedIndex) -> None:
    tell(made.catalog, "", told(f"Mail {MAIL} about it", id="mail"))
    commit = NewItem("abc", f"Ask {MAIL}", f"Ask {MAIL} first", metadata={"author": "Erika", "files_changed": ["a"]})
    made.catalog.items.put("commit", "/other/.git", "1", [commit])
    for ref in ("memory:mail", "memory:mine", "commit:abc", "commit:c0ffee", "code:/src/a.py#swim"):
        made.classify(ref, "Confidential")
    seen = look(made, made.access(OWNER, EXAMPLE))
    texts = {str(row["id"]): str(row["text"]) for row in seen.rows["memories"]}
    assert (texts["mail"], texts["mine"]) == ("Mail <EMAIL_1> about it", WITHHELD)
    assert len(seen.rows["memory_words"]) == 1 + sum(name in ("hers", "sum") for name in texts)
    assert (seen.items["commit:abc"].title, seen.items["commit:abc"].text) == ("Ask <EMAIL_1>", "Ask <EMAIL_1> first")
    withheld = seen.items["commit:c0ffee"]
    assert (withheld.title, withheld.text, withheld.metadata) == ("", WITHHELD, {"files_changed": []})
    assert seen.items["code:/src/a.py#swim"].title == "swim"
    assert seen.items["code:/src/a.py#swim"].metadata == {"signature": ""}


def test_a_document_of_which_a_page_may_be_seen_goes_by_its_name(
    of_everything: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    root = Path(shutil.copytree(of_everything, tmp_path / "index"))
    with closing(sqlite3.connect(root / "catalog.sqlite3")) as catalog, catalog:
        catalog.execute("DELETE FROM audit")  # of other tests, with another key
    policy = policy_of(tmp_path, 'permit (principal, action, resource) when { resource.kind == "page" };')
    with Index(root, Settings(policy=policy)) as index:
        [info] = index.documents.list()
        assert info.filename == "manual.pdf"
        assert [view.item.ref.part for view in index.documents.pages("manual.pdf")] == ["1", "2"]
        assert index.graph.show("manual.pdf").nodes
        assert index.policy.audit().verify().ok


def test_what_was_made_from_something_denied_is_denied(made: GovernedIndex) -> None:
    everything_but = 'permit (principal, action, resource) unless {{ resource.ref == "{}" }};'
    assert "value:val" not in look(made, made.access(OWNER, everything_but.format("experience:exp"))).items
    seen = look(made, made.access(ANNA, everything_but.format("memory:hers")))
    assert [row["id"] for row in seen.rows["memories"]] == []
    assert {row["id"] for row in look(made, made.access(ANNA, EVERYTHING)).rows["memories"]} == {"hers", "sum"}


class _Failing:
    """Fails for what it is told to; `quietly`: gives something that is no text."""

    def __init__(self, word: str, *, quietly: bool = False) -> None:
        self._word, self._quietly = word, quietly

    def redact(self, text: str) -> Any:
        if self._word in text:
            if self._quietly:
                return None
            raise ValueError(text)
        return text.replace("page", "<X_1>")


@pytest.mark.parametrize("quietly", [True, False])
def test_what_cannot_be_made_safe_is_not_shown(made: GovernedIndex, quietly: bool) -> None:
    for target in ("report.pdf", "commit:c0ffee"):
        made.classify(target, "Confidential")
    made.catalog.items.put("commit", "/bad/.git", "1", [NewItem("bad", "a second title", "diff")])
    made.classify("commit:bad", "Confidential")
    seen = look(made, made.access(OWNER, EXAMPLE, redactor=_Failing("second", quietly=quietly)))
    assert [seen.pages[made.page(number)] for number in (1, 2, 3)] == ["first <X_1>", WITHHELD, "third <X_1>"]
    assert seen.items.keys() & {"commit:bad", "commit:c0ffee"} == {"commit:c0ffee"}


def test_what_is_shown_is_on_record_with_what_is_denied(made: GovernedIndex) -> None:
    recorded: list[tuple[MemoryAccessDecision, str]] = []
    made.classify(made.page(3), "Restricted")
    access = made.access(OWNER, EXAMPLE, audit=lambda decision, purpose: recorded.append((decision, purpose)))
    look(made, access)
    assert access.shown([made.page(1)], "ask") == [made.page(1)]
    [(decision, purpose)] = recorded
    assert purpose == "ask"
    assert [(each.ref, each.effect) for each in decision.rulings][:2] == [
        (made.page(1), "allow"),
        (made.page(3), "deny"),
    ]
    with pytest.raises(CtxError, match="has changed meanwhile"):
        access.shown([made.page(3)], "ask")


def test_what_is_not_recorded_is_not_released(made: GovernedIndex) -> None:
    def fails(decision: MemoryAccessDecision, purpose: str) -> None:
        raise OSError(f"no space for {decision.id}")

    with pytest.raises(CtxError, match="nothing is released") as caught:
        made.access(OWNER, EVERYTHING, audit=fails).shown([made.page(1)], "ask")
    assert caught.value.__cause__ is None


def test_a_broken_policy_shows_nothing_and_says_so(made: GovernedIndex) -> None:
    access = made.access(OWNER, "permit (")
    seen = look(made, access)
    assert (seen.documents, seen.items, seen.rows["memories"], seen.rows["page_words"]) == ({}, {}, [], [])
    assert "does not parse" in access.problem


def test_without_a_policy_others_see_what_is_their_own(made: GovernedIndex) -> None:
    access = PolicyAccess(ANNA, MemoryAccessPolicy(config=made.config), Settings(), lambda: made.catalog)
    seen = look(made, access)
    assert (seen.documents, seen.items) == ({}, {})
    assert {str(row["id"]) for row in seen.rows["memories"]} == {"hers", "sum"}


def test_a_change_of_what_decides_is_seen_at_once(made: GovernedIndex) -> None:
    looked = Looked(made, made.access(OWNER, EXAMPLE))
    assert made.page(1) in looked.pages
    made.classify("report.pdf", "Restricted")
    looked.look()
    assert made.page(1) not in looked.pages
    made.write('permit (principal, action, resource) when { resource.tags.contains("new") };')
    looked.look()
    assert looked.pages == {}
    made.catalog.labels.add_tags([made.paper.doc_id], ["new"])
    added = made.add("new.pdf", ["a new one"])
    looked.look()
    assert list(looked.documents) == [made.paper.doc_id]
    made.catalog.labels.add_tags([added.doc_id], ["new"])
    looked.look()
    assert looked.words["open"] == 0
    assert set(looked.documents) == {made.paper.doc_id, added.doc_id}
    looked.close()


def test_what_is_told_is_seen_at_once_and_the_rest_is_taken_over(made: GovernedIndex) -> None:
    seen: list[restricted.Seen | None] = []
    access = made.access(OWNER, EXAMPLE)

    def see(reader: Reader, before: restricted.Seen | None = None) -> restricted.Seen:
        seen.append(before)
        return access.see(reader, before)

    made.classify("report.pdf", "Restricted")
    catalog = restricted.RestrictedCatalog(made.catalog, see, lambda: access.revision)
    for number in range(3):
        with catalog.snapshot() as reader:
            names = {str(row[0]) for row in reader.execute("SELECT id FROM memories")}
            words = reader.execute("SELECT COUNT(*) FROM memory_words").fetchone()[0]
            assert [info.doc_id for info in reader.documents.all()] == [made.paper.doc_id]
        assert {f"new{each}" for each in range(number)} <= names
        assert words == len(names)
        tell(made.catalog, "", told(f"something new {number}", id=f"new{number}"))
    assert [each is None for each in seen] == [True, False, False]
    made.classify("report.pdf", "Public")
    with catalog.snapshot() as reader:
        assert reader.pages.totals().documents == 2
    catalog.close()


def test_the_revision_is_that_of_files_and_settings(made: GovernedIndex) -> None:
    access, policy = made.access(OWNER, EXAMPLE), made.policy()
    other = PolicyAccess(OWNER, policy, Settings(default_classification="Restricted"), lambda: made.catalog)
    assert other.revision != access.revision
    before = access.revision
    made.write(EVERYTHING)
    assert access.revision != before


def test_a_page_that_is_denied_is_as_if_it_had_never_been_read(of_everything: Path, tmp_path: Path) -> None:
    policy = 'permit (principal, action, resource) unless { resource.ref like "page:*#1" };'
    answers: list[str] = []
    for at, without in enumerate((False, True)):
        root = Path(shutil.copytree(of_everything, tmp_path / str(at) / "index"))
        if without:
            with closing(sqlite3.connect(root / "catalog.sqlite3")) as catalog, catalog:
                catalog.execute("PRAGMA foreign_keys = ON")
                first = catalog.execute("SELECT page_id FROM pages WHERE page = 1").fetchall()
                catalog.executemany("DELETE FROM page_words WHERE rowid = ?", first)
                catalog.executemany("DELETE FROM pages WHERE page_id = ?", first)
        with Index(root, Settings(policy=policy_of(tmp_path, policy))) as index:
            found = index.search("why do uploads stop and how often is a part sent again", num_results=9)
            assert {each.page for each in found.results} == {2}
            answers.append(
                json.dumps(
                    [(each.relevance_score, each.raw_score, each.snippet, each.legs) for each in found.results],
                    default=repr,
                )
            )
            answers.append(str(index.documents.totals()))
    assert answers[:2] == answers[2:]


WORDS = ["zebra", "quagga", "okapi", MAIL]
BROKEN = "permit (principal, action"
RULES = [
    EVERYTHING,
    'permit (principal, action == Action::"read", resource) when { resource.level < 1 };',
    'permit (principal, action == Action::"read_redacted", resource) when { resource.level < 3 };',
    'permit (principal, action == Action::"read_text", resource) when { resource.status == "final" };',
    "forbid (principal, action, resource) when { resource.level == 3 };",
    'forbid (principal, action == Action::"read", resource) when { resource.level == 2 };',
    "permit (principal, action, resource) when { resource.level * 9223372036854775807 >= 0 };",
    BROKEN,
]


@draws(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    policies=st.lists(st.sampled_from(RULES), max_size=4, unique=True),
    levels=st.lists(st.sampled_from(CLASSIFICATIONS), min_size=3, max_size=3),
    status=st.sampled_from(["draft", "final"]),
    words=st.lists(st.sampled_from(WORDS), min_size=3, max_size=3),
    owner=st.booleans(),
)
def test_nothing_of_what_is_denied_or_masked_is_seen(
    made: GovernedIndex, *, policies: list[str], levels: Sequence[str], status: str, words: list[str], owner: bool
) -> None:
    added = made.add("drawn.pdf", [f"{word} page{number}" for number, word in enumerate(words, 1)])
    file_id, time = f"file-{added.doc_id}", "2026-01-01T00:00:00+00:00"
    labels = [(f"page:{file_id}#{number}", "classification", level) for number, level in enumerate(levels, 1)]
    labels.append((f"document:{file_id}", "status", status))
    made.catalog.labels.put([Label(*each, given_at=time) for each in labels])
    access = made.access(Principal("me", owner=owner), "\n".join(policies) or "// nothing is permitted")
    seen = look(made, access)
    refs = [made.page(number, added) for number in (1, 2, 3)]
    rulings = access.decide(made.catalog, refs).rulings
    for ref, word, ruling in zip(refs, words, rulings, strict=True):
        if ruling.effect == "deny":
            assert ref not in seen.pages
        elif ruling.effect == "allow":
            assert word in seen.pages[ref]
        elif word == MAIL:
            assert seen.pages[ref].startswith("<EMAIL_")
        elif not ruling.text:
            assert seen.pages[ref] == WITHHELD
    if BROKEN in policies or not any("permit" in each for each in policies):
        assert seen.pages == {}
