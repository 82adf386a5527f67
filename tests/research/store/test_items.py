"""Items in the catalog: replaced by parent, kept where they stay what they were, gone when they are removed."""

from __future__ import annotations

import threading
from itertools import count

import numpy as np
import pytest
from backup_changing import unit_rows
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from index_making import Making

from research.errors import UsageError
from research.store import items as stored
from research.store.fulltext import fulltext_disagrees
from research.store.item_writes import ParentItems, Written
from research.store.items import NewItem
from research.store.words import asked_words
from tests.pace import draws

TIME = "2026-01-01T00:00:00+00:00"


def item(key: str, text: str = "", **more: object) -> NewItem:
    return NewItem(key, key, text or key, created_at=TIME, **more)  # type: ignore[arg-type]


def _texts(making: Making, kind: str = "code") -> dict[str, str]:
    return {each.key: each.text for each in making.catalog.items.all(kind)}


def test_a_parent_s_items_are_replaced_whole(making: Making) -> None:
    first = making.catalog.items.put("code", "/a.py", "1", [item("a#one"), item("a#two"), item("a#three")])
    assert first == Written(added=3)
    before = {each.key: each.item_no for each in making.catalog.items.all("code")}
    again = making.catalog.items.put("code", "/a.py", "2", [item("a#two"), item("a#three", "other"), item("a#four")])
    assert again == Written(added=1, changed=1, kept=1, removed=1)
    after = {each.key: each.item_no for each in making.catalog.items.all("code")}
    assert _texts(making) == {"a#two": "a#two", "a#three": "other", "a#four": "a#four"}
    assert (after["a#two"], after["a#three"]) == (before["a#two"], before["a#three"])
    assert after["a#four"] > max(before.values()), "no number is given twice"
    assert making.catalog.items.parent("code", "/a.py").stamp == "2"  # type: ignore[union-attr]


def test_what_is_embedded_the_same_keeps_its_vector(making: Making) -> None:
    making.catalog.items.put("code", "/a.py", "1", [item("moved", metadata={"line": 1}), item("changed")])
    numbers = [each.item_no for each in making.catalog.items.all("code")]
    making.catalog.items.write_vectors("made-up", numbers, unit_rows(2).astype(np.float32))
    making.catalog.items.put("code", "/a.py", "2", [item("moved", metadata={"line": 7}), item("changed", "anew")])
    waiting = making.catalog.items.pending(making.catalog.items.without_vectors("code", "made-up"))
    assert [each.parts for each in waiting] == [("changed\nanew",)]
    assert making.catalog.items.without_vectors("code", "another") == numbers


def test_vectors_are_one_a_part(making: Making) -> None:
    making.catalog.items.put("code", "/a.py", "1", [item("a", embedded="one\ftwo"), item("b")])
    waiting = making.catalog.items.pending(making.catalog.items.without_vectors("code", "made-up"))
    assert [each.parts for each in waiting] == [("one", "two"), ("b",)]
    numbers = [each.item_no for each in waiting for _ in each.parts]
    making.catalog.items.write_vectors("made-up", [*numbers, 999], unit_rows(4).astype(np.float32))
    found, vectors = making.catalog.items.vectors("code", "made-up")
    assert found == numbers
    assert vectors.shape[0] == 3


def test_a_long_item_is_embedded_by_its_beginning_in_parts() -> None:
    parts = stored.parts_of("title", "word " * 5000, "")
    assert len(parts) == 4
    assert all(len(part) <= 1000 for part in parts)
    assert stored.parts_of("", "", "") == ("",)
    assert stored.parts_of("", "x" * 900_000, "")[0] == "x" * 500


def test_one_key_belongs_to_one_parent(making: Making) -> None:
    making.catalog.items.put("commit", "/one", "1", [item("abc", "first")])
    assert making.catalog.items.put("commit", "/two", "1", [item("abc", "second")]) == Written(elsewhere=1)
    assert _texts(making, "commit") == {"abc": "first"}
    assert making.catalog.items.put("code", "/two", "1", [item("abc")]) == Written(added=1), "of another kind"


