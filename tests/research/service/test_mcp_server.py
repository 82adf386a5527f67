"""The server of tools in this process: what happens to an index under it costs a call, never the connection."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path

import pytest
from mcp import MCPError

from research.index import Index
from research.observe import NullRecorder
from research.service.jobs import JobRunner
from research.service.mcp.server import build_server
from research.service.service import Service
from tests.mcp_driving import agent_here, driven, fields_of, text_of, wire_tokens
from tests.research.service.mcp_index import make_nasty

CALLS = {
    "ask": {"question": "zebra"},
    "search": {"question": "zebra"},
    "get_page": {"document": "quotes.pdf"},
    "list_documents": {},
    "outline": {"document": "quotes.pdf"},
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_nasty(tmp_path / "nasty")
    return tmp_path / "nasty"


def test_all_tools_cost_little_in_each_session(root: Path) -> None:
    with Index(root) as index:
        jobs = JobRunner(lambda paths: pytest.fail("nothing is ingested"))
        with driven(build_server(Service(index), jobs=jobs, roots=(Path("/docs"),))) as agent:
            tools = agent.do("list_tools").tools
    said = [{"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema} for tool in tools]
    assert len(tools) == 15
    assert sum(len(json.dumps(tool)) for tool in said) <= 8000


class Counting(NullRecorder):
    """Counts how often a stage begins."""

    def __init__(self) -> None:
        self.stages: Counter[str] = Counter()

    def time(self, stage: str) -> AbstractContextManager[None]:
        self.stages[stage] += 1
        return super().time(stage)


SEARCHES = {
    "ask": ("retrieve", {"question": "why do uploads stop"}),
    "search": ("retrieve", {"question": "why do uploads stop"}),
    "assemble_context": ("retrieve", {"question": "why do uploads stop and are parts sent again"}),
    "premortem": ("retrieve", {"domain": "debugging", "strategy": "read-the-error"}),
    "build_context_package": ("package_retrieve", {"intent": "why do uploads stop"}),
}


def test_a_call_searches_once_whatever_its_budget(of_everything: Path, tmp_path: Path) -> None:
    recorder = Counting()
    with (
        Index(shutil.copytree(of_everything, tmp_path / "index"), recorder=recorder) as index,
        driven(build_server(Service(index))) as agent,
    ):
        for (tool, (stage, asked)), most, text_in in product(
            SEARCHES.items(), (300, 500, 1000, 4000), ("content", "structured")
        ):
            packages = len(index.packages.list())
            recorder.stages.clear()
            result = agent.call(tool, max_tokens=most, text_in=text_in, **asked)
            assert not result.is_error, (tool, most, text_of(result))
            assert recorder.stages[stage] == 1, (tool, most)
            assert wire_tokens(result) <= most
            if most >= 500 and tool != "premortem":
                assert any(found for found in fields_of(result).values() if isinstance(found, list)), "it is used"
            if tool == "build_context_package":
                assert recorder.stages["package_govern"] == 1
                assert len(index.packages.list()) == packages + 1


def test_nothing_found_is_a_short_answer(of_everything: Path, tmp_path: Path) -> None:
    nothing = {
        "ask": {"question": "qwxz vbnmk plorf"},
        "search": {"question": "qwxz vbnmk plorf", "mode": "lexical"},
        "search_code": {"question": "qwxz", "language": "cobol"},
        "assemble_context": {"question": "qwxz vbnmk plorf", "types": ["commits", "values"]},
        "build_context_package": {"intent": "qwxz", "types": ["values"]},
        "recall": {"question": "qwxz vbnmk plorf", "tags": ["nobody"]},
        "list_documents": {"name": "giraffe"},
    }
    with agent_here(shutil.copytree(of_everything, tmp_path / "index")) as agent:
        for tool, arguments in nothing.items():
            result = agent.call(tool, text_in="content", **arguments)
            text = text_of(result)
            assert fields_of(result)["truncated"] is False
            assert text.count("\n") == 0, text
            assert len(text) < 130
            assert re.match("No", text), text


def test_an_index_that_is_removed_and_comes_back(root: Path, tmp_path: Path) -> None:
    with agent_here(root) as agent:
        for tool, arguments in CALLS.items():
            agent.said(tool, **arguments)
        root.rename(tmp_path / "away")
        for tool, arguments in CALLS.items():
            text = agent.refused(tool, **arguments)
            assert "the index holds no documents yet" in text
            assert str(tmp_path) not in text
        assert agent.do("list_resources").resources == []
        (tmp_path / "away").rename(root)
        assert fields_of(agent.call("search", question="zebra"))["results"]


def test_an_index_that_is_damaged_from_the_start(root: Path) -> None:
    size = os.path.getsize(root / "catalog.sqlite3")  # noqa: PTH202
    (root / "catalog.sqlite3").write_bytes(b"\x00" * size)
    with agent_here(root) as agent:
        for tool, arguments in CALLS.items():
            text = agent.refused(tool, **arguments)
            assert "ctx doctor" in text
            assert "Traceback" not in text
            assert str(root) not in text
        with pytest.raises(MCPError, match="ctx doctor"):
            agent.do("read_resource", f"ctx://doc/{1:016x}/page/1")
        with pytest.raises(MCPError, match="ctx doctor"):
            agent.do("list_resources")


def test_a_mistake_of_ours_costs_the_call_alone(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A value of a kind that nobody foresaw stands in the catalog."""
    with agent_here(root) as agent:
        with Index(root) as index, index.catalog.short_write() as connection:
            connection.execute("UPDATE documents SET warnings = '[x]' WHERE doc_id = ?", (f"{1:016x}",))
        text = agent.refused("list_documents")
        assert text.startswith("Something went wrong inside ctx (")
        assert "This is no fault of the call" in text
        with pytest.raises(MCPError, match="Something went wrong inside ctx"):
            agent.do("read_resource", f"ctx://doc/{1:016x}/page/1")
        with Index(root) as index, index.catalog.short_write() as connection:
            connection.execute("UPDATE documents SET warnings = '[]' WHERE doc_id = ?", (f"{1:016x}",))
        assert "quotes.pdf" in agent.said("list_documents")
    assert "the tool list_documents" in caplog.text


def test_documents_are_listed_page_by_page(tmp_path: Path) -> None:
    make_nasty(tmp_path / "many", copies=12)
    with agent_here(tmp_path / "many") as agent:
        first = agent.do("list_resources")
        assert len(first.resources) == 100
        second = agent.do("list_resources", cursor=first.next_cursor)
        assert len(second.resources) == 20
        assert second.next_cursor is None
        assert len({resource.uri for resource in (*first.resources, *second.resources)}) == 120
        with pytest.raises(MCPError, match="begin without one"):
            agent.do("list_resources", cursor="nonsense")
