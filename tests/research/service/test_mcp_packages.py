"""build_context_package as a tool: within its budget however it is counted, recorded once, and of whoever asks."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from research.errors import CtxError
from research.index import Index
from research.service.mcp.budget import Budget, TextIn
from research.service.mcp.packages import PACKAGES, build_context_package

ASKED = "why do uploads stop and are parts sent again"


@pytest.fixture(scope="module")
def index(of_everything: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = Path(shutil.copytree(of_everything, tmp_path_factory.mktemp("mcp") / "index"))
    with Index.open(root) as opened:
        yield opened


@pytest.mark.parametrize("text_in", ["content", "structured"])
@pytest.mark.parametrize("most", [500, 900, 2000, 8000])
def test_the_budget_holds_for_the_whole_result(index: Index, most: int, text_in: TextIn) -> None:
    before = len(index.packages.list())
    reply = build_context_package(index, ASKED, max_tokens=most, text_in=text_in)
    assert Budget(most, text_in).cost(reply) <= most
    assert reply.fields is not None
    assert reply.fields["sources"]
    assert "quoted material" in reply.text.partition("\n\n")[0]
    assert len(index.packages.list()) == before + 1, "one package, not one for every try"
    assert index.packages.get(str(reply.fields["contextPackageId"])).trace_id == reply.fields["traceId"]


def test_pins_that_are_not_there_are_told_and_refused_where_they_are_none(index: Index) -> None:
    reply = build_context_package(index, ASKED, pinned=["memory:none"], types=["memories"])
    assert "Pinned memory:none is not in it: unknown." in reply.text
    with pytest.raises(CtxError):
        build_context_package(index, ASKED, pinned=["no ref"])


def test_another_tenant_without_a_policy_sees_nothing(index: Index) -> None:
    reply = build_context_package(index, ASKED, tenant="eva")
    assert reply.fields is not None
    assert {source["kind"] for source in reply.fields["sources"]} == {"memory"}, "nothing but what is theirs"


def test_the_tools_take_what_they_say() -> None:
    for tool in PACKAGES:
        assert tool.run is not None
        taken = set(inspect.signature(tool.run).parameters) - {"index", "tenant"}
        assert {parameter.name for parameter in tool.parameters} == taken
