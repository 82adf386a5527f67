"""Seed 002 as its callers see it: the interface to the letter, premortem and mix with values of real experiences."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from research import errors, sources
from research.context import TokenCounter
from research.index import Index
from research.sources import ContextAssembler, ContextItem, FormattedContext, Searcher
from tests.conftest import built_once
from tests.research.experiences.recurring import recurring

EMPTY = inspect.Parameter.empty


def parameters(function: object) -> list[tuple[str, object]]:
    assert callable(function)
    return [(each.name, each.default) for each in inspect.signature(function).parameters.values()]


def test_the_interface_is_the_seeds() -> None:
    assert parameters(ContextAssembler.__init__)[:2] == [("self", EMPTY), ("searcher", EMPTY)]
    assert parameters(ContextAssembler.assemble_context) == [
        ("self", EMPTY), ("query", EMPTY), ("context_types", EMPTY), ("limit", 20), ("max_tokens", 2000)
    ]  # fmt: skip
    assert parameters(ContextAssembler.get_premortem_context) == [
        ("self", EMPTY), ("domain", EMPTY), ("strategy", None), ("limit", 10), ("max_tokens", 1500)
    ]  # fmt: skip
    assert inspect.iscoroutinefunction(ContextAssembler.assemble_context)
    assert inspect.iscoroutinefunction(ContextAssembler.get_premortem_context)
    assert [each.name for each in fields(ContextItem)][:4] == ["source", "content", "relevance", "metadata"]
    assert [each.name for each in fields(FormattedContext)][:4] == ["markdown", "items", "token_count", "sources_used"]
    assert issubclass(errors.InvalidContextTypeError, errors.ContextAssemblyError)
    names = {"search_memories", "search_code", "search_experiences", "search_values", "search_commits"}
    assert names <= set(dir(Searcher))


def test_everything_public_has_types_and_the_assembler_and_its_records_say_what_they_are() -> None:
    for name in sources.__all__:
        public = getattr(sources, name)
        for method, function in inspect.getmembers(public, inspect.isfunction) if inspect.isclass(public) else ():
            if not method.startswith("_"):
                told = inspect.signature(function)
                assert told.return_annotation is not EMPTY, method
                others = [each for each in told.parameters.values() if each.name != "self"]
                assert all(each.annotation is not EMPTY for each in others), method
    for public in (ContextAssembler, ContextItem, FormattedContext, sources.IndexSearcher, sources.Options, Searcher):
        assert inspect.getdoc(public), public
    for function in (ContextAssembler.assemble_context, ContextAssembler.get_premortem_context):
        assert len(inspect.getdoc(function) or "") > 100


def _make(root: Path) -> None:
    with Index(root) as index:
        index.experiences.put(recurring())
        while index.experiences.embed():
            pass
        assert index.experiences.rebuild_values().done
        index.memories.remember("Caches are Bo's business.", category="decision", importance=0.8)


@pytest.fixture(scope="module")
def valued(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.open(built_once(tmp_path_factory, "valued-and-told", _make)) as index:
        yield index


def test_a_premortem_with_real_values_is_the_seeds_and_renders(valued: Index) -> None:
    context = valued.premortem("debugging", "root-cause-analysis")
    tokens = MarkdownIt("commonmark").parse(context.markdown)
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    # No experience tells of a surprise, so there is no section for them.
    assert headings == [
        "Premortem: debugging with root-cause-analysis", "Common Failures", "Strategy Performance",
        "Root Causes to Watch", "Relevant Principles",
    ]  # fmt: skip
    assert re.search(r"\n## Relevant Principles\n\*\*Value\*\* \(\w+, cluster size: \d+\):\n\S", context.markdown)
    values = [item for item in context.items if item.source == "value"]
    assert set(values[0].metadata) == {"id", "axis", "cluster_id", "cluster_size", "similarity_to_centroid"}
    assert context.token_count == TokenCounter().count(context.markdown) <= 1500
    assert re.search(r"\n\n---\n\*Based on \d+ past experiences\*$", context.markdown)


def test_a_value_is_cited_in_a_mix(valued: Index) -> None:
    asked = "why is stale data served from the cache"
    context = valued.ask(asked, types=["values", "memories"], max_sources=30)
    value = next(each for each in context.sources if each.kind == "value")
    assert re.fullmatch(r"(full|strategy|surprise|root_cause), \d+ experiences", value.name)
    assert f": {value.name}]\n{value.markdown_content}" in context.formatted_text
    assert {each.kind for each in context.sources} == {"value", "memory"}
    both = valued.ask(asked, types=["values", "experiences"], max_sources=60, max_tokens=8000)
    kinds = [each.kind for each in both.sources]
    assert kinds.count("experience") > 3
