"""The budget holds exactly, whatever the pages look like."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.context.escape import name as shown_name
from research.context.fit import fit_items
from research.context.page import CUT_MARK
from research.context.render import CitedPages, item_of
from research.context.tokens import TokenCounter
from research.models import Item, SourceDocument
from tests.pace import draws

COUNTER = TokenCounter()
CITED = CitedPages()
HEADER = re.compile(r"^\[Document (\d+): (.+), Page (\d+)\]$", re.MULTILINE)

WORDS = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=30)
PARAGRAPHS = st.lists(WORDS, max_size=12).map("\n\n".join)
PROSE = st.lists(
    st.sampled_from(
        ["The pump runs at 40 bar.", "See table 3.", "| a | b |", "- item", "Überprüfung!", "价格上涨。", "x" * 90]
    ),
    max_size=60,
).map(" ".join)
NAMES = st.one_of(st.just("report.pdf"), WORDS)


def source(text: str, name: str = "a.pdf", page: int = 1) -> Item:
    return item_of(SourceDocument(doc_id="d", filename=name, page=page, extension="pdf", markdown_content=text))


def block(item: Item, number: int) -> str:
    return f"{CITED.header(item, number)}\n{CITED.body(item.text)}"


SOURCES = st.lists(st.builds(source, st.one_of(PARAGRAPHS, PROSE), NAMES, st.integers(1, 5000)), max_size=6)


@draws(150)
@given(SOURCES, st.integers(0, 20_000))
def test_the_total_is_exact_and_within_the_budget(sources: list[Item], budget: int) -> None:
    check(sources, budget)


@draws(100)
@given(SOURCES, st.integers(0, 200))
def test_small_budgets_too(sources: list[Item], budget: int) -> None:
    check(sources, budget)


def check(sources: list[Item], budget: int) -> None:
    fitted = fit_items(sources, budget, CITED, COUNTER)
    assert fitted.tokens == COUNTER.count(fitted.text) <= budget
    assert len(fitted.items) + len(fitted.dropped) == len(sources)
    assert fitted.truncated == (bool(fitted.dropped) or any(s.cut for s in fitted.items))
    assert [s.cut for s in fitted.items[:-1]] == [False] * len(fitted.items[:-1])
    assert fitted.text == "\n\n".join(block(s, n) for n, s in enumerate(fitted.items, start=1))
    numbers = [int(match[1]) for match in HEADER.finditer(fitted.text)]
    assert numbers == list(range(1, len(fitted.items) + 1))


def test_every_budget_up_to_the_whole() -> None:
    text = "\n\n".join(f"Paragraph {n}. It says a little. And then a little more." for n in range(12))
    sources = [source(text, page=n) for n in (1, 2)]
    whole = fit_items(sources, 10_000, CITED, COUNTER).tokens
    for budget in (*range(0, whole, 5), whole - 1, whole, whole + 1):
        check(sources, budget)
    assert not fit_items(sources, whole, CITED, COUNTER).truncated
    assert fit_items(sources, whole - 1, CITED, COUNTER).truncated


def test_a_cut_source_ends_at_a_sentence_and_says_so() -> None:
    text = "\n\n".join(f"Sentence one of {n}. Sentence two of {n}." for n in range(40))
    fitted = fit_items([source(text)], 200, CITED, COUNTER)
    assert fitted.items[0].cut
    kept, mark = fitted.items[0].text.rsplit("\n", 1)
    assert mark == CUT_MARK
    assert kept.endswith(".")
    assert text.startswith(kept)


def test_too_small_for_a_header_gives_an_empty_truncated_context() -> None:
    fitted = fit_items([source("Some text.")], 3, CITED, COUNTER)
    assert (fitted.text, fitted.tokens, fitted.truncated) == ("", 0, True)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb.pdf", "a b.pdf"),
        ("a\x1b[31m.pdf", "a [31m.pdf"),
        ("a\u202egpj.pdf", "a gpj.pdf"),
        ("\n", "unnamed"),
        ("it's [1].pdf", "it's [1].pdf"),
    ],
)
def test_file_names_are_one_harmless_line(name: str, shown: str) -> None:
    assert shown_name(name) == shown


@pytest.mark.parametrize(
    ("sentence", "end"),
    [
        ('The harbour master stood at the pier and shouted "stop it." ', '"stop it."'),
        ("港は三月に閉鎖されたと記録に書かれている。", "いる。"),
    ],
    ids=["a quotation mark closes it", "no blank follows it"],
)
def test_a_cut_ends_with_a_sentence(sentence: str, end: str) -> None:
    text = (sentence * 10).strip()
    cut = fit_items([source(text)], COUNTER.count(text) * 3 // 4, CITED, COUNTER).items[0]
    assert cut.cut and cut.text.removesuffix(f" {CUT_MARK}").endswith(end)
