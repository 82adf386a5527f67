"""The budget of a tool's result bounds what an agent reads: text, fields and JSON together, whatever the text is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import mcp_types as types
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from research.context import TokenCounter
from research.errors import UsageError
from research.index import Index
from research.request import AskRequest
from research.service.mcp.results import (
    LEAST_TOKENS,
    STAMP,
    TEXT_IN,
    Budget,
    Reply,
    TextIn,
    error_text,
    escaped_counter,
)
from research.service.mcp.tools import NO_TEXT, ask, get_page, list_documents, outline, search
from tests.conftest import built_once
from tests.mcp_driving import wire_tokens
from tests.pace import draws
from tests.research.service.mcp_index import KINDS, make_nasty

QUESTIONS = (
    "How long is sick pay paid in full?",
    "What does E02 mean?",
    "Which documents mention parental leave?",
    'a "quoted" question \\ with\nlines',
    "Who inspected the footbridge?",
    "年假有幾天?",
    "zebra",
)
BUDGETS = st.one_of(st.integers(LEAST_TOKENS, 1200), st.integers(LEAST_TOKENS, 8000))
PLACES = st.sampled_from(TEXT_IN)
RELAXED = draws(
    40,
    phases=[Phase.generate],  # each example is a question or more; a smaller one is not worth a hundred
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def samples(sample_index: Path) -> Iterator[Index]:
    with Index(sample_index) as index:
        yield index


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index(built_once(tmp_path_factory, "nasty-index", make_nasty)) as index:
        yield index


def result_of(reply: Reply, text_in: TextIn) -> types.CallToolResult:
    """As the server makes it, with what the SDK adds."""
    text, structured = reply.shown(text_in)
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=structured, _meta=STAMP)  # type: ignore[arg-type]


def check(reply: Reply, max_tokens: int, text_in: TextIn) -> None:
    result = result_of(reply, text_in)
    sent = TokenCounter().count(result.model_dump_json(by_alias=True))
    assert sent <= Budget(max_tokens, text_in).cost(reply), "what is counted is what is sent"
    assert wire_tokens(result) <= max_tokens


@pytest.mark.parametrize("text_in", TEXT_IN)
def test_a_budget_is_kept_to_the_token(text_in: TextIn) -> None:
    """By all budgets one after the other: text of which every word is a token would show one that is too long."""

    def words(count: int) -> Reply:
        return Reply(" word" * count, {"truncated": count < 60})

    least = Budget(0, text_in).cost(words(0))
    for most in range(least, least + 50):
        for reply in (
            Budget(most, text_in).longest(words, 60),
            Budget(most, text_in).fit(words, lambda reply: reply, most, 25),
        ):
            check(reply, most, text_in)
            assert reply.truncated
    assert Budget(least + 40, text_in).longest(words, 60).text, "the budget is used"


@RELAXED
@given(question=st.sampled_from(QUESTIONS), max_tokens=BUDGETS, sources=st.integers(1, 20), text_in=PLACES)
def test_ask_never_exceeds_its_budget(
    samples: Index, question: str, max_tokens: int, sources: int, text_in: TextIn
) -> None:
    reply = ask(samples, AskRequest(question, max_sources=sources), budget=Budget(max_tokens, text_in))
    check(reply, max_tokens, text_in)
    fields = reply.fields or {}
    assert len(fields["sources"]) <= sources
    if fields["truncated"]:
        assert Budget(max_tokens, text_in).room(reply) < max(150, max_tokens // 8), "the budget is used"


@pytest.mark.slow
@RELAXED
@given(kind=st.sampled_from(list(KINDS)), max_tokens=BUDGETS, text_in=PLACES)
def test_ask_of_text_that_costs_more_inside_json(nasty: Index, kind: str, max_tokens: int, text_in: TextIn) -> None:
    documents = [kind] if "*" not in kind else None
    reply = ask(nasty, AskRequest("zebra", documents=documents), budget=Budget(max_tokens, text_in))
    check(reply, max_tokens, text_in)
    if KINDS[kind] and max_tokens > 1500:
        assert (reply.fields or {})["sources"], "there is room for something"


@RELAXED
@given(
    kind=st.sampled_from(list(KINDS)),
    page=st.integers(1, 3),
    around=st.integers(0, 3),
    max_tokens=BUDGETS,
    text_in=PLACES,
)
def test_pages_never_exceed_their_budget(
    nasty: Index, kind: str, page: int, around: int, *, max_tokens: int, text_in: TextIn
) -> None:
    try:
        reply = get_page(nasty, kind, page=page, around=around, budget=Budget(max_tokens, text_in))
    except UsageError as error:  # a name of eighty characters, or a word that has no end
        assert max_tokens < 1000, error.hint
        return
    check(reply, max_tokens, text_in)
    assert page in [each["page"] for each in (reply.fields or {})["pages"]], "the page that was asked for comes first"


@pytest.mark.slow
@RELAXED
@given(max_tokens=BUDGETS, offset=st.integers(0, 12), text_in=PLACES)
def test_lists_never_exceed_their_budget(nasty: Index, max_tokens: int, offset: int, text_in: TextIn) -> None:
    check(search(nasty, AskRequest("zebra"), budget=Budget(max_tokens, text_in)), max_tokens, text_in)
    check(list_documents(nasty, offset=offset, budget=Budget(max_tokens, text_in)), max_tokens, text_in)
    check(outline(nasty, "forged.pdf", offset=offset, budget=Budget(max_tokens, text_in)), max_tokens, text_in)


@pytest.mark.parametrize("kind", [kind for kind, text in KINDS.items() if text])
def test_a_cut_page_is_read_on_to_its_end(nasty: Index, kind: str) -> None:
    """Piece by piece, nothing is lost and nothing comes twice."""
    whole = nasty.documents.page(kind, 1).item.text
    start: int | None = 0
    pieces = []
    while start is not None:
        reply = get_page(nasty, kind, page=1, start=start, budget=Budget(700))
        following = (reply.fields or {}).get("next_start")
        assert following is None or following > start
        pieces.append(whole[start:following])
        start = following
    assert "".join(pieces) == whole
    assert len(pieces) > 1 or kind not in ("chinese.pdf", "words.pdf")


def test_a_list_is_read_on_to_its_end(nasty: Index) -> None:
    offset: int | None = 0
    names = []
    while offset is not None:
        fields = list_documents(nasty, offset=offset, budget=Budget(700)).fields or {}
        names += [document["filename"] for document in fields["documents"]]
        offset = fields.get("next_offset")
    assert sorted(names) == sorted(KINDS)


def test_the_text_of_pages_is_there_once(samples: Index) -> None:
    for text_in in TEXT_IN:
        reply = ask(
            samples, AskRequest("How long is parental leave under the 2025 handbook?"), budget=Budget(4000, text_in)
        )
        text, structured = reply.shown(text_in)
        assert json.dumps(structured).count("18 weeks") + text.count("18 weeks") == reply.text.count("18 weeks")


def test_a_budget_too_small_for_one_line_says_which_would_do(nasty: Index) -> None:
    with pytest.raises(UsageError, match="too small") as caught:
        get_page(nasty, KINDS and next(kind for kind in KINDS if len(kind) > 80), budget=Budget(LEAST_TOKENS))
    wanted = int(caught.value.hint.split("max_tokens=")[1].split(" ")[0])
    get_page(nasty, next(kind for kind in KINDS if len(kind) > 80), budget=Budget(wanted))


def test_a_page_without_text_says_how_to_see_it(nasty: Index) -> None:
    assert NO_TEXT in get_page(nasty, "empty.pdf", Budget(700)).text


@given(st.text(min_size=1, max_size=40), st.integers(1, 400))
@RELAXED
def test_an_error_fits_the_least_budget(piece: str, times: int) -> None:
    text = (piece * times).encode("utf-8", "replace").decode()
    result = types.CallToolResult(
        content=[types.TextContent(type="text", text=error_text(UsageError(text, hint=text)))]
    )
    assert wire_tokens(result) <= LEAST_TOKENS


def test_escapes_are_foreseen_about_right() -> None:
    """What the pipeline is given to count with is never far from what it becomes inside JSON."""
    plain = Budget(10**6)
    for text in KINDS.values():
        inside = plain.cost(Reply(text)) - plain.cost(Reply(""))
        assert abs(escaped_counter().count(text) - inside) <= 8 + inside // 5
