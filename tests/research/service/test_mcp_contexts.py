"""assemble_context and premortem as tools: within their budget however it is counted, and of whoever asks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from research.errors import InvalidContextTypeError, UsageError
from research.index import Index
from research.request import AskRequest
from research.service.mcp.budget import Budget, Reply, TextIn
from research.service.mcp.contexts import CONTEXTS, assemble_context, premortem

ASKED = "why do uploads stop and are parts sent again"


@pytest.fixture(scope="module")
def everything(of_everything: Path) -> Iterator[Index]:
    with Index.open(of_everything) as index:
        yield index


def fields(reply: Reply) -> dict[str, object]:
    assert reply.fields is not None
    return dict(reply.fields)


@pytest.mark.parametrize("text_in", ["content", "structured"])
@pytest.mark.parametrize("most", [300, 450, 700, 1200, 3000, 8000])
def test_the_budget_holds_for_the_whole_result(everything: Index, most: int, text_in: TextIn) -> None:
    for reply in (
        assemble_context(everything, AskRequest(ASKED), max_tokens=most, text_in=text_in),
        premortem(everything, "debugging", strategy="read-the-error", max_tokens=most, text_in=text_in),
    ):
        assert Budget(most, text_in).cost(reply) <= most
        assert fields(reply)["items"]
        assert "\n\n# " in reply.text
        assert reply.truncated or most > 300
        assert not reply.truncated or most < 8000


def test_what_is_ours_stands_above_what_is_quoted(everything: Index) -> None:
    reply = assemble_context(everything, AskRequest(ASKED))
    notes, _, quoted = reply.text.partition("\n\n# Context\n")
    assert "quoted material" in notes
    assert "**Memory**" not in notes
    assert "## Code\n**function** `send_part`" in quoted
    assert {item["source"] for item in fields(reply)["items"]} == {  # type: ignore[attr-defined]
        "memory", "code", "experience", "commit", "document"
    }  # fmt: skip


def test_types_and_tenant(everything: Index) -> None:
    reply = assemble_context(everything, AskRequest("the key under the mat", types=("memories",)), tenant="eva")
    assert "secret upload key" in reply.text
    other = assemble_context(everything, AskRequest("the key under the mat", types=("memories",)))
    assert "secret upload key" not in other.text
    with pytest.raises(InvalidContextTypeError):
        assemble_context(everything, AskRequest(ASKED, types=("dreams",)))


def test_nothing_found_says_what_to_do(tmp_path: Path, everything: Index) -> None:
    with Index(tmp_path / "none") as index:
        assert assemble_context(index, AskRequest(ASKED)).text.startswith("Nothing was found.")
        assert premortem(index, "debugging").text.startswith("Nothing is known")
    with pytest.raises(UsageError, match="dreaming"):
        premortem(everything, "dreaming")


def test_every_tool_takes_what_its_function_takes() -> None:
    for tool in CONTEXTS:
        assert tool.run is not None
        signature = {each.name: each.default for each in list(inspect.signature(tool.run).parameters.values())[1:]}
        assert signature.pop("tenant") == "", "which no agent names"
        own = [each for each in tool.parameters if not each.field]
        assert set(signature) - {"request"} == {each.name for each in own}
        for parameter in own:
            if parameter.name != "text_in" and not parameter.required:
                assert signature[parameter.name] == parameter.default
