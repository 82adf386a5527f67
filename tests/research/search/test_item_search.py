"""Items searched by words and vectors, as the catalog has them at each moment."""

from __future__ import annotations

import numpy as np
import pytest

from research.encoders import TextEncoder
from research.errors import CtxError
from research.search.items import FoundItems, ItemSearch
from research.store import Catalog, NewItem, Reader

TIME = "2026-01-01T00:00:00+00:00"
CODE = {
    "parseHttpDate": "function parseHttpDate(value) { return Date.parse(value) }",
    "send_mail": "def send_mail(to, body): smtp.send(to, body)",
    "close": "def close(self): self.connection.close()",
}


def put(catalog: Catalog, texts: dict[str, str], kind: str = "code", parent: str = "/a") -> None:
    items = [
        NewItem(key, key, text, TIME, {"name": key, "long": len(text) > 50, "number": number})
        for number, (key, text) in enumerate(texts.items())
    ]
    catalog.items.put(kind, parent, "1", items)


def keys(found: FoundItems) -> list[str]:
    return [each.item.key for each in found.items]


@pytest.fixture
def search(encoder: TextEncoder) -> ItemSearch:
    return ItemSearch("code", lambda reader: encoder)


@pytest.mark.parametrize("written", ["parseHttpDate", "parse_http_date", "parse http date", "ParseHTTPDate"])
def test_identifiers_find_each_other(catalog: Catalog, search: ItemSearch, written: str) -> None:
    put(catalog, CODE)
    with catalog.snapshot() as reader:
        assert keys(search.find(reader, written, 3))[0] == "parseHttpDate"


def test_meaning_finds_what_no_word_does(catalog: Catalog, search: ItemSearch) -> None:
    put(catalog, CODE)
    with catalog.snapshot() as reader:
        found = search.find(reader, "dispatching an electronic message", 1)
    assert keys(found) == ["send_mail"]
    assert found.items[0].parts["words"] == 0.0
    assert 0.0 < found.items[0].score < 1.0


def test_filters_leave_what_has_the_metadata(catalog: Catalog, search: ItemSearch) -> None:
    put(catalog, CODE)
    with catalog.snapshot() as reader:
        assert keys(search.find(reader, "close", 5, where={"name": "send_mail"})) == ["send_mail"]
        assert set(keys(search.find(reader, "close", 5, where={"name": ["send_mail", "close"]}))) == {
            "send_mail",
            "close",
        }
        assert keys(search.find(reader, "date", 5, where={"name": "parseHttpDate", "long": True})) == ["parseHttpDate"]
        assert keys(search.find(reader, "close", 5, where={"name": []})) == []
        assert keys(search.find(reader, "close", 5, where={"unheard": "of"})) == []
        assert search.find(reader, "close", 0).items == ()


def test_it_follows_what_is_written(catalog: Catalog, search: ItemSearch, encoder: TextEncoder) -> None:
    put(catalog, CODE)
    with catalog.snapshot() as reader:
        first = search.find(reader, "close", 9)
    assert first.searched == 3
    assert first.fresh is not None
    catalog.items.write_vectors(encoder.name, first.fresh.numbers, first.fresh.vectors)
    put(catalog, {**CODE, "close": "def close(self): nothing", "stop_clock": "def stop_clock(): clock.halt()"})
    put(catalog, {"other": "of another parent"}, parent="/b")
    with catalog.snapshot() as reader:
        again = search.find(reader, "halt the clock", 9)
        assert keys(again)[0] == "stop_clock"
        assert again.fresh is not None
        assert len(again.fresh.numbers) == 3, "what stayed is not embedded again"
    catalog.items.remove_parents("code", ["/a"])
    with catalog.snapshot() as reader:
        assert keys(search.find(reader, "close halt another parent", 9)) == ["other"]


def test_kinds_do_not_change_each_other_s_words(catalog: Catalog) -> None:
    put(catalog, CODE)
    search = ItemSearch("code", _no_encoder)
    with catalog.snapshot() as reader:
        alone = search.find(reader, "close the connection and send mail", 3)
    for number in range(40):
        put(catalog, {f"h{number}": "close connection mail " * (number + 1)}, "commit", f"/{number}")
    with catalog.snapshot() as reader:
        beside = ItemSearch("code", _no_encoder).find(reader, "close the connection and send mail", 3)
    assert [each.item.key for each in alone.items] == [each.item.key for each in beside.items]
    np.testing.assert_allclose([e.total for e in alone.items], [e.total for e in beside.items], rtol=1e-4)


def test_without_an_encoder_words_answer_and_it_is_told(catalog: Catalog) -> None:
    put(catalog, CODE)
    with catalog.snapshot() as reader:
        found = ItemSearch("code", _no_encoder).find(reader, "send mail", 3)
    assert keys(found) == ["send_mail"]
    assert "no such model" in found.notes[0]


def test_a_long_item_is_found_by_its_last_part(catalog: Catalog, search: ItemSearch, encoder: TextEncoder) -> None:
    padding = "\n".join(f"x{n} = compute_{n}(a, b, c)" for n in range(150))
    put(catalog, {"long": f"{padding}\nsmtp.send(mail)"[:3900], "short": "def nothing(): pass"})
    with catalog.snapshot() as reader:
        found = search.find(reader, "anything", 2)
    assert found.fresh is not None
    assert found.fresh.vectors.shape == (len(found.fresh.numbers), encoder.dim)
    catalog.items.write_vectors(encoder.name, found.fresh.numbers, found.fresh.vectors)
    assert catalog.items.vectors("code", encoder.name)[0] == list(found.fresh.numbers)


def _no_encoder(reader: Reader) -> TextEncoder:
    raise CtxError("no such model")
