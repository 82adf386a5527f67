"""Ratios are searched with the line items they are made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_index import add, embed

from research.encoders.base import TextEncoder
from research.search.engine import SearchEngine
from research.search.ratios import spelled_out
from research.store.catalog.catalog import Catalog
from research.store.client import ChromaClient
from research.store.vectors import writer

NOTES = [
    "The ratio of men to women among our staff improved again this year, and the quick reader will find more below.",
    "Cash 120. Receivables 340. Inventories 90. Total current assets 550. Total current liabilities 410.",
    "Sales by region: north 200, south 300. The current year was quick to end, as the ratio of orders shows.",
]


@pytest.mark.parametrize(
    ("question", "item"),
    [
        ("Has the quick ratio improved?", "inventories"),
        ("What is the FY2021 inventory turnover?", "cost of sales"),
        ("What is Nike's ROE?", "equity"),
        ("days payable outstanding (DPO)", "accounts payable"),
        ("Did Pfizer grow its PP&E?", "property plant"),
        ("How did free cash flow develop?", "operating activities"),
        ("the effective tax rate of 2022", "provision for income taxes"),
        ("What is the debt-to-equity ratio?", "long-term debt"),
        ("gross margins since 2020", "cost of goods"),
    ],
)
def test_a_ratio_brings_its_line_items(question: str, item: str) -> None:
    spelled = spelled_out(question)
    assert spelled.startswith(f"{question} ")
    assert set(item.split()) <= set(spelled.removeprefix(question).split())


@pytest.mark.parametrize(
    "question",
    ["", "How many roe deer live here?", "What is the current speed?", "A ratio of 3 to 4", "Which tax rate applies?"],
)
def test_other_questions_stay_as_they_are(question: str) -> None:
    assert spelled_out(question) == question


def test_each_item_is_added_once() -> None:
    added = spelled_out("ROA").removeprefix("ROA").split()
    assert len(added) == len(set(added))


def test_the_statement_is_found_that_holds_no_word_of_the_question(
    catalog: Catalog, encoder: TextEncoder, tmp_path: Path
) -> None:
    add(catalog, {"/x/notes.pdf": NOTES})
    embed(catalog, encoder)
    writer.publish(catalog)
    found = (
        SearchEngine(ChromaClient(tmp_path / "index"), encoder=encoder).run("Has the quick ratio improved?", 3).found
    )
    assert found[0].page.page == 2