def test_some_items_come_and_go_alone(making: Making) -> None:
    making.catalog.items.put("commit", "/repo", "1", [item("a"), item("b")])
    assert making.catalog.items.put("commit", "/repo", "2", [item("b", "new"), item("c")], replace=False) == Written(
        1, 1
    )
    assert making.catalog.items.remove("commit", ["a", "nobody"]) == 1
    assert _texts(making, "commit") == {"b": "new", "c": "c"}
    assert making.catalog.items.known_keys("commit", ["a", "b"]) == {"b"}


def test_parents_below_a_folder(making: Making) -> None:
    for path in ("/src/a.py", "/src/b/c.py", "/src2/a.py", "/src"):
        making.catalog.items.put("code", path, "1", [item(path)])
    below = [each.parent for each in making.catalog.items.parents("code", below="/src")]
    assert below == ["/src", "/src/a.py", "/src/b/c.py"]
    assert making.catalog.items.count_parents("code") == 4
    assert making.catalog.items.remove_parents("code", below) == 3
    assert making.catalog.items.count() == {"code": 1}


def test_what_does_not_fit_is_refused_and_nothing_written(making: Making) -> None:
    for wrong in (item("a", "x" * 70_000), item("k" * 9000), NewItem("", "", "")):
        with pytest.raises(UsageError):
            making.catalog.items.put("code", "/a.py", "1", [item("fine"), wrong])
    with pytest.raises(ValueError, match="no kind"):
        making.catalog.items.put("poem", "/a", "1", [])
    assert making.catalog.items.count() == {}
    assert making.catalog.items.parents("code") == []


def test_a_short_write_finds_its_turn_while_many_are_written(making: Making) -> None:
    stop = threading.Event()

    def ingest() -> None:
        for number in count():
            parent = f"/{number % 50}.py"
            rows = [item(f"{parent}#{n}", f"number {number} " * 50) for n in range(40)]
            making.catalog.items.put_parents("code", [ParentItems(parent, str(number), rows)])
            if stop.is_set():
                return

    running = threading.Thread(target=ingest)
    running.start()
    try:
        for number in range(5):
            making.catalog.items.put("experience", f"e{number}", "", [item(f"e{number}/full")], short=True)
    finally:
        stop.set()
        running.join()
    assert making.catalog.items.count()["experience"] == 5


def test_identifiers_are_words_and_wholes() -> None:
    for written in ("parseHttpDate", "parse_http_date", "ParseHTTPDate", "PARSE_HTTP_DATE"):
        assert asked_words(written) == ["pars", "http", "date", "parsehttpd"], written
    assert asked_words("parse http date") == ["pars", "http", "date"]
    assert asked_words("sha256 of x_1") == ["sha", "256", "x", "1", "sha256", "x1"]


Keys = st.sampled_from(["a", "b", "c", "d"])
Texts = st.sampled_from(["walrus", "seal", "parseHttpDate"])
Puts = st.lists(st.tuples(st.sampled_from(["/x", "/y"]), st.dictionaries(Keys, Texts)), max_size=6)


@draws(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(puts=Puts)
def test_the_last_put_of_a_parent_holds(puts: list[tuple[str, dict[str, str]]], making: Making) -> None:
    making.catalog.items.remove_parents("code", ["/x", "/y"])
    held: dict[str, dict[str, str]] = {"/x": {}, "/y": {}}
    for number, (parent, texts) in enumerate(puts):
        other = held["/y" if parent == "/x" else "/x"]
        held[parent] = {key: text for key, text in texts.items() if key not in other}
        making.catalog.items.put("code", parent, str(number), [item(key, text) for key, text in texts.items()])
        for name, wanted in held.items():
            found = {each.key: each.text for each in making.catalog.items.all("code", parent=name)}
            assert found == wanted
    assert not fulltext_disagrees(making.catalog)
