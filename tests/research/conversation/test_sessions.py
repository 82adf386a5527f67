"""Sessions of an index: kept, gone on with, apart from each other, and gone when they are to be."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from research.answer import CheckedAnswer, WrittenAnswer
from research.errors import NothingFoundError, UsageError
from research.index import Index
from research.store import Catalog, write_lock
from tests.conftest import built_once
from tests.research.conversation.talking import PAGES, add, doc_id_of, make_talkative

MANUAL = "g4-controller-manual.pdf"
GUARANTEE, VANE = "How long is the guarantee of the G4?", "And for the wind vane?"


@pytest.fixture
def index(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Iterator[Index]:
    root = shutil.copytree(built_once(tmp_path_factory, "talkative-index", make_talkative), tmp_path / "index")
    with Index(root) as opened:
        yield opened


def test_a_session_is_kept_and_gone_on_with(index: Index) -> None:
    first = index.ask(GUARANTEE, session="thesis")
    second = index.ask(VANE, session="thesis")
    assert [(each.session, each.turn) for each in (first, second)] == [("thesis", 1), ("thesis", 2)]
    assert (first.follows, second.follows) == ("", GUARANTEE)
    assert second.searched == f"{VANE} guarantee G4"
    assert [rewrite.name for rewrite in second.rewrites] == ["follow-up"]
    assert (MANUAL, 2) in [(source.filename, source.page) for source in second.sources[:2]]
    assert second.to_dict()["session"] == {"name": "thesis", "turn": 2}
    turns = index.sessions.get("thesis")
    assert [(turn.number, turn.question, turn.searched) for turn in turns] == [
        (1, GUARANTEE, GUARANTEE),
        (2, VANE, second.searched),
    ]
    assert [source.ref for source in turns[1].sources] == [source.ref for source in second.sources]
    assert [quote for source in turns[0].sources for quote in source.quotes]
    assert "36 months" in str(turns[0].to_dict()["sources"])


def test_a_turn_is_asked_again_as_it_was_and_not_kept_anew(index: Index) -> None:
    asked = [index.ask(question, session="thesis") for question in (GUARANTEE, VANE, "What does E02 mean?")]
    again = index.ask(VANE, session="thesis", turn=2)
    assert (again.searched, again.turn, again.formatted_text) == (asked[1].searched, 2, asked[1].formatted_text)
    assert index.ask(VANE, session="thesis", turn=1).searched == VANE, "nothing was asked before it"
    assert len(index.sessions.get("thesis")) == 3


def test_a_report_that_is_not_named_is_the_one_that_was_talked_of(index: Index) -> None:
    index.ask(GUARANTEE, session="thesis")
    found = index.ask("Summarise the document", session="thesis")
    assert {source.filename for source in found.sources[:1]} == {MANUAL}
    assert "No summary of its own was found in the document; it begins so (page 1)." in found.coverage.notes


def test_without_a_session_nothing_is_kept(index: Index) -> None:
    context = index.ask(GUARANTEE)
    assert (context.session, context.turn, "session" in context.to_dict()) == ("", 0, False)
    assert index.sessions.list() == []


def test_questions_that_were_asked_elsewhere_are_leant_on_and_not_kept(index: Index) -> None:
    context = index.ask(VANE, before=["What does E02 mean?", GUARANTEE])
    assert context.searched == f"{VANE} guarantee G4"
    assert index.ask("And who makes it?", before=[GUARANTEE, VANE]).searched.endswith("G4"), "each leans on the last"
    assert context.follows == GUARANTEE
    assert index.sessions.list() == []


def test_what_a_model_is_asked_names_the_question_before(index: Index) -> None:
    index.ask(GUARANTEE, session="s")
    context = index.ask(VANE, session="s")
    assert context.asked == f"{VANE} (It goes on from the question before it: {GUARANTEE})"
    assert GUARANTEE in index.prompt(context).messages[-1].text
    written = WrittenAnswer("It is covered for 12 months [1].", True, "tiny", "")
    index.keep_answer(context, CheckedAnswer(written))
    assert [(turn.answer, turn.model) for turn in index.sessions.get("s")] == [("", ""), (written.text, "tiny")]


def test_tenants_and_sessions_are_apart(index: Index) -> None:
    index.ask(GUARANTEE, session="s", tenant="anna")
    assert index.ask(VANE, session="s", tenant="ben").follows == ""
    assert index.ask(VANE, session="other", tenant="anna").follows == ""
    assert index.ask(VANE, session="s", tenant="anna").follows == GUARANTEE
    assert [session.name for session in index.sessions.list(tenant="anna")] == ["s", "other"]
    assert [(session.name, session.turns) for session in index.sessions.list(tenant="ben")] == [("s", 1)]
    assert index.sessions.list() == []
    with pytest.raises(NothingFoundError):
        index.sessions.get("other", tenant="ben")
    index.sessions.remove("s", tenant="ben")
    assert len(index.sessions.get("s", tenant="anna")) == 2


def test_a_session_that_is_removed_takes_its_memories_along_and_leaves_no_trace(index: Index) -> None:
    index.ask(GUARANTEE, session="s")
    index.memories.remember("Anna likes zebrafish", session="s", tenant="", id="one")
    index.memories.remember("A summary: zebrafish", type="session_summary", metadata={"sources": ["one"]}, id="sum")
    index.memories.remember("Ben likes newts", session="t", id="two")
    removed = index.sessions.remove("s")
    assert (removed.turns, removed.memories, removed.summaries) == (1, ("one",), ("sum",))
    assert [memory.id for memory in index.memories.list()] == ["two"]
    with pytest.raises(NothingFoundError):
        index.sessions.get("s")
    with pytest.raises(NothingFoundError):
        index.sessions.remove("s")
    index.close()
    content = b"".join(file.read_bytes() for file in sorted(index.root.glob("catalog.sqlite3*")))
    assert b"zebrafish" not in content
    assert GUARANTEE.encode() not in content


@pytest.mark.parametrize("name", ["", "   ", "two\nlines", "x" * 201, "\x1b[31m"])
def test_a_name_is_one_line(index: Index, name: str) -> None:
    with pytest.raises(UsageError):
        index.ask(GUARANTEE, session=name)
    assert index.sessions.list() == []


def test_a_document_that_is_removed_takes_its_words_out_of_every_turn(index: Index) -> None:
    index.ask(GUARANTEE, session="s")
    context = index.ask(VANE, session="s")
    index.keep_answer(context, CheckedAnswer(WrittenAnswer("Twelve months [1].", True, "tiny", "")))
    with write_lock(index.paths), Catalog(index.paths, writable=True) as catalog:
        catalog.documents.remove(doc_id_of(MANUAL))
    for turn in index.sessions.get("s"):
        assert (turn.answer, turn.searched) == ("", turn.question)
        assert all(source.filename != MANUAL for source in turn.sources)
    assert all(check.severity == "ok" for check in index.admin.check() if check.name == "sessions")
    assert index.ask("And in summer?", session="s").turn == 3


def test_a_file_that_changes_keeps_its_citations_and_loses_its_quotes(index: Index) -> None:
    index.ask(GUARANTEE, session="s")
    with write_lock(index.paths), Catalog(index.paths, writable=True) as catalog:
        again = add(catalog, MANUAL, PAGES[MANUAL])  # read again: the same content
        assert any(source.quotes for source in index.sessions.get("s")[0].sources if source.doc_id == again)
        changed = add(catalog, MANUAL, [*PAGES[MANUAL], "A new page."], version=1)
        cited = [source for source in index.sessions.get("s")[0].sources if source.doc_id == changed]
        assert cited
        assert not any(source.quotes for source in cited)
        catalog.documents.forget_path(f"/gone/{MANUAL}")
    assert not [source for source in index.sessions.get("s")[0].sources if source.filename == MANUAL]


def test_two_turns_of_one_session_at_once_are_both_kept(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 50.0)
    index.ask("warm up")
    threads = [threading.Thread(target=index.ask, args=(GUARANTEE,), kwargs={"session": "s"}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [turn.number for turn in index.sessions.get("s")] == [1, 2, 3, 4]


def test_an_index_that_is_being_written_answers_all_the_same_and_says_that_the_turn_is_lost(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("research.store.catalog._SHORT_BUSY_SECONDS", 0.05)
    with index.catalog.short_write() as connection:
        connection.execute("UPDATE meta SET value = value")
        context = index.ask(GUARANTEE, session="s")
    assert context.sources
    assert context.turn == 0
    assert "not kept" in context.coverage.notes[-1]
    assert index.sessions.list() == []
