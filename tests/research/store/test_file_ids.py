"""A changed file keeps its lasting id, and the ids it had before go on meaning it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from index_making import Making, stamp

from research.records import DocumentInfo
from research.store import integrity
from tests.pace import draws


def means(making: Making, wanted: str) -> str:
    """The name of the one document that an id means now; empty if none."""
    ids = making.catalog.names.current_ids([wanted])
    found = making.catalog.documents.get(ids[0]) if ids else None
    return "" if found is None else found.filename


def now(making: Making, name: str) -> DocumentInfo:
    [found] = [info for info in making.catalog.documents.all() if info.filename == name]
    return found


def test_a_chain_of_changes_and_back(making: Making) -> None:
    versions = [making.add("a.pdf", [text]) for text in ("first", "second", "third")]
    lasting = now(making, "a.pdf").file_id
    assert lasting == f"file-{versions[0].doc_id}"
    assert [means(making, info.doc_id) for info in versions] == ["a.pdf"] * 3
    assert making.catalog.names.current_ids([lasting, versions[0].doc_id]) == [versions[2].doc_id], "each document once"
    assert making.count("former_ids") == 2
    making.add("a.pdf", ["first"])
    assert now(making, "a.pdf") == versions[0]
    assert now(making, "a.pdf").file_id == lasting
    assert [means(making, info.doc_id) for info in versions] == ["a.pdf"] * 3
    assert making.count("former_ids") == 2, "an id of today is no former one"


def test_a_renamed_file_keeps_everything(making: Making) -> None:
    before = making.add("a.pdf", ["before"])
    info = making.add("a.pdf", ["after"])
    making.catalog.documents.rename(info.doc_id, "/docs/a.pdf", stamp("/docs/b.pdf"), "b.pdf")
    assert now(making, "b.pdf").file_id == f"file-{before.doc_id}"
    assert means(making, before.doc_id) == "b.pdf"
    changed = making.add("b.pdf", ["later"])
    assert {means(making, doc_id) for doc_id in (before.doc_id, info.doc_id, changed.doc_id)} == {"b.pdf"}


def test_a_copy_keeps_the_text_and_its_ids(making: Making) -> None:
    info = making.add("a.pdf", ["text"])
    making.catalog.documents.note_file(info.doc_id, stamp("/docs/copy.pdf"))
    changed = making.add("a.pdf", ["another text"])
    assert means(making, info.doc_id) == means(making, f"file-{info.doc_id}") == "copy.pdf"
    assert now(making, "a.pdf").file_id == f"file-{changed.doc_id}", "a file of its own from now on"
    assert making.count("former_ids") == 0
    later = making.add("a.pdf", ["text"], version=2)  # changed back: two copies again
    assert later.doc_id == info.doc_id
    assert means(making, changed.doc_id) == means(making, f"file-{changed.doc_id}") == means(making, info.doc_id)


def test_a_file_that_takes_the_text_of_another(making: Making) -> None:
    """By `ingest`, which notes that the text is known instead of reading it: both files' ids mean it."""
    one, other = making.add("a.pdf", ["one"]), making.add("b.pdf", ["other"])
    making.catalog.labels.add_tags([one.doc_id], ["tax"])
    making.catalog.documents.note_file(other.doc_id, stamp("/docs/a.pdf"))
    assert [info.filename for info in making.catalog.documents.all()] == ["b.pdf"]
    for wanted in (one.doc_id, f"file-{one.doc_id}", other.doc_id, f"file-{other.doc_id}"):
        assert means(making, wanted) == "b.pdf"
    assert making.catalog.labels.tags(other.doc_id) == ["tax"]
    # The text that went comes back in a third file: its id means that file, the lasting one stays where it was.
    making.add("c.pdf", ["one"])
    assert means(making, one.doc_id) == "c.pdf"
    assert means(making, f"file-{one.doc_id}") == "b.pdf"
    assert now(making, "c.pdf").file_id == f"file-{one.doc_id}-2"
    assert means(making, f"file-{one.doc_id}-2") == "c.pdf"


