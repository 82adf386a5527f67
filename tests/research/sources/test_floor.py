"""One score and one floor: what one memory answers is answered among mixed sources, and junk is shown by no door."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest import ingest, ingest_code
from research.conversation import TurnMaker
from research.index import Index
from research.service.mcp import tasks
from research.service.mcp.results import Budget
from research.settings import FLOOR
from research.sources.records import CONTEXT_TYPES
from tests.conftest import SAMPLES, built_once
from tests.in_process import run_in_process

# A memory, and a question that it alone answers; nothing of this is in what curves are fitted on.
TOLD = {
    "Frieda from legal must sign every contract above 5,000 euros": "Who signs large contracts?",
    "The demo account for the fair is fair2026 and it is wiped each evening": "Which account do we show at the fair?",
    "Our office is closed between Christmas and New Year": "When is the office closed in winter?",
    "The printer on the second floor only takes recycled paper": "What paper does the printer upstairs need?",
    "Olu is on parental leave until the first of June": "When does Olu come back to work?",
    "We write British English in everything that customers see": "Do we use American or British spelling?",
    "The alarm code is changed on the first Monday of the month": "How often does the code of the alarm change?",
    "Invoices to Denmark need the reference of the purchase order": "What must be on an invoice to a Danish customer?",
    "I get migraines from the fluorescent lights in room 4": "Why do I avoid room 4?",
    "Interns may not be left alone in the laboratory": "May an intern stay alone in the lab?",
    "The coffee machine is descaled every second Friday by Ken": "Who descales the coffee machine?",
    "The backup generator is tested on the last Thursday of each quarter": "When is the generator tested?",
    "Travel is booked through the agency in Ghent, never by oneself": "How do I book a business trip?",
    "Sofia's farewell is on 12 July in the garden": "When do we say goodbye to Sofia?",
    "The logo must never be printed in red": "In which colour may the logo not appear?",
}
JUNK = ("best pizza in Naples", "How tall is Mount Kilimanjaro?", "symptoms of scarlet fever", "zzzz qqqq xyzzy")


@pytest.fixture(scope="module")
def mixed(of_everything: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """A program, its history, documents, experiences, and what an office remembers."""

    def make(root: Path) -> None:
        shutil.copytree(of_everything, root)
        with Index.open(root) as index:
            ingest(index, [SAMPLES / "saltmarsh-handbook-2025.pdf"])
            ingest_code(index, Path(__file__).parents[3] / "research" / "packages")
            index.memories.remember_batch([{"text": text} for text in TOLD])

    with Index.open(built_once(tmp_path_factory, "mixed", make)) as index:
        yield index


def test_what_one_memory_answers_is_answered_among_mixed_sources(mixed: Index) -> None:
    missing, first = [], 0
    for text, question in TOLD.items():
        found = mixed.context(question, CONTEXT_TYPES)
        first += bool(found.items) and text in found.items[0].content
        asked = mixed.ask(question, types=CONTEXT_TYPES)
        if not any(text in item.content for item in found.items) or text not in asked.formatted_text:
            missing.append(question)
    assert missing == []
    assert first >= 12


@pytest.mark.parametrize("question", JUNK)
def test_what_nothing_answers_is_answered_by_no_door(mixed: Index, question: str) -> None:
    context = mixed.context(question, CONTEXT_TYPES)
    assert (context.items, context.markdown, context.token_count) == ([], "", 0)
    asked = mixed.ask(question, types=CONTEXT_TYPES)
    assert asked.sources == []
    assert asked.confidence is not None
    assert asked.confidence.level == "none"
    assert mixed.packages.build({"intent": question}).sources == []
    turn = TurnMaker(mixed, environment={}).build_now({"user_message": question})
    assert turn.context.snippets == []
    assert tasks.recall(mixed, question, Budget(2000)).fields["memories"] == []
    for command in ("context", "recall", "ask"):
        ran = run_in_process(command, question, "--index", str(mixed.root), *_TYPES.get(command, ()))
        assert (ran.code, ran.out) == (3, ""), command
        assert "nothing" in ran.err


def test_nothing_below_the_floor_is_shown(mixed: Index) -> None:
    for question in TOLD.values():
        found = mixed.context(question, CONTEXT_TYPES)
        assert all(item.score >= FLOOR for item in found.items)
        assert all(source.relevance_score >= FLOOR for source in mixed.ask(question, types=CONTEXT_TYPES).sources)
        for source in mixed.packages.build({"intent": question}).sources:
            assert max(source.parts.semantic, source.parts.graph) >= FLOOR


def test_who_wants_more_says_so(mixed: Index) -> None:
    assert mixed.context(JUNK[0], CONTEXT_TYPES, min_score=0.0).items


_TYPES = {"ask": ("--types", ",".join(CONTEXT_TYPES))}
