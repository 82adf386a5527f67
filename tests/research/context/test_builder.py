"""A question answers from one revision of the catalog, whatever happens meanwhile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from research.context.pipeline import Context, Sieve, find
from research.context.render import CitedPages
from research.context.tokens import TokenCounter
from research.contract import ContextBuilder, SearchEngine
from research.index import Index
from research.models import Item, Question
from research.store import Catalog, ChromaClient, IndexPaths
from tests.research.store.index_making import Making

PAGES = {f"{name}.pdf": [f"Boats and harbours, told by {name}."] for name in ("anna", "ben", "carl", "dora")}
HEADER = re.compile(r"^\[Document (\d+): (\w+)\.pdf, Page 1\]$", re.MULTILINE)


class Removing:
    """A stage of the pipeline during which another process removes documents: after the search, before the rest."""

    def __init__(self, root: Path, removed: Sequence[str]) -> None:
        self._root, self._removed = root, removed

    def __call__(self, items: list[Item]) -> list[Item]:
        with Catalog(IndexPaths(self._root), writable=True) as catalog:
            for doc_id in self._removed:
                catalog.documents.remove(doc_id)
        return items


def ask(root: Path, removed: Sequence[str]) -> Context:
    with Index.open(root) as index, index.catalog.snapshot() as reader:
        found = find(
            reader,
            Question("boats", mode="lexical"),
            [index.source],
            limit=10,
            sieve=Sieve(stages=[Removing(root, removed)], most=10),
        )
        return found.within(10_000, CitedPages(), TokenCounter())


@pytest.fixture
def made(tmp_path: Path) -> dict[str, str]:
    """name → doc_id"""
    making = Making(tmp_path)
    ids = {name: making.add(name, pages).doc_id for name, pages in PAGES.items()}
    making.catalog.close()
    return ids


@pytest.mark.parametrize("gone", [["anna.pdf"], ["ben.pdf", "dora.pdf"], list(PAGES)])
def test_a_question_sees_one_revision_whatever_is_removed_meanwhile(
    tmp_path: Path, made: dict[str, str], gone: list[str]
) -> None:
    context = ask(tmp_path, [made[name] for name in gone])
    assert sorted(str(item.metadata["filename"]) for item in context.fitted.items) == list(PAGES)
    assert [int(number) for number, _ in HEADER.findall(context.fitted.text)] == [1, 2, 3, 4]
    for item in context.fitted.items:
        assert Path(str(item.metadata["filename"])).stem in item.text
    with Index.open(tmp_path) as index:
        left = [source.filename for source in index.ask("boats", mode="lexical").sources]
    assert sorted(left) == [name for name in PAGES if name not in gone], "the next question sees what is there"


async def _metadata(client: ChromaClient, doc_id: str) -> None:
    await ContextBuilder(SearchEngine(client), client).get_source_metadata(doc_id, 1)


def test_asking_for_a_page_by_name_still_says_that_it_is_missing(tmp_path: Path, made: dict[str, str]) -> None:
    import asyncio

    with ChromaClient(tmp_path) as client, pytest.raises(ValueError, match="has no page 1"):
        asyncio.run(_metadata(client, "nowhere"))
