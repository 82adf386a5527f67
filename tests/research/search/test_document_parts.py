"""A question for a part of a document brings the pages of that part first, and leaves every other question alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from small_index import add

from research.index import Index
from research.models import Question
from research.search.document_parts import DocumentPartsBooster
from research.search.legs import Boosted, Ranked
from research.store import Catalog

LONG = "Words of the introduction that fill a page with text. " * 25

PAPER = [
    f"# HERON: Routing of Night Buses\n\nIlse Maartensdyk, Kofi Brannigan\n\n## Abstract\n\nWe present it.\n\n{LONG}",
    "## 2 Method\n\nCalls are shared among corridors.\n\n### 2.1 Sharing\n\nTies are settled.",
    "Conclusions are not yet drawn, and references come later.\n\n## 3 Results\n\nEmpty kilometres fell.",
    "## 4 Conclusion\n\nTwo levels are enough.\n\n## References\n\n"
    + "\n\n".join(f"[{n}] Author {n} (20{n:02}). A paper." for n in range(10, 25)),
    "\n\n".join(f"[{n}] Author {n} (20{n - 10:02}). A paper." for n in range(25, 40)),
    "## A Corridors\n\nThe four corridors.\n\n## B Drivers\n\nThe card.",
]
HANDBOOK = [
    "# Staff Handbook",
    "# Contents\n\n1 Welcome . . . . . 3 2 Pay . . . . . 4 3 Leave . . . . . 5 4 Travel . . . . 6 5 Safety . . . . 6"
    " 6 Concerns . . . . 7 7 Leaving . . . . 8 Glossary . . . . . 9",
    "# 1 Welcome\n\nPrepared by the people coordinator in March 2024. Pay and leave are explained below.",
    "# 2 Pay\n\nWages arrive on the 26th.\n\n## 2.1 Grades\n\nFour grades.",
    "# 3 Leave\n\nTwenty-nine days.",
    "# Glossary of terms\n\nRota: who works when.",
    "###### Glossary\n\nShare: what a member pays.",
]
SCAN = ["ELLERBY COUNCIL\n\nOn the Zwirner culvert and its repair", "Costs and dates.", "CONCLUSION\n\nRepair it."]
LETTER = [f"Corran and Veitch, engineers. The bridge is safe. {LONG}", "The otter holt is protected."]
OTHERS = {f"/d/other-{n}.pdf": [f"Something else, part {n}.", "More of it."] for n in range(4)}


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    documents = {"/d/2207.01934.pdf": PAPER, "/d/handbook-2024.pdf": HANDBOOK, "/d/img0042.pdf": SCAN}
    add(catalog, documents | {"/d/letter.pdf": LETTER} | OTHERS, {"/d/2207.01934.pdf": "HERON: Routing of Night Buses"})
    return catalog


def ranking(catalog: Catalog) -> list[Ranked]:
    """All pages, in the order of their numbers, each a little worse than the one before."""
    documents = [row[0] for row in catalog.execute("SELECT doc_id FROM documents")]
    pages = catalog.pages.get_many(sorted(catalog.pages.ids_of(documents)))
    return [Ranked(page_id, page.doc_id, 0.5 - place / 1000) for place, (page_id, page) in enumerate(pages.items())]


def boosted(catalog: Catalog, question: str, ranked: Sequence[Ranked] | None = None) -> Boosted:
    return DocumentPartsBooster().boost(Question(question), catalog, ranking(catalog) if ranked is None else ranked)


def moved(catalog: Catalog, question: str) -> list[tuple[str, int]]:
    """The pages that were lifted, in their order."""
    found = boosted(catalog, question)
    stored = catalog.pages.get_many([page.page_id for page in found.ranked])
    lifted = [page.page_id for page in found.ranked if page.page_id in found.pages]
    assert [page.page_id for page in found.ranked[: len(lifted)]] == lifted, "they come first"
    return [(stored[page_id].filename, stored[page_id].page) for page_id in lifted]


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("Summarise the HERON paper", [1]),
        ("Who wrote HERON?", [1]),
        ("abstract of the HERON paper", [1]),
        ("What does the HERON paper conclude?", [4]),
        ("references of HERON", [4, 5]),  # as far as they go
        ("results of the HERON paper", [3]),
        ("section 2.1 of HERON", [2]),
        ("Appendix B of the heron paper", [6]),
        ("Fasse das HERON-Paper zusammen", [1]),
        ("¿Quién escribió el artículo HERON?", [1]),
        ("HERON论文的作者是谁?", [1]),
    ],
)
def test_the_parts_of_a_paper(filled: Catalog, question: str, pages: list[int]) -> None:
    assert moved(filled, question) == [("2207.01934.pdf", page) for page in pages]


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("table of contents of the handbook", [2]),
        ("Who prepared the staff handbook?", [3, 1]),  # the cover does not say
        ("When was the staff handbook published?", [3, 1]),
        ("chapter 3 of the handbook", [5]),  # not the contents, which only list it
        ("the pay section of the handbook", [4]),
        ("glossary of the staff handbook", [6]),  # where it begins, though its name alone runs on
    ],
)
def test_the_parts_of_a_handbook(filled: Catalog, question: str, pages: list[int]) -> None:
    assert moved(filled, question) == [("handbook-2024.pdf", page) for page in pages]


def test_a_document_without_a_title_is_known_by_its_first_page(filled: Catalog) -> None:
    assert moved(filled, "conclusion of the report on the Zwirner culvert") == [("img0042.pdf", 3)]
    assert moved(filled, "Who wrote about Zwirner?") == [("img0042.pdf", 1)], "a word that no other document has"


@pytest.mark.parametrize(
    "question",
    [
        "What conclusion did the drivers reach about the corridors?",
        "Who wrote the letter about the otter holt?",  # its second page is no name
        "What were the results of HERON?",  # of whom, where no paper is spoken of?
        "What did the authors of HERON say about wages?",
        "conclusion of the Saltmarsh report",  # nobody is called so
        "Which section of the beam is decayed?",
        "references of something else",
        "How are ties settled?",
        "glossary of HERON",  # it has none
        "When is the date of leave in HERON night routing by Kofi Brannigan?",  # leave stands on a later page
    ],
)
def test_other_questions_are_left_alone(filled: Catalog, question: str) -> None:
    before = ranking(filled)
    after = boosted(filled, question, before)
    assert (list(after.ranked), set(after.pages)) == (before, set())


def test_a_name_alone_brings_the_title_page(filled: Catalog) -> None:
    paper = filled.pages.get_many([page.page_id for page in boosted(filled, "what is HERON?").ranked[:1]])
    assert [(page.filename, page.page) for page in paper.values()] == [("2207.01934.pdf", 1)]


def test_a_name_alone_leaves_a_bare_cover_behind_what_answers(catalog: Catalog) -> None:
    add(catalog, {"/d/zephyrine.pdf": ["ZEPHYRINE", "Zephyrine is a wind.", "It blows.", "Zephyrine again."], **OTHERS})
    before = list(reversed(ranking(catalog)))
    after = boosted(catalog, "zephyrine", before)
    [cover] = after.pages
    assert catalog.pages.get_many([cover])[cover].page == 1
    assert (after.ranked[2].page_id, list(after.ranked[:2])) == (cover, before[:2])


def test_one_document_need_not_be_named(catalog: Catalog) -> None:
    add(catalog, {"/d/2207.01934.pdf": PAPER})
    assert moved(catalog, "what is the conclusion?") == [("2207.01934.pdf", 4)]


def test_two_that_share_a_name_are_both_shown(catalog: Catalog) -> None:
    editions = {f"/d/saltmarsh-handbook-{year}.pdf": [*HANDBOOK, f"Edition of {year}."] for year in (2024, 2025)}
    add(catalog, editions | OTHERS)
    both = [("saltmarsh-handbook-2024.pdf", 2), ("saltmarsh-handbook-2025.pdf", 2)]
    assert moved(catalog, "contents of the Saltmarsh handbook") == both
    assert moved(catalog, "contents of the 2025 Saltmarsh handbook") == both[1:]


def test_a_table_of_contents_far_behind_is_an_attachment_s(catalog: Catalog) -> None:
    index = "Index to the Form\n\n" + "\n".join(f"Item {n}. | Business of part {n} | {n}" for n in range(1, 15))
    filing = ["ACME CORPORATION annual filing", index, *["Text of the filing."] * 20, "# TABLE OF CONTENTS\n\nPlan 1"]
    add(catalog, {"/d/acme-10k.pdf": filing, **OTHERS})
    assert moved(catalog, "table of contents of the Acme 10-K") == [("acme-10k.pdf", 2)]


def test_an_overview_of_a_chapter_sums_up_no_document(catalog: Catalog) -> None:
    pages = ["# Voting access\n\nA survey of adults.", *["Text."] * 14, "## Overview\n\nThe panel was recruited."]
    add(catalog, {"/d/voting-access.pdf": pages, **OTHERS})
    assert moved(catalog, "overview of the voting access report") == [("voting-access.pdf", 1)]


ANNUAL = [
    "# Corbel plc\n\nAnnual report",
    "# Highlights\n\nSales 14, profit 2.",
    "# Chairman’s Report\n\nCorbel plc 2\n\nSlates sold well in every month.\n\n## People\n\nNine masons joined us.",
    "Corbel plc 3\n\nThe outlook of the year is fair.",
    "# Principal risks and uncertainties\n\nWe list them by weight.\n\n## Stone\n\nThe quarry may close next year.",
    *["Notes to the accounts of the year."] * 12,
    "# Summary of accounting policies\n\nRevenue is booked when slates leave.",
]


@pytest.mark.parametrize(
    ("question", "pages"),
    [
        ("summarise the Corbel report", [3, 1]),
        ("What is the Corbel annual report about?", [3, 1]),
        ("highlights of the Corbel report", [2, 1]),
        ("Chairman's report of Corbel", [3]),
        ("main risks of Corbel", [5]),
        ("Was sind die Hauptrisiken von Corbel?", [5]),
        ("Quels sont les principaux risques de Corbel ?", [5]),
        ("¿Cuáles son los principales riesgos de Corbel?", [5]),
        ("What are the risks of opening the quarry?", []),
        ("main risks of diabetes treatment", []),
    ],
)
def test_whole_documents(catalog: Catalog, question: str, pages: list[int]) -> None:
    add(catalog, {"/d/corbel-2023.pdf": ANNUAL, **OTHERS})
    assert moved(catalog, question) == [("corbel-2023.pdf", page) for page in pages]


def test_where_nothing_sums_a_document_up_its_sections_do(catalog: Catalog) -> None:
    chapters = [
        "Planer",
        *[f"# {name}\n\n{LONG}" for name in ("Blades", "Belts", "Oil")],
    ]
    add(catalog, {"/d/planer.pdf": chapters, **OTHERS})
    assert moved(catalog, "give me an overview of the Planer manual") == [("planer.pdf", page) for page in (2, 3, 4, 1)]


@pytest.mark.parametrize(
    ("question", "note", "quotes"),
    [
        (
            "Summarise the Tessel & Rowe report",
            "own letter or statement to its readers (page 2)",
            "A year in which one",
        ),
        ("main risks of Tessel & Rowe", "own section on risks (page 5)", "Concentration."),
        ("abstract of the night cooling article", "own summary (page 1)", "Abstract. Libraries in older schools"),
        ("overview of the 2025 Saltmarsh handbook", "its sections begin so (pages", "# "),
        ("What was Tessel & Rowe's revenue?", "", "Revenue"),
    ],
)
def test_a_part_is_quoted_from_its_beginning_and_named(
    sample_index: Path, question: str, note: str, quotes: str
) -> None:
    with Index(sample_index) as index:
        found = index.ask(question)
    assert [note in told for told in found.coverage.notes] == ([True] if note else []), found.coverage.notes
    assert found.quotes[0].citation == 1
    assert quotes in found.quotes[0].text


@pytest.mark.parametrize(
    "page",
    ["# x\n" * 100_000, "#" * 100_000, "conclusion | " * 20_000, "." * 100_000, "Conclusion " + "*" * 100_000],
    ids=["headings", "marks", "cells", "dots", "stars"],
)
def test_hostile_pages_are_read_within_bounds(catalog: Catalog, page: str) -> None:
    add(catalog, {"/d/heron.pdf": [page, "## Conclusion\n\nIt holds."], **OTHERS})
    assert ("heron.pdf", 2) in moved(catalog, "conclusion of the heron paper")