def test_what_is_removed_takes_its_ids_with_it(making: Making) -> None:
    before = making.add("a.pdf", ["before"])
    info = making.add("a.pdf", ["after"])
    making.catalog.documents.remove(info.doc_id)
    for wanted in (before.doc_id, info.doc_id, f"file-{before.doc_id}"):
        assert means(making, wanted) == ""
    assert making.count("former_ids") == making.count("tags") == 0
    again = making.add("a.pdf", ["after"])
    assert now(making, "a.pdf").file_id == f"file-{again.doc_id}"
    gone = making.catalog.documents.forget_path("/docs/a.pdf")
    assert gone is not None
    assert gone.doc_id == again.doc_id
    assert making.catalog.documents.forget_path("/docs/a.pdf") is None


def test_former_ids_are_found_by_their_beginning_too(making: Making) -> None:
    before = making.add("a.pdf", ["before"])
    after = making.add("a.pdf", ["after"])
    for wanted in (before.doc_id, before.doc_id[:6], before.doc_id[:4], f"page:{before.doc_id}#7", after.doc_id[:8]):
        assert [found.doc_id for found in making.catalog.names.find(wanted)] == [after.doc_id]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("abc"), st.sampled_from("123")),
        st.tuples(st.just("copy"), st.sampled_from("abc"), st.sampled_from("abc")),
        st.tuples(st.just("forget"), st.sampled_from("abc"), st.just("")),
    ),
    max_size=10,
)


class Files:
    """What three files hold, and which ids mean what each of them holds."""

    def __init__(self) -> None:
        self.content: dict[str, str] = {}
        self.ids: dict[str, set[str]] = {}

    def leave(self, name: str) -> None:
        """A file is about to hold something else, or nothing: another with the same text keeps the ids."""
        old = self.content.pop(name, "")
        copy = next((other for other, doc_id in self.content.items() if doc_id == old), "")
        if copy:
            self.ids[copy] |= self.ids.pop(name)

    def take(self, name: str, doc_id: str) -> None:
        if self.content.get(name) != doc_id:
            self.leave(name)
        self.content[name] = doc_id
        self.ids.setdefault(name, set()).add(doc_id)
        for ids in (ids for other, ids in self.ids.items() if self.content.get(other) != doc_id):
            ids.discard(doc_id)  # an id that a document has today means that document


@draws(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_whatever_happens_an_id_means_what_its_file_holds(making: Making, steps: list[tuple[str, str, str]]) -> None:
    for info in making.catalog.documents.all():
        making.catalog.documents.remove(info.doc_id)
    files = Files()
    for step, name, other in steps:
        path = f"/docs/{name}.pdf"
        if step == "write":
            files.take(name, making.add(f"{name}.pdf", [f"text {other}"]).doc_id)
        elif step == "copy" and other in files.content:
            making.catalog.documents.note_file(files.content[other], stamp(path))
            files.take(name, files.content[other])
        elif step == "forget":
            making.catalog.documents.forget_path(path)
            files.leave(name)
            files.ids.pop(name, None)
    known = making.catalog.documents.all()
    assert {info.doc_id for info in known} == set(files.content.values())
    assert len({info.file_id for info in known}) == len(known)
    for info in known:
        assert making.catalog.names.current_ids([info.doc_id, info.file_id]) == [info.doc_id]
    for name, ids in files.ids.items():
        assert making.catalog.names.current_ids(sorted(ids)) == [files.content[name]]
    assert [problem.message for check in integrity.FULL for problem in check(making.catalog)] == []


@pytest.mark.parametrize("name", ["a.pdf", "page:0000000000000000#1", "0" * 16, "file-" + "0" * 16, ""])
def test_what_is_no_id_means_nothing(making: Making, name: str) -> None:
    making.add("a.pdf", ["text"])
    assert making.catalog.names.current_ids([name]) == []
