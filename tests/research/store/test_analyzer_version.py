"""Pages analysed by other rules than questions: noticed, brought up to date by who may write, told by who may not."""

from __future__ import annotations

import pytest
from index_making import Making

from research.index import Index
from research.store import analyzer, integrity
from research.store.catalog import Catalog
from research.store.fulltext import fulltext_disagrees, update_if_outdated
from research.store.paths import write_lock


def _new_rules(patch: pytest.MonkeyPatch) -> None:
    """A version of the analyzer that keeps the words which ours leaves out."""
    patch.setattr(analyzer, "STOP_WORDS", frozenset())
    patch.setattr(analyzer, "RULES", analyzer.RULES + 1)


@pytest.fixture
def old(making: Making) -> Making:
    making.add("Who_Is_It.pdf", ["who is it", "walrus", "the"])
    making.add("b.pdf", ["seal"] * 500)  # more than are written at once
    making.catalog.close()
    return making


def _pages(catalog: Catalog, word: str) -> int:
    return len(catalog.words.find(catalog.words.statistics([word]), limit=1000))


def test_a_reader_that_may_write_updates_at_once(old: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    with Catalog(old.paths) as catalog:
        assert not catalog.words.is_outdated()
        assert catalog.pages.totals().pages_without_text == 2
        _new_rules(monkeypatch)
        assert catalog.words.is_outdated()
        assert _pages(catalog, "who") == 0
        assert catalog.words.name_matches(["who"]) == {}
        assert update_if_outdated(catalog)
        assert not catalog.words.is_outdated()
        assert _pages(catalog, "who") == 1
        assert _pages(catalog, "seal") == 500
        assert len(catalog.words.name_matches(["who"])) == 1
        assert catalog.pages.totals().pages_without_text == 0
        assert not fulltext_disagrees(catalog)
        assert not update_if_outdated(catalog), "there is nothing left to do"


def test_whoever_opens_for_writing_updates(old: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    _new_rules(monkeypatch)
    with Catalog(old.paths, writable=True) as catalog:
        assert not catalog.words.is_outdated()
        assert _pages(catalog, "who") == 1


def test_another_stemmer_is_another_version(old: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    with Catalog(old.paths) as catalog:
        import Stemmer

        monkeypatch.setattr(Stemmer, "version", lambda: "9.9.9")
        assert catalog.words.is_outdated()


def test_a_reader_that_may_not_answers_and_tells(old: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    _new_rules(monkeypatch)
    with write_lock(old.paths), Index.open(old.paths.root) as index:
        index.prepare()
        assert index.catalog.words.is_outdated(), "somebody else is writing"
        outcome = index.rank("seal", mode="lexical")
        assert len(outcome.found) == 10
        assert any("ctx doctor --fix" in note for note in outcome.coverage.notes)
        problems = [problem.message for problem in integrity.check_fulltext(index.catalog)]
        assert problems == ["full-text search was made by other rules than questions are read by"]
    with Index.open(old.paths.root) as index:
        index.prepare()
        assert not index.catalog.words.is_outdated()
        assert index.rank("seal", mode="lexical").coverage.notes == []


def test_an_index_of_before_is_updated_without_being_written_anew(old: Making) -> None:
    with Catalog(old.paths, writable=True) as catalog:
        catalog.execute("DELETE FROM meta WHERE key = 'analyzer'")
    with Catalog(old.paths) as catalog:
        assert catalog.words.is_outdated()
        before = catalog.execute("SELECT SUM(length(block)), MAX(id) FROM page_words_data").fetchone()
        assert update_if_outdated(catalog)
        assert not catalog.words.is_outdated()
        after = catalog.execute("SELECT SUM(length(block)), MAX(id) FROM page_words_data").fetchone()
        assert tuple(before) == tuple(after), "its words are the same"
        assert _pages(catalog, "seal") == 500


def test_damaged_full_text_is_left_to_the_doctor(old: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    with Catalog(old.paths, writable=True) as catalog:
        catalog.execute("UPDATE page_words_data SET block = x'ff00ff'")
    _new_rules(monkeypatch)
    with Catalog(old.paths, writable=True) as catalog:
        assert catalog.words.is_outdated()
        assert list(integrity.check_fulltext_words(catalog))
