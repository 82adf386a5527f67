"""An answer on one screen: what stands where, what gives way, and that nothing of a document moves the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from cli.answer import (
    Screen,
    answer_lines,
    note_lines,
    page_line,
    quote_lines,
    quotes,
    screen_notes,
    screen_view,
)
from cli.layout import MARK, cells
from research.context import Note
from research.markdown import Marker
from research.models import DroppedSource, Passage, ResearchContext
from tests.cli.answers import HOSTILE, SENTENCE, answer, marker, quote, source
from tests.pace import draws

SCREENS = [(80, 40), (120, 40), (50, 30), (80, 24), (40, 24)]
LONG_NAME = "nielsen2015musicbizpresentation-final-150526143534-lva1-app6891_95.pdf"
TABLE = "| Plan | Premium | Copay |\n|---|---|---|\n" + "".join(f"| Plan {n} | ${n}5 | {n} % |\n" for n in range(12))
NOTES = [Note("coverage", "dense search failed (no document has vectors yet); " * 3)] * 5


def drawn(context: ResearchContext, screen: Screen, mark: Marker, notes: Sequence[Note] = ()) -> list[Text]:
    view = screen_view(context)
    return answer_lines(replace(view, notes=tuple(notes)) if notes else view, screen, mark)


def plains(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


def ten_sources(text: str = SENTENCE * 6) -> ResearchContext:
    names = ["crisis.pdf", LONG_NAME, "年度報告書二〇二四.pdf", "Northwind_Standard_Benefits_Details.pdf", "a.pdf"] * 2
    sources = [source(name, number, text, page_label="xiv", section_path="Zava > Plan > Causes of the crisis")
               for number, name in enumerate(names, 1)]  # fmt: skip
    return answer(sources, [quote(citation=1), quote(SENTENCE * 4, 2), quote(TABLE[:70], 10)])


@pytest.mark.parametrize(("width", "height"), SCREENS)
@pytest.mark.parametrize("text", [SENTENCE * 6, TABLE, "静息心率显示" * 60, "```\n\tx = 1\n" * 9, ""])
@pytest.mark.parametrize("notes", [[], NOTES], ids=["", "notes"])
def test_ten_sources_fit_one_screen(width: int, height: int, text: str, notes: list[Note]) -> None:
    shown = drawn(ten_sources(text), Screen(width, height), marker("bubble", "心率"), notes)
    assert len(shown) <= height - 2, "the prompt needs its lines"
    assert all(cells(line.plain) <= width for line in shown)
    assert all("\n" not in line.plain for line in shown)
    numbered = [line for line in plains(shown) if line.lstrip().startswith("[")]
    assert len(numbered) == 10, "every source has its line"


def test_quotes_come_first_then_sources_then_what_to_type() -> None:
    shown = plains(drawn(ten_sources(), Screen(80, 40), marker()))
    assert shown[0].startswith("“The housing bubble burst")
    assert shown[1].endswith("capital.” [1] crisis.pdf")  # several documents are quoted
    first_source = next(i for i, line in enumerate(shown) if line.startswith(" [1] "))
    assert shown[first_source - 1] == ""
    assert all("[10]" not in line for line in shown[first_source + 25 :])
    assert shown[-2:] == ["", "The answer is very likely on these pages · ctx open 1 · --full · --json"]


def test_the_first_five_sources_show_their_passages_with_marks() -> None:
    shown = drawn(ten_sources(), Screen(80, 40), marker("subprime"))
    sources = [i for i, line in enumerate(shown) if line.plain.lstrip().startswith("[")]
    counts = [after - before - 1 for before, after in pairwise(sources)]
    assert all(2 <= count <= 3 for count in counts[:5])
    assert counts[5:] == [0] * 4
    passage = shown[sources[0] + 1]
    assert passage.plain.startswith("     The housing")
    assert [passage.plain[span.start : span.end] for span in passage.spans if span.style == MARK] == ["subprime"]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (80, "[3] crisis.pdf p. 3 (iv) · The crisis > Causes"),
        (44, "[3] crisis.pdf p. 3 (iv) · … > Causes"),
        (34, "[3] crisis.pdf p. 3 (iv) · Causes"),
        (26, "[3] crisis.pdf p. 3 (iv)"),
        (20, "[3] cri…df p. 3 (iv)"),
    ],
)
def test_the_section_gives_way_before_a_short_name_does(width: int, shown: str) -> None:
    line = page_line(Screen(width, 40), "[3]", "crisis.pdf", "3 (iv)", section="The crisis > Causes", uri="")
    assert line.plain == shown


def test_a_passage_does_not_repeat_the_heading_its_line_has() -> None:
    text = "## Causes\n\nThe bubble burst."
    shown = plains(drawn(answer([source(text=text, section_path="Crisis > Causes")]), Screen(80, 40), marker()))
    assert shown[:2] == ["[1] crisis.pdf p. 3 · Crisis > Causes", "    The bubble burst."]
    alone = answer([source(text="## Causes", section_path="Crisis > Causes")])
    assert plains(drawn(alone, Screen(80, 40), marker()))[1] == "    Causes"


def test_a_source_without_passages_shows_its_page() -> None:
    shown = plains(drawn(answer([source(passages=[Passage("", 0.9)])]), Screen(80, 40), marker()))
    assert shown[1].startswith("    The housing bubble")


def test_the_section_is_that_of_the_best_passage() -> None:
    passages = [Passage("", 1.0), Passage("The bubble burst.", 0.9, section_path="Causes > Bubble")]
    shown = answer([source(passages=passages, section_path="Contents")])
    assert plains(drawn(shown, Screen(80, 40), marker()))[0] == "[1] crisis.pdf p. 3 · Causes > Bubble"


def test_when_nothing_answers_it_says_so_and_quotes_nothing() -> None:
    shown = plains(drawn(answer([source()], [quote()], level="none", pages=1_277), Screen(80, 40), marker()))
    assert shown[0] == "Nothing seems to answer this: 1,277 pages were searched, and these are the"
    assert shown[1] == "nearest."
    assert not any("“" in line for line in shown)
    assert shown[-1].startswith("Nothing seems to answer this · ")
    [one] = quotes(screen_view(answer([source()], level="none", pages=1)), Screen(120, 40), 5, marker())
    assert "1 page was searched" in one.plain


def test_without_quotes_or_confidence_nothing_is_made_up() -> None:
    context = answer([source()])
    context.confidence = None
    shown = plains(drawn(context, Screen(80, 40), marker()))
    assert shown[0].startswith("[1] crisis.pdf")
    assert shown[-1] == "ctx open 1 · --full · --json"


def test_an_answer_of_which_nothing_fitted_names_no_page_to_open() -> None:
    context = answer([], dropped=[DroppedSource("aaaa", "a.pdf", 1, 0.5)])
    assert plains(drawn(context, Screen(80, 40), marker())) == [
        "",
        "The answer is very likely on these pages · --json",
    ]


@pytest.mark.parametrize("width", [20, 33, 50, 80])
@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_a_quote_keeps_its_lines_and_its_citation(width: int, count: int) -> None:
    shown = plains(quote_lines(quote(SENTENCE * 2, 10), width, count, marker()))
    assert len(shown) <= count
    assert all(cells(line) <= width for line in shown)
    assert shown[0].startswith("“The")
    assert shown[-1].endswith("” [10]")
    whole = " ".join(line.strip() for line in shown).removeprefix("“").removesuffix("” [10]")
    assert whole == (SENTENCE * 2).strip() or (whole.endswith("…") and len(shown) == count)
    assert " ".join(whole.removesuffix("…").split()) in SENTENCE * 2, "word for word"


def test_a_row_is_quoted_with_its_header() -> None:
    row = "| Plan | Premium |\n|---|---|\n| Standard | $45 |"
    assert plains(quote_lines(quote(row, 2), 60, 3, marker())) == ["Plan      Premium", "Standard  $45 [2]"]
    assert plains(quote_lines(quote(row, 2), 60, 1, marker())) == ["…Standard  $45 [2]"]
    assert plains(quote_lines(quote("", 2), 60, 1, marker())) == ["“” [2]"]
    words = quote("88 | Boiler: over-temperature; switch it off, and let it cool down", 2)
    assert plains(quote_lines(words, 30, 1, marker()))[0].startswith("88"), "a row that ends in words keeps its label"


def test_many_quotes_share_the_room() -> None:
    context = answer([source()], [quote(SENTENCE * 9, 1), quote(SENTENCE * 9, 1), quote(SENTENCE * 9, 1)])
    for room in (1, 2, 3, 5, 9, 30):
        shown = plains(quotes(screen_view(context), Screen(60, 40), room, marker()))
        assert len(shown) <= room
        assert sum(line.endswith("]") for line in shown) == min(3, room)


def test_notes_are_short_and_the_rest_is_counted() -> None:
    noted = replace(screen_view(answer([])), notes=tuple(NOTES))
    shown = plains(note_lines(screen_notes(noted), 60))
    assert len(shown) == 7
    assert shown[1].endswith(" …")
    assert shown[-1] == "… and 2 more notes: --json"
    assert note_lines([], 60) == []


def test_more_sources_than_the_screen_has_lines_still_have_theirs() -> None:
    shown = drawn(answer([source(page=n) for n in range(1, 61)], [quote()]), Screen(80, 24), marker())
    assert len([line for line in shown if "crisis.pdf" in line.plain]) == 60
    assert shown[0].plain.startswith("“The housing")


def control_characters(text: str) -> set[str]:
    return {c for c in text if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} or c in "\u202e\u2066"}


def test_nothing_of_a_document_moves_the_terminal() -> None:
    evil = source(HOSTILE, 1, f"# {HOSTILE}\n\n{HOSTILE} | {HOSTILE}\n\n|{HOSTILE}|b|\n|1|2|\n\n```\n{HOSTILE}\n```",
                  page_label=HOSTILE, section_path=HOSTILE, title=HOSTILE, suspicious=[HOSTILE])  # fmt: skip
    context = answer([evil], [quote(HOSTILE), quote(f"|{HOSTILE}|\n|1|")], query=HOSTILE)
    for screen in (Screen(80, 40, links=True), Screen(30, 40), Screen(300, 40, links=True)):
        for line in drawn(context, screen, marker("x"), [Note("budget", HOSTILE)]):
            assert not control_characters(line.plain)
            links = [span.style.link or "" for span in line.spans if not isinstance(span.style, str)]
            assert all(link.isascii() and link.isprintable() for link in links)


@draws(50)
@given(
    st.lists(st.text(max_size=200), min_size=1, max_size=12),
    st.integers(1, 130),
    st.integers(1, 60),
)
def test_whatever_it_holds_it_is_drawn_within_the_width(texts: list[str], width: int, height: int) -> None:
    sources = [source(text or "a", n, text, section_path=text) for n, text in enumerate(texts, 1)]
    context = answer(sources, [quote(text or "a", n) for n, text in enumerate(texts[:3], 1)])
    shown = drawn(context, Screen(width, height), marker("a"), [Note("budget", texts[0])])
    if width >= 20:
        assert all(cells(line.plain) <= width for line in shown)
        assert len(shown) <= max(height, len(texts) + 9)
