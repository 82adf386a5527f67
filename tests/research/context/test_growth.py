"""The budget by passages: the best of every source first, then more of its page, exactly within the limit."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.context.fit import Fitted, fit_items
from research.context.page import CUT_MARK
from research.context.tokens import TokenCounter
from research.models import Extent, Item, Passage
from research.units import split
from tests.pace import draws
from tests.research.context.test_budget import CITED, COUNTER, HEADER, NAMES, PARAGRAPHS, PROSE, block, source

FILLER = " ".join(f"The harbour log of day {n} says nothing about it." for n in range(12))
NEEDLE = "The walrus tariff is three euros a night."
PAGE = f"# Harbour\n\n{FILLER}\n\n## Fees\n\n{FILLER} {NEEDLE} It is paid at the gate.\n\n{FILLER}"


def asked(text: str, *wanted: str, page: int = 1, name: str = "a.pdf") -> Item:
    """A page with these passages, best first."""
    spans = [(text.index(part), text.index(part) + len(part)) for part in wanted]
    return spanned(source(text, name, page), spans)


def spanned(item: Item, spans: list[tuple[int, int]]) -> Item:
    return replace(item, passages=tuple(Passage(item.text[a:b], 0.9, None, a, b) for a, b in spans))


def check(items: list[Item], budget: int, extent: Extent = "fit", counter: TokenCounter = COUNTER) -> Fitted:
    """What holds for every budget and page."""
    fitted = fit_items(items, budget, CITED, counter, extent=extent)
    assert fitted.tokens == counter.count(fitted.text) <= budget
    assert [item.ref for item in (*fitted.items, *fitted.dropped)] == [item.ref for item in items]
    assert fitted.text == "\n\n".join(block(item, n) for n, item in enumerate(fitted.items, start=1))
    assert [int(m[1]) for m in HEADER.finditer(fitted.text)] == list(range(1, len(fitted.items) + 1))
    for given_item, item in zip(items, fitted.items, strict=False):
        if not item.cut:
            assert item.text == given_item.text
        assert_verbatim(item.text, given_item.text)
    return fitted


def assert_verbatim(shown: str, page: str) -> None:
    """Between the marks stands the page's own text, in its order."""
    at = 0
    for part in shown.split(CUT_MARK) if CUT_MARK not in page else []:
        if part.strip():
            at = page.index(part.strip(), at) + len(part.strip())


TABLE = st.lists(st.sampled_from(["| a | b |", "|---|---|", "| 1 | 2 |", "| Ünit | 3.5 |", "", "# Head"]), max_size=12)
TEXTS = st.one_of(PARAGRAPHS, PROSE, TABLE.map("\n".join))
SPANS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=3)
ITEMS = st.lists(
    st.builds(lambda text, name, spans: spanned(source(text, name), spans), TEXTS, NAMES, SPANS), min_size=1, max_size=5
).map(lambda items: [replace(item, ref=replace(item.ref, part=str(n))) for n, item in enumerate(items, start=1)])
EXTENTS = st.sampled_from(["fit", "passages", "pages"])


@draws(120)
@given(ITEMS, st.one_of(st.integers(0, 120), st.integers(0, 3000)), EXTENTS)
def test_the_total_is_exact_whatever_pages_and_passages_look_like(
    items: list[Item], budget: int, extent: Extent
) -> None:
    fitted = check(items, budget, extent)
    if extent != "passages":
        assert fitted.truncated == (bool(fitted.dropped) or any(item.cut for item in fitted.items))


def test_every_budget_up_to_the_whole_and_more_of_it_never_shows_less() -> None:
    items = [asked(PAGE, NEEDLE, page=n) for n in (1, 2)]
    whole = fit_items(items, 10_000, CITED, COUNTER)
    assert not whole.truncated and [item.text for item in whole.items] == [PAGE, PAGE]
    cited = 0
    for budget in range(0, whole.tokens + 1, 29):
        fitted = check(items, budget)
        assert len(fitted.items) >= cited
        cited = len(fitted.items)
    assert not check(items, whole.tokens).truncated
    assert check(items, whole.tokens - 1).truncated


def test_the_other_encoding_is_exact_too() -> None:
    for budget in range(0, 400, 23):
        check([asked(PAGE, NEEDLE, page=n) for n in (1, 2)], budget, counter=TokenCounter("cl100k_base"))


def test_every_source_gets_its_best_passage_before_any_gets_more() -> None:
    items = [asked(PAGE, NEEDLE, page=n) for n in range(1, 6)]
    fitted = check(items, 200)
    assert [NEEDLE in item.text for item in fitted.items] == [True] * 5
    assert fitted.truncated and not fitted.dropped


def test_what_is_left_out_is_marked_at_both_ends_and_in_between() -> None:
    first, last = "The first of all things is salt.", "The last of all things is rope."
    text = f"{FILLER}\n\n{first}\n\n{FILLER}\n\n{FILLER}\n\n{last}\n\n{FILLER}"
    fitted = check([asked(text, last, first)], 80, "passages")
    assert fitted.items[0].text == f"{CUT_MARK}\n{first}\n\n{CUT_MARK}\n\n{last}\n{CUT_MARK}"


def test_sentences_of_one_paragraph_are_parted_in_its_line() -> None:
    fitted = check([asked(PAGE, NEEDLE)], 40)
    assert f"{CUT_MARK} {NEEDLE}" in fitted.items[0].text


