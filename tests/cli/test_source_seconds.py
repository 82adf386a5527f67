"""One time limit for every door: a source that sleeps is named, and the others answer."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from research.conversation import TurnMaker
from research.index import Index
from research.settings import Settings
from research.sources import CodeSource, DocumentsSource, MemoriesSource
from tests.cli.conftest import Ran

ASKED = "What happens to uploads that fail?"
LATE = "timed out after 0.3 s"
_SLEEP = 40.0

Sleeping = Callable[[type, str], None]


@pytest.fixture
def sleeping(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sleeping]:
    """Makes the sources of a class sleep; they wake when the test is over. Nobody may have waited for them."""
    wake, began = threading.Event(), time.monotonic()
    yield lambda source, method: monkeypatch.setattr(source, method, lambda *_, **__: wake.wait(_SLEEP))
    wake.set()
    assert time.monotonic() - began < _SLEEP


@pytest.fixture
def warm(of_everything: Path, tmp_path: Path) -> Iterator[Index]:
    """Everything is loaded, so that what does not sleep answers in time."""
    shutil.copytree(of_everything, tmp_path / "warm")
    with Index.open(tmp_path / "warm", Settings(source_seconds=0.3)) as index:
        index.context(ASKED, ["documents", "memories", "code"])
        TurnMaker(index).build_now({"user_message": ASKED}, documents=True)
        yield index


def package_of(index: Index) -> Any:
    return index.packages.build({"intent": ASKED, "token_budget": 2000, "scope": {"types": ["documents", "memories"]}})


def test_ask_with_types_does_not_wait_for_a_source_that_sleeps(
    call: Callable[..., Ran], of_everything: Path, sleeping: Sleeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeping(CodeSource, "find")
    monkeypatch.setenv("CTX_SOURCE_SECONDS", "0.3")
    asked = ("ask", ASKED, "--mode", "lexical", "--index", str(of_everything))
    answer = call(*asked, "--types", "documents,code", "--json").document
    states = {each["name"]: (each["status"], each["reason"]) for each in answer["coverage"]["sources"]}
    assert states == {"documents": ("ok", ""), "code": ("down", LATE)}
    assert answer["sources"]
    told = call(*asked, "--types", "documents,code")
    assert (told.code, LATE in told.err) == (0, True)
    alone = call(*asked, "--types", "code")
    assert alone.code == 1
    assert "no source answered in time" in alone.err
    assert "CTX_SOURCE_SECONDS" in alone.err


def test_context_does_not_wait(warm: Index, sleeping: Sleeping) -> None:
    sleeping(MemoriesSource, "find")
    context = warm.context(ASKED, ["memories", "code"])
    assert {each.name: each.reason for each in context.coverage.sources} == {"memories": LATE, "code": ""}
    assert context.sources_used.keys() == {"code"}


def test_a_package_does_not_wait(warm: Index, sleeping: Sleeping) -> None:
    package_of(warm)
    sleeping(DocumentsSource, "retrieve")
    package = package_of(warm)
    reasons = {each.name: each.reason for each in package.coverage.retrievals}
    assert (reasons["documents"], reasons["memories"]) == (LATE, "")
    assert package.sources


def test_a_turn_does_not_wait_for_memories(warm: Index, sleeping: Sleeping) -> None:
    sleeping(MemoriesSource, "find")
    turn = TurnMaker(warm).build_now({"user_message": ASKED}, documents=True)
    assert turn.documents
    told = {"status": "failed", "reason": "the memory service did not answer within 0.3 s", "candidates": 0}
    assert turn.context.debug["retrieval"] == told


def test_a_turn_does_not_wait_for_documents(warm: Index, sleeping: Sleeping) -> None:
    sleeping(DocumentsSource, "retrieve")
    turn = TurnMaker(warm).build_now({"user_message": ASKED}, documents=True)
    assert (turn.documents, turn.context.debug["documents"]) == ([], LATE)
    assert turn.context.messages[-1]["content"] == ASKED
    assert turn.context.snippets


def test_what_was_given_up_reads_no_further_nor_another_questions_rows(of_everything: Path) -> None:
    """A thread that goes on alone has the snapshot of a question that is over."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with Index.open(of_everything) as index:
        with index.catalog.snapshot() as reader:
            call = index.workers.start(lambda: reader.execute(endless))
            assert call.wait(0.1).late
        assert "interrupted" in str(call.wait(60).error)
        with pytest.raises(Exception, match="the question is over"):
            reader.execute("SELECT 1")
        with index.catalog.snapshot() as reader:
            assert reader.execute("SELECT 2").fetchone()[0] == 2
