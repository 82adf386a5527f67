"""Context and premortem from a real index with something of every kind: what each source gives, and what is missing."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from research.context import TokenCounter
from research.errors import CtxError
from research.index import Index
from research.parallel import Workers
from research.search import FoundItem
from research.sources import CONTEXT_TYPES, ContextAssembler, IndexSearcher
from research.sources.assembler import code_result
from research.store import StoredItem
from tests.research.sources.everything import EXPERIENCES

ASKED = "why do uploads stop and are parts sent again"


def test_end_to_end_every_source_is_there(everything: Index) -> None:
    context = everything.context(ASKED, CONTEXT_TYPES, max_tokens=3000)
    assert set(context.sources_used) == set(CONTEXT_TYPES) - {"values"}  # too few experiences have anything in common
    assert context.token_count == TokenCounter().count(context.markdown) <= 3000
    tokens = MarkdownIt("commonmark").parse(context.markdown)
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == ["Context", "Memories", "Code", "Experiences", "Commits", "Documents"]
    assert [each.status for each in context.coverage.sources] == ["ok"] * 6
    relevance = [item.relevance for item in context.items]
    assert relevance == sorted(relevance, reverse=True)
    assert all(0.0 < item.score <= 1.0 for item in context.items)


def test_what_each_source_gives_is_the_seeds(everything: Index) -> None:
    context = everything.context(ASKED, CONTEXT_TYPES, max_tokens=4000)
    first = {item.source: item for item in reversed(context.items)}
    assert first["memory"].content == (
        "**Memory**: The staging server drops every tenth part of an upload on purpose.\n"
        "*Category: fact, Importance: 0.7*"
    )
    assert first["code"].content == (
        "**function** `send_part` in `src/uploads.py:3`\n"
        "```python\n"
        "def send_part(part: bytes) -> None:\n"
        '    """Send one part of an upload, again if the server closes the connection."""\n'
        "    print(part)\n"
        "```"
    )
    assert first["code"].ref.endswith("/of-everything/app/src/uploads.py#send_part")
    told = EXPERIENCES[0] if "at night" in first["experience"].content else None
    assert first["experience"].content.startswith("**Experience**: debugging | ")
    assert told is None or f"- **Lesson**: {told['lesson']}" in first["experience"].content
    head, message = first["commit"].content.split("\n", 1)
    assert head.startswith(f"**Commit** `{first['commit'].metadata['sha'][:7]}` by Ana on 20")
    assert message == "Pause longer after each failed upload\n\nThe server was asked too often.\n*Files: src/retry.py*"
    assert first["document"].content.startswith("**Document**: manual.pdf, Page 1\n")
    assert "A part that fails is sent again" in first["document"].content
    assert first["document"].metadata["link"].endswith("/manual.pdf#page=1")


def test_the_premortem_filters_by_domain_and_strategy(everything: Index) -> None:
    context = everything.premortem("debugging", "read-the-error", max_tokens=4000)
    parts = {part.split("\n", 1)[0]: part for part in context.markdown.split("\n## ")[1:]}
    assert list(parts) == ["Common Failures", "Strategy Performance", "Unexpected Outcomes", "Root Causes to Watch"]
    assert "**Outcome**: falsified" in parts["Common Failures"]
    assert "confirmed" not in parts["Common Failures"]
    assert "systematic-elimination" not in parts["Strategy Performance"]
    assert "**Root cause**: An idle limit of the" in parts["Root Causes to Watch"]
    assert context.markdown.endswith("\n\n---\n*Based on 4 past experiences*")
    assert everything.premortem("refactoring").markdown == ""


def test_memories_are_the_tenants_own(everything: Index) -> None:
    asked = "under the mat"
    assert "mat" not in everything.context(asked, ["memories"]).markdown
    eva = everything.context(asked, ["memories"], tenant="eva")
    assert "secret upload key" in eva.markdown
    assert eva.sources_used == {"memories": 1}


def test_several_questions_at_once_in_one_loop(everything: Index) -> None:
    async def ask() -> list[str]:
        assembler = ContextAssembler(IndexSearcher(everything))
        found = await asyncio.gather(*(assembler.assemble_context(ASKED, CONTEXT_TYPES) for _ in range(4)))
        return [each.markdown for each in found]

    assert len(set(asyncio.run(ask()))) == 1


@pytest.mark.parametrize("kind", ["none", "empty"])
def test_an_index_without_anything_gives_empty_sections_and_no_error(tmp_path: Path, kind: str) -> None:
    with Index(tmp_path / "index") as index:
        if kind == "empty":
            index.memories.forget(index.memories.remember("Something.").id)
        context = index.context(ASKED, CONTEXT_TYPES)
        assert (context.markdown, context.items) == ("", [])
        assert not context.failed
        assert index.premortem("debugging", "read-the-error").markdown == ""


def test_what_hangs_is_left_alone_and_after_some_nobody_else_is_sent_there(everything: Index) -> None:
    searcher = IndexSearcher(everything, workers=Workers("test", most_hanging=1))
    hanging = threading.Event()
    search = searcher._search
    searcher._search = lambda name, *how: hanging.wait(60) if name == "memories" else search(name, *how)  # type: ignore

    async def ask() -> None:
        waiting = ContextAssembler(searcher, source_seconds=0.3)
        [memories] = (await waiting.assemble_context(ASKED, ["memories"])).coverage.sources
        assert memories.reason == "timed out after 0.3 s"
        patient = ContextAssembler(searcher, source_seconds=50.0)
        memories, code = (await patient.assemble_context(ASKED, ["memories", "code"])).coverage.sources
        assert memories.reason == "1 earlier calls still hang"
        assert code.status == "ok"

    try:
        asyncio.run(ask())
    finally:
        hanging.set()


def test_without_an_encoder_words_answer_and_coverage_tells(everything: Index) -> None:
    class Broken:
        name, dim, max_tokens = "broken", 3, 9

        def embed_query(self, text: str) -> object:
            raise CtxError("the address does not answer")

    with Index(everything.root, everything.settings, encoder=Broken()) as index:  # type: ignore[arg-type]
        context = index.context(ASKED, ["memories", "code", "experiences"])
    assert {each.status for each in context.coverage.sources} == {"degraded"}
    assert {"memories", "experiences"} <= set(context.sources_used)
    assert len(context.coverage.notes) >= 2


def test_a_record_whose_lines_are_odd_is_found_without_them() -> None:
    stored = StoredItem(1, "code", "/r/a.py", "a", "", "a", "def a(): ...", {"start_line": "abc", "end_line": None})
    found = code_result(FoundItem(stored, 0.5, 0.5, {}), "code:a")
    assert (found.qualified_name, found.start_line, found.end_line) == ("a", 0, 0)
