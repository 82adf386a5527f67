"""The library as the contract's examples use it, and what only one place may do."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import research
from research import ChromaClient, ContextBuilder, ResearchContext, SearchEngine, SourceDocument

ROOT = Path(__file__).parent.parent.parent


def test_the_public_list_is_what_the_module_gives() -> None:
    assert sorted(research.__all__) == research.__all__
    for name in research.__all__:
        assert getattr(research, name) is not None
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = research.Nonsense


@cache
def _nodes(path: Path) -> list[ast.Import | ast.ImportFrom | ast.Call]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)]


@cache
def _calls(path: Path) -> list[str]:
    """`os.umask` of `os.umask(0)`, as far as it can be told from the text."""
    return [ast.unparse(node.func) for node in _nodes(path) if isinstance(node, ast.Call)]


def test_sql_stands_in_the_store_only() -> None:
    for package in ("cli", "ingest", "research"):
        for path in (ROOT / package).rglob("*.py"):
            if not path.is_relative_to(ROOT / "research" / "store"):
                ran = [call for call in _calls(path) if call.endswith((".execute", ".executemany", ".executescript"))]
                # Doctor asks a database in memory whether this SQLite has full text.
                assert not ran or path == ROOT / "research" / "index" / "installation.py", path.relative_to(ROOT)


def test_one_module_starts_threads_for_whoever_needs_one() -> None:
    own = {
        "research/encoders/minilm/__init__.py",  # pools that compute
        "research/llm/endpoint.py",  # a stream that is read ahead
        "research/parallel.py",
        "research/process.py",  # a watcher
        "research/search/reranker.py",
        "research/service/jobs.py",  # a server's own queue
    }
    paths = [path for package in ("cli", "ingest", "research") for path in (ROOT / package).rglob("*.py")]
    starts = {path for path in paths if {"threading.Thread", "ThreadPoolExecutor"} & set(_calls(path))}
    assert {path.relative_to(ROOT).as_posix() for path in starts} == own


def test_research_changes_nothing_that_the_whole_process_shares() -> None:
    shared = {"os.umask", "os._exit", "os.chdir", "signal.signal", "os.setrlimit", "locale.setlocale", "os.nice"}
    for path in (ROOT / "research").rglob("*.py"):
        assert shared.isdisjoint(_calls(path)), path.relative_to(ROOT)


def test_import_research_loads_nothing_heavy() -> None:
    code = (
        "import sys; from research import ContextBuilder, SearchEngine, ChromaClient\n"
        "heavy = {'chromadb', 'onnxruntime', 'numpy', 'torch', 'pymupdf', 'tiktoken', 'asyncio', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_contracts_example(samples: ChromaClient) -> None:
    engine = SearchEngine(samples)
    builder = ContextBuilder(search_engine=engine, chroma_client=samples, max_sources=10, max_tokens=10000)
    context = asyncio.run(builder.build_context(query="How many weeks of parental leave?", num_results=10))

    assert isinstance(context, ResearchContext)
    assert 0 < len(context.sources) <= 10
    assert context.total_tokens == builder.estimate_tokens(context.formatted_text) <= 10000
    first = context.get_citation_map()[1]
    assert isinstance(first, SourceDocument)
    assert context.formatted_text.startswith(f"[Document 1: {first.filename}, Page {first.page}]\n")
    assert builder.format_source_citation(first, 1) in context.formatted_text
    for source in context.sources:
        assert 0.0 <= source.relevance_score <= 1.0
        assert source.to_dict()["filename"] == source.filename


def test_search_results_are_the_contracts_dictionaries(samples: ChromaClient) -> None:
    results = asyncio.run(SearchEngine(samples).search("parental leave", num_results=5, search_mode="hybrid"))
    assert len(results) == 5
    assert [r["score"] for r in results] == sorted((r["score"] for r in results), reverse=True)
    for result in results:
        assert {"doc_id", "page", "score", "filename", "metadata"} <= set(result)
        assert result["metadata"]["extension"] == "pdf"


def test_source_metadata_and_markdown(samples: ChromaClient) -> None:
    builder = ContextBuilder(SearchEngine(samples), samples)
    found = samples.visual_collection.get(limit=1, include=["metadatas"])
    metadata = found["metadatas"][0]
    source = asyncio.run(builder.get_source_metadata(metadata["doc_id"], metadata["page"]))
    assert source.filename == metadata["filename"]
    assert source.markdown_content in (asyncio.run(samples.get_document_markdown(source.doc_id)) or "")
    for doc_id, page in ((source.doc_id, 0), (source.doc_id, 10_000), ("nonsense", 1)):
        with pytest.raises(ValueError, match="has no page"):
            asyncio.run(builder.get_source_metadata(doc_id, page))
    assert asyncio.run(samples.get_document_markdown("nonsense")) is None


def test_the_contracts_filter_on_the_visual_collection(samples: ChromaClient) -> None:
    doc_id = samples.visual_collection.get(limit=1, include=["metadatas"])["metadatas"][0]["doc_id"]
    where = {"$and": [{"doc_id": {"$eq": doc_id}}, {"page": {"$eq": 2}}]}
    found = samples.visual_collection.get(where=where, include=["metadatas"])
    assert len(found["ids"]) == 1
    expected = {
        "doc_id", "filename", "page", "extension", "timestamp", "source_path", "image_path", "thumb_path",
        "section_path", "parent_heading", "num_headings", "num_tables", "num_pictures",
    }  # fmt: skip
    assert expected <= set(found["metadatas"][0])


def test_switching_legs_off(samples: ChromaClient) -> None:
    builder = ContextBuilder(SearchEngine(samples), samples)
    visual = asyncio.run(builder.build_context("order intake chart", include_text=False))
    assert visual.sources
    assert [leg.name for leg in visual.coverage.legs] == ["visual"]
    nothing = asyncio.run(builder.build_context("anything", include_text=False, include_visual=False))
    assert (nothing.formatted_text, nothing.sources, nothing.total_tokens, nothing.truncated) == ("", [], 0, False)
