"""A page that goes away while it is being answered from is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.search import still_there
from research.context.builder import ContextBuilder
from research.search.engine import SearchEngine, SearchOutcome
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import remove_document
from research.store.client import ChromaClient
from research.store.files.paths import IndexPaths
from tests.research.store.index_making import Making

PAGES = {f"{name}.pdf": [f"Boats and harbours, told by {name}."] for name in ("anna", "ben", "carl", "dora")}
HEADER = re.compile(r"^\[Document (\d+): (\w+)\.pdf, Page 1\]$", re.MULTILINE)


class SlowEngine(SearchEngine):
    """An engine after whose search another process has time to remove documents."""

    def __init__(self, client: ChromaClient, removed: Sequence[str]) -> None:
        super().__init__(client)
        self._removed = removed

    def run(self, *args: object, **options: object) -> SearchOutcome:
        outcome = super().run(*args, **options)  # type: ignore[arg-type]
        with Catalog(IndexPaths(self.client.catalog.paths.root), writable=True) as catalog:
            for doc_id in self._removed:
                remove_document(catalog, doc_id)
        return outcome


@pytest.fixture
def made(tmp_path: Path) -> dict[str, str]:
    """name → doc_id"""
    making = Making(tmp_path)
    ids = {name: making.add(name, pages).doc_id for name, pages in PAGES.items()}
    making.catalog.close()
    return ids


@pytest.mark.parametrize("gone", [["anna.pdf"], ["ben.pdf", "dora.pdf"], ["carl.pdf"]])
def test_a_page_removed_since_the_search_is_left_out(tmp_path: Path, made: dict[str, str], gone: list[str]) -> None:
    with ChromaClient(tmp_path) as client:
        engine = SlowEngine(client, [made[name] for name in gone])
        context = ContextBuilder(engine, client).build("boats", 10, "lexical")
    left = [name for name in PAGES if name not in gone]
    assert sorted(source.filename for source in context.sources) == left
    assert [int(number) for number, _ in HEADER.findall(context.formatted_text)] == list(range(1, len(left) + 1))
    assert [f"{name}.pdf" for _, name in HEADER.findall(context.formatted_text)] == [
        source.filename for source in context.sources
    ]
    assert not context.dropped


def test_the_next_page_takes_the_place_of_one_that_went(tmp_path: Path, made: dict[str, str]) -> None:
    with ChromaClient(tmp_path) as client:
        builder = ContextBuilder(SlowEngine(client, [made["anna.pdf"]]), client, max_sources=3)
        assert len(builder.build("boats", 10, "lexical").sources) == 3


def test_all_of_them_may_go(tmp_path: Path, made: dict[str, str]) -> None:
    with ChromaClient(tmp_path) as client:
        context = ContextBuilder(SlowEngine(client, list(made.values())), client).build("boats", 10, "lexical")
    assert (context.sources, context.formatted_text, context.total_tokens) == ([], "", 0)


async def _metadata(client: ChromaClient, doc_id: str) -> None:
    await ContextBuilder(SearchEngine(client), client).get_source_metadata(doc_id, 1)


def test_asking_for_a_page_by_name_still_says_that_it_is_missing(tmp_path: Path, made: dict[str, str]) -> None:
    import asyncio

    with ChromaClient(tmp_path) as client, pytest.raises(ValueError, match="has no page 1"):
        asyncio.run(_metadata(client, "nowhere"))


def test_a_listing_leaves_it_out_too(tmp_path: Path, made: dict[str, str]) -> None:
    with ChromaClient(tmp_path) as client:
        outcome = SlowEngine(client, [made["ben.pdf"]]).run("boats", 10, "lexical")
        shown, texts = still_there(client.catalog, outcome)
    assert len(outcome.found) == 4
    assert sorted(found.page.filename for found in shown.found) == ["anna.pdf", "carl.pdf", "dora.pdf"]
    assert [text.split()[-1] for text in texts] == [f"{Path(f.page.filename).stem}." for f in shown.found]
