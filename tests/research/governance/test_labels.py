"""Labels: what they are given to, that they stay while the thing does and no longer, which paths a pattern means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.errors import NothingFoundError, UsageError
from research.governance.access import CLASSIFICATIONS, Principal
from research.governance.labels import facts_of, path_matcher, resources_of, strictest
from research.store import (
    Label,
    NewItem,
    fold,
)
from tests.research.governance.governed_index import GovernedIndex
from tests.research.store.index_making import stamp

OWNER, ANNA = Principal("me", owner=True), Principal("anna", "anna")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[GovernedIndex]:
    index = GovernedIndex(tmp_path)
    yield index
    index.catalog.close()


def _seen(made: GovernedIndex, ref: str, who: Principal = OWNER) -> str:
    [found] = resources_of(made.catalog, [ref], who)
    return found.classification


def test_they_stay_with_a_file_that_changes_moves_or_becomes_a_copy(made: GovernedIndex) -> None:
    made.classify("report.pdf", "Confidential")
    made.classify(made.page(2), "Restricted")
    changed = made.add("report.pdf", ["new", "pages"], folder="/docs/hr")
    assert [_seen(made, made.page(number, changed)) for number in (1, 2)] == ["Confidential", "Restricted"]
    assert _seen(made, made.page(2)) == "Restricted", "the id it had before means it still"
    made.catalog.documents.rename(changed.doc_id, "/docs/hr/report.pdf", stamp("/docs/moved.pdf"), "moved.pdf")
    assert _seen(made, made.page(1, changed)) == "Confidential"
    # The file now holds what another document holds: that is one document at two places, and as strict as both.
    made.catalog.documents.note_file(made.paper.doc_id, stamp("/docs/moved.pdf"))
    assert made.catalog.documents.get(changed.doc_id) is None
    assert _seen(made, made.page(1, made.paper)) == "Confidential"


def test_they_stay_with_a_function_that_comes_back(made: GovernedIndex) -> None:
    made.classify("code:/src/a.py#swim", "Restricted")
    swim = NewItem("/src/a.py#swim", "swim", "def swim(): ...")
    for items in ([], [swim]):
        made.catalog.items.put("code", "/src/a.py", str(len(items)), items)
        assert made.catalog.labels.lost() == []
    assert _seen(made, "code:/src/a.py#swim") == "Restricted"


def test_they_leave_with_what_they_were_given_to(made: GovernedIndex) -> None:
    for target in ("report.pdf", made.page(2), "paper.pdf", "code:/src/a.py", "code:/src/a.py#swim", "commit:c0ffee",
                   "experience:exp", "value:val", "path:/docs", "tag:open"):  # fmt: skip
        made.classify(target, "Confidential")
    made.labels.put("memory:hers", {"status": "final"}, tenant="anna")
    made.labels.put("memory:mine", {"status": "final"})
    before = made.catalog.labels.state()
    made.catalog.documents.remove(made.report.doc_id)
    made.catalog.documents.forget_path("/docs/papers/paper.pdf")
    made.catalog.items.remove_parents("code", ["/src/a.py"])
    made.catalog.items.remove_parents("commit", ["/repo/.git"])
    made.catalog.items.remove_experiences(["exp"])
    with made.catalog.transaction() as connection:
        connection.memories.forget("anna", [1, 2])
    left = [(label.target, label.tenant) for label in made.catalog.labels.all()]
    assert left == [("memory:mine", ""), ("path:/docs", ""), ("tag:open", "")]
    assert made.catalog.labels.lost() == []
    made.labels.remove("tag:open")
    assert made.catalog.labels.state() != before


def test_a_memory_is_its_tenants_and_another_of_the_same_id_is_another(made: GovernedIndex) -> None:
    made.labels.put("memory:hers", {"classification": "Restricted"}, tenant="anna")
    with pytest.raises(NothingFoundError):
        made.labels.put("memory:hers", {"classification": "Public"})
    assert _seen(made, "memory:hers", ANNA) == "Restricted"
    assert made.labels.remove("memory:hers") == 0, "that would be the owner's"
    assert made.labels.remove("memory:hers", tenant="anna") == 1


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("hr", "/docs/hr/a.pdf", True),
        ("hr", "/docs/three/a.pdf", False),
        ("hr/*.pdf", "/docs/HR/deep/a.pdf", True),
        ("/docs/hr", "/docs/hr/a.pdf", True),
        ("/docs/hr", "/other/docs/hr/a.pdf", False),
        ("/docs/hr", "/docs/hr2/a.pdf", False),
        ("/", "/anything/at/all", True),
        ("*", "/anything", True),
        ("a.pdf", "/docs/a.pdf", True),
        ("a.pdf", "/docs/ba.pdf", False),
        ("[", "/docs/[/a", True),
        ("é.pdf", "/docs/e\u0301.pdf", True),
    ],
)
def test_patterns_of_paths(pattern: str, path: str, fits: bool) -> None:
    assert path_matcher(pattern)(f"{fold(path)}/") is fits


def test_what_cannot_be_a_label_is_refused(made: GovernedIndex) -> None:
    for target, values in (
        ("report.pdf", {"classification": "Secret"}),
        ("report.pdf", {"colour": "red"}),
        ("report.pdf", {"status": "a\nb"}),
        ("report.pdf", {}),
        ("path:", {"status": "a"}),
        ("path:a\0b", {"status": "a"}),
        ("tag: ", {"status": "a"}),
    ):
        with pytest.raises(UsageError):
            made.labels.put(target, values)
    assert made.catalog.labels.all() == []


@given(st.lists(st.sampled_from([*CLASSIFICATIONS, "Nonsense"])))
def test_the_strictest_holds_and_nonsense_is_the_strictest(levels: list[str]) -> None:
    found = facts_of([Label("t", "classification", level) for level in levels], "Internal")["classification"]
    known = [CLASSIFICATIONS.index(each) if each in CLASSIFICATIONS else 3 for each in levels]
    assert found == (CLASSIFICATIONS[max(known)] if known else "Internal")
    assert strictest(levels) == ("" if not levels else found)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GovernedIndex]:
    index = GovernedIndex(tmp_path_factory.mktemp("forged"))
    yield index
    index.catalog.close()


@given(
    st.lists(
        st.one_of(
            st.text(),
            st.builds("{}:{}{}".format, st.sampled_from(["page", "memory", "code", "commit", "document", "session"]),
                      st.sampled_from(["hers", "/src/a.py", "c0ffee", "file-", "' OR 1=1 --"]), st.text()),
        ),
        max_size=8,
    )
)  # fmt: skip
def test_whatever_a_ref_says_it_is_known_or_unknown(shared: GovernedIndex, refs: list[str]) -> None:
    found = resources_of(shared.catalog, refs, OWNER)
    assert [each.ref for each in found] == refs
    for each in found:
        assert each.kind != "unknown" or each.classification == "Restricted"
        assert each.kind == "unknown" or each.ref in {"code:/src/a.py", "commit:c0ffee"}