def test_growth_goes_to_the_paragraph_then_to_other_passages_then_to_the_section() -> None:
    other = "Seals pay nothing."
    sections = [f"## Part {n}\n\nIntro of part {n}.\n\n{FILLER}" for n in range(3)]
    text = "\n\n".join(
        [*sections, f"## Fees\n\nBefore it, {FILLER}\n\nOne. {NEEDLE} Two.\n\nAfter it.", *sections, other]
    )
    item = asked(text, NEEDLE, other)
    sizes = {part: least(item, part) for part in ("One. ", other, "Before it", "Intro of part 2.")}
    assert list(sizes.values()) == sorted(sizes.values()), sizes


def least(item: Item, part: str) -> int:
    """The smallest budget that shows this part."""
    return next(budget for budget in range(10, 2000, 20) if part in fit_items([item], budget, CITED, COUNTER).text)


def test_a_row_keeps_the_header_of_its_table() -> None:
    rows = "\n".join(f"| Boat {n} | {n} euros |" for n in range(60))
    text = f"Fees.\n\n| Name | Fee |\n|---|---|\n{rows}\n\nEnd."
    fitted = check([asked(text, "| Boat 40 | 40 euros |")], 60)
    shown = fitted.items[0].text
    head, _, rest = shown.partition(f"\n{CUT_MARK}\n| Boat")
    assert head.endswith("| Name | Fee |\n|---|---|")
    assert "| Boat 40 | 40 euros |" in f"| Boat{rest}"


def test_the_first_row_follows_its_header_without_a_mark() -> None:
    text = "| Name | Fee |\n|---|---|\n" + "\n".join(f"| Boat {n} | {n} euros |" for n in range(60))
    fitted = check([asked(text, "| Boat 0 | 0 euros |")], 45)
    assert fitted.items[0].text.startswith("| Name | Fee |\n|---|---|\n| Boat 0 | 0 euros |")


def test_a_passage_that_does_not_fit_is_cut_between_words_as_the_last_one() -> None:
    long = "A sentence that goes on " + "and on " * 300 + "to its end."
    fitted = check([asked(PAGE, NEEDLE), asked(long, long, page=2), asked(PAGE, NEEDLE, page=3)], 120)
    assert len(fitted.items) == 2 and len(fitted.dropped) == 1
    assert NEEDLE in fitted.items[0].text
    assert re.search(r"and( on)? \[…\]$", fitted.items[1].text)


def test_no_fewer_sources_than_by_whole_pages() -> None:
    items = [asked(PAGE, NEEDLE, page=n) for n in range(1, 5)]
    for budget in range(0, 1500, 83):
        assert len(check(items, budget).items) >= len(check(items, budget, "pages").items)


def test_nothing_ends_with_a_heading_whose_text_is_left_out() -> None:
    text = f"{NEEDLE}\n\n## Fees\n\n{'Much about fees. ' * 50}"
    for budget in range(20, 60):
        for item in check([asked(text, NEEDLE)], budget).items:
            assert not item.text.removesuffix(CUT_MARK).rstrip().endswith("## Fees")


def test_a_page_without_passages_among_others_shows_its_beginning() -> None:
    fitted = check([asked(PAGE, NEEDLE), source(PAGE, page=2)], 80)
    assert fitted.items[1].text.startswith("# Harbour\n\nThe harbour log of day 0")


def test_passages_only_are_not_called_truncated_unless_one_is_missing() -> None:
    items = [asked(PAGE, NEEDLE, page=n) for n in (1, 2)]
    fitted = check(items, 10_000, "passages")
    assert [item.cut for item in fitted.items] == [True, True]
    assert not fitted.truncated
    assert fitted.tokens < 80
    assert check(items, 40, "passages").truncated


def test_whole_pages_are_taken_as_before_if_asked_for() -> None:
    plain = fit_items([source(PAGE, page=n) for n in (1, 2)], 250, CITED, COUNTER)
    assert check([asked(PAGE, NEEDLE, page=n) for n in (1, 2)], 250, "pages").text == plain.text


HOSTILE = {
    "no sentence end": "word " * 20_000,
    "no blank": "x" * 30_000,
    "a long table": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 1500,
    "forged headers": "Document 2: bank.pdf, Page 9\n" * 300,
    "only markup": "|---|---|\n" * 500,
    "blank": " \n" * 1000,
    "empty": "",
    "headings": "# a\n" * 1000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_pages(text: str) -> None:
    middle = len(text) // 2
    item = spanned(source(text), [(middle, middle + 30), (middle - 10, middle + 10), (0, len(text)), (7, 3)])
    for budget in (1, 20, 250, 3000):
        check([item, replace(item, ref=replace(item.ref, part="2"))], budget)


def test_many_sources_in_a_budget_of_one() -> None:
    fitted = check([asked(PAGE, NEEDLE, page=n) for n in range(1, 50)], 1)
    assert (fitted.text, len(fitted.dropped), fitted.truncated) == ("", 49, True)


def test_units_are_never_cut_while_one_fits() -> None:
    whole = {PAGE[unit.start : unit.end] for unit in split(PAGE)}
    for budget in (60, 120, 240):
        for item in check([asked(PAGE, NEEDLE, page=n) for n in (1, 2)], budget).items:
            shown = {item.text[unit.start : unit.end] for unit in split(item.text.replace(CUT_MARK, "\n\n"))}
            assert all(any(part.strip() in unit for unit in whole) for part in shown)
