"""Which units of a page fit a question: by its words, by the vectors of its chunks, and by what stands around them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_index import add, embed, open_catalog

from research.encoders import load_text_encoder
from research.index import Index
from research.models import Item, Passage, Ref
from research.records import Box, Region
from research.search.passages import PageEvidence, Piece, WantedWords, asks_for_number, with_passages
from research.sources.items import told_experience
from research.store import ComparedChunk, analyze
from research.units import split
from tests.pace import draws

TOP: Box = (0.1, 0.1, 0.9, 0.2)
FOOT: Box = (0.1, 0.8, 0.9, 0.9)


def passages(
    text: str,
    question: str,
    chunks: tuple[ComparedChunk, ...] = (),
    lines: tuple[Piece, ...] = (),
    rows: tuple[str, ...] = (),
) -> list[Passage]:
    wanted = WantedWords(question, dict.fromkeys(analyze(question), 1.0), rows)
    return list(PageEvidence(text, split(text), wanted, chunks, lines).passages())


def best(text: str, question: str) -> str:
    return passages(text, question)[0].text


LEAVE = """# Staff handbook

## Vacation

New employees get 18 days of paid vacation in their first year of service at one of the four branches of the library. \
From the fifth year on it is 25 days, and unused days lapse at the end of March of the following year without exception.

## Parking

The car park behind the library is open to employees and to visitors with a badge from six to ten at night.
"""


def test_the_sentence_that_answers_is_the_best_passage() -> None:
    found = passages(LEAVE, "How many days of vacation do new employees get?")
    assert found[0].text.startswith("New employees get 18 days")
    assert all(LEAVE[each.start : each.end] == each.text for each in found)


def test_a_word_of_every_sentence_decides_nothing() -> None:
    assert best(LEAVE, "When is the library's car park open?").startswith("The car park behind")


def test_words_are_compared_as_full_text_search_does() -> None:
    text = "The offices are closed in winter.\n\nHappiness was measured twice.\n\nSales reached 12,500 units that year."
    assert best(text, "closing office") == "The offices are closed in winter."
    assert best(text, "happy measure") == "Happiness was measured twice."
    assert best(text, "12500") == "Sales reached 12,500 units that year."
    assert passages(text, "walrus") == []


def test_a_word_that_only_begins_alike_is_another_one() -> None:
    text = "The user manual is blue and thick.\n\nExports to the US fell by a third."
    assert best(text, "US exports") == "Exports to the US fell by a third."


def test_a_label_brings_its_value() -> None:
    text = (
        "# Reach\n\nTwitter\n60,860\nBlogs\n18\nForums\n7\n\nPosts were counted in the first week after the accident."
    )
    assert "18" in best(text, "How many blogs were there?")


def test_a_question_brings_its_answer_and_a_colon_what_it_announces() -> None:
    faq = (
        "Can I swim with the watch?\n\nUp to 50 metres deep, not in hot water.\n\nIs it rust-proof?\n\nIt is of resin."
    )
    assert best(faq, "Can I swim with it?").endswith("not in hot water.")
    listed = "The deposit is paid back in these cases:\n\n- the room was never used\n\nBring the receipt."
    assert best(listed, "In which cases is the deposit paid back?").endswith("- the room was never used")


def test_a_row_is_found_by_the_words_of_its_header_and_heading() -> None:
    text = (
        "## Influence after the outbreak\n\n| Country | more | less |\n|---|---|---|\n| Norway | 29 | 41 |\n"
        "| Chile | 19 | 59 |\n\n## Trade after the outbreak\n\n| Country | up | down |\n|---|---|---|\n"
        "| Norway | 7 | 93 |\n| Chile | 8 | 92 |\n"
    )
    found = passages(text, "How much less influence has Chile after the outbreak?")
    assert "| Chile | 19 | 59 |" in found[0].text


def test_a_number_is_preferred_where_one_is_asked_for() -> None:
    text = "The bridge is high enough for ships, as was seen.\n\nFor ships the bridge is 9.4 m high."
    assert best(text, "How high is the bridge for ships?").endswith("9.4 m high.")


@pytest.mark.parametrize(
    "question",
    [
        "How many blogs were there?", "What percentage agreed?", "In which year was it built? Which year?",
        "When did it open?", "Wie viele Tage Urlaub?", "Combien de jours ?", "¿Cuántos días?", "Quanti giorni?",
        "Quantas horas?", "Hoeveel dagen?", "有多少天？", "何人いますか",
    ],
)  # fmt: skip
def test_questions_for_numbers_are_told_in_several_languages(question: str) -> None:
    assert asks_for_number(question)


@pytest.mark.parametrize("question", ["Who wrote it?", "Why did it fail?", "Wer haftet?", "the somewhat longer way"])
def test_other_questions_are_not(question: str) -> None:
    assert not asks_for_number(question)


def test_other_scripts() -> None:
    text = "第一章\n\n图书馆周一关闭。儿童可免费入场。\n\n停车场在后面。"
    assert best(text, "图书馆什么时候关闭").startswith("图书馆周一关闭")
    greek = "Η βιβλιοθήκη κλείνει τη Δευτέρα.\n\nΤο πάρκινγκ είναι πίσω."
    assert best(greek, "Πότε κλείνει η βιβλιοθήκη;").startswith("Η βιβλιοθήκη")


def test_the_vector_of_a_chunk_finds_what_is_said_in_other_words() -> None:
    text = "The lift may carry eight persons.\n\nPets have to stay outside."
    chunks = (
        ComparedChunk("The lift may carry eight persons.", (Region(0, TOP),), 0.1),
        ComparedChunk("Pets have to stay outside.", (Region(0, FOOT),), 0.7),
    )
    [first, *_] = passages(text, "dogs allowed?", chunks)
    assert (first.text, first.box) == ("Pets have to stay outside.", FOOT)


def test_a_line_of_ocr_has_a_vector_and_a_box_of_its_own() -> None:
    text = "BLOGS | 18\nFORUMS | 7"
    chunks = (ComparedChunk(text, (Region(0, (0.0, 0.0, 1.0, 1.0)),), 0.2),)
    lines = (Piece("BLOGS | 18", TOP, 0.2), Piece("FORUMS | 7", FOOT, 0.8))
    [first, *_] = passages(text, "boards", chunks, lines)
    assert "FORUMS | 7" in first.text
    assert first.box in {FOOT, (0.1, 0.1, 0.9, 0.9)}


def test_units_may_have_vectors_of_their_own() -> None:
    page = PageEvidence(LEAVE, split(LEAVE), WantedWords("where to leave the automobile", {"automobil": 1.0}))
    assert page.passages() == ()
    texts = page.texts()
    page.refine([0.8 if text.startswith("The car park") else 0.1 for text in texts])
    assert page.passages()[0].text.startswith("The car park behind")


PIECES = [
    "# H\n\n",
    "word ",
    "red rose. ",
    "\n",
    "\n\n",
    "| a | 1 |\n",
    "|---|---|\n",
    "- item\n",
    "rose?\n\n",
    "12,000 ",
    "花。",
]


@draws(150)
@given(
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.sampled_from(["rose", "12000 rose", "花", "", "a 1 item"]),
)
def test_whatever_the_page_passages_are_whole_units_of_it(text: str, question: str) -> None:
    found = passages(text, question)
    ends = 0
    for each in sorted(found, key=lambda passage: passage.start):
        assert text[each.start : each.end] == each.text != ""
        assert each.start >= ends
        assert 0 < each.score <= 1
        ends = each.end
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert len(found) <= 3


def test_a_page_of_one_endless_line_takes_no_time() -> None:
    """It does nothing that grows faster than the page: ten times as long, and it still comes back."""
    for text in ("rose " * 8_000, "| rose " * 6_000, "rose?\n" * 6_000, "# rose\n" * 6_000):
        assert passages(text, "rose")


def test_without_an_encoder_passages_are_found_by_words(tmp_path: Path) -> None:
    with open_catalog(tmp_path) as catalog:
        add(catalog, {"/a.pdf": [LEAVE, "Nothing of interest stands here."]})
        embed(catalog, load_text_encoder())
    with Index(tmp_path) as index:
        lexical = index.ask("vacation of new employees", mode="lexical")
        assert lexical.quotes[0].text.startswith("New employees get 18 days")
        hybrid = index.ask("vacation of new employees")
        assert hybrid.sources[0].passages[0].section_path == "Staff handbook > Vacation"


def test_the_row_that_the_question_says_is_the_first_passage() -> None:
    text = (
        "Balance sheet\n\n(Millions) | 2021 | 2020\nOther current liabilities | 24,939 | 11,561\n"
        "Total current liabilities | 42,671 | 25,920\nTotal liabilities and current provisions of others | 1 | 2\n"
    )
    question = "What were total current liabilities at the end of 2020?"
    wanted = WantedWords(question, dict.fromkeys(analyze(question), 1.0))
    other, total, sentence = (wanted.label(row)[0] for row in text.splitlines()[3:])
    assert total > 0.9 > other > sentence
    [first, *_] = PageEvidence(text, split(text), wanted).passages("")
    assert "Total current liabilities | 42,671 | 25,920" in first.text


def test_a_row_may_be_called_otherwise_and_a_table_of_other_years_is_no_answer() -> None:
    wanted = WantedWords("capex 2020", {"capex": 1.0, "2020": 1.0}, ["purchases of property and equipment"])
    assert wanted.label("Purchases of property and equipment | (2,711) | (2,226)") == (0, 1)
    assert max(wanted.label("Purchases of short-term investments | 7")) < 0.2
    rows = "(Millions) | {0}\nPurchases of property and equipment | (2,711)\n"
    scores = [
        PageEvidence(text, split(text), wanted).passages("")[0].score for text in (rows.format(2020), rows.format(2018))
    ]
    assert scores[0] > scores[1]


def test_a_row_counts_half_in_the_table_of_a_part_and_nothing_where_a_reason_is_asked_for() -> None:
    row = "Total current liabilities | 1,309 | 2,037"
    scores = []
    for asked in (
        "total current liabilities",
        "total current liabilities of the parent company",
        "why total current liabilities fell",
    ):
        for title in ("Parent company balance sheet", "Consolidated balance sheet"):
            text = f"{title}\n\n(Millions) | 2021 | 2020\n{row}\n"
            evidence = PageEvidence(text, split(text), WantedWords(asked, dict.fromkeys(analyze(asked), 1.0)))
            start = text.index(row)
            scores.append(evidence.label_of(Passage(row, 1.0, None, start, start + len(row))))
    assert scores[0] == scores[1] / 2
    assert scores[2] >= scores[3] > 0 == scores[4] == scores[5]


def test_what_stands_under_a_line_of_a_table_is_one_passage() -> None:
    sales = (
        "(Millions) | 2023 | 2022\nOncology\nUS | 2,069 | 1,679\nWW | 4,398 | 4,042\n"
        "Darzalex\nUS | 1,322 | 1,021\nWW | 2,431 | 1,986\n"
    )
    assert best(sales, "What did Darzalex sell in 2022?") == "Darzalex\nUS | 1,322 | 1,021\nWW | 2,431 | 1,986"
    assert best(sales, "WW sales of Darzalex in 2022?").endswith("WW | 2,431 | 1,986"), "and a row knows its line"


def test_a_row_that_is_asked_for_stands_alone() -> None:
    text = (
        "(MILLIONS) | 2021 | 2020\nOther current liabilities | 24,939 | 11,561\n"
        "Total current liabilities | 42,671 | 25,920\n"
        "Long-term debt | 36,195 | 37,133\n"
    )
    assert best(text, "What were total current liabilities in 2020?") == "Total current liabilities | 42,671 | 25,920"


def test_the_row_of_a_year_or_number_that_is_asked_for_stands_alone() -> None:
    census = "Year | Aurora | Giltner\n1900 | 1,921 | 282\n1910 | 2,630 | 410\n1920 | 2,962 | 395\n"
    assert best(census, "How many people lived in Giltner in 1910?") == "1910 | 2,630 | 410"
    errors = "Number | Description\n87 | Valve stuck\n88 | Boiler too hot\n89 | No water\n"
    assert best(errors, "What is error number 88?") == "88 | Boiler too hot"


def test_of_rows_that_are_called_alike_another_is_better() -> None:
    equity = "Shares | Cash\nNet income | 3,659 | 45\nDividends | 1 | 2\nNet income | 5,007 | 72\n"
    income = "\n\nParagraphs part tables.\n\nDecember 31 | 2021 | 2020\nNet income | 5,079 | 4,059\n"
    question = "What was net income in 2021?"
    wanted = WantedWords(question, dict.fromkeys(analyze(question), 1.0))
    scores = [PageEvidence(text, split(text), wanted).passages("")[0].score for text in (equity, income)]
    assert scores[1] > scores[0]


def test_a_row_whose_table_says_the_rest_comes_first() -> None:
    tables = (
        "#### Depreciation\n\nYears | 2022 | 2021\nAirplanes | 508 | 535\nGlobal Services | 346 | 414\n\n"
        "#### Capital Expenditures\n\nYears | 2022 | 2021\nAirplanes | 218 | 177\nGlobal Services | 130 | 94\n"
    )
    question = "What was the capex of the Global Services segment in 2021?"
    [first, *_] = passages(tables, question, rows=("capital expenditures",))
    assert first.text == "Global Services | 130 | 94"


def test_entries_of_a_table_of_contents_are_no_figures() -> None:
    towns = ["Aurora", "Giltner", "Hampton", "Hordville", "Marquette", "Murphy", "Phillips"]
    contents = "\n".join(f"{town}, Nebraska | {page}" for page, town in enumerate(towns, start=10))
    text = f"{contents}\n\nThe population of Giltner was 410 in 1910.\n"
    assert best(text, "Population of Giltner, Nebraska?") == "The population of Giltner was 410 in 1910."
    assert best("Index\nread.fortran ... 11 read.fwf ... 12\n\nUse read.fortran for such files.", "read.fortran") == (
        "Use read.fortran for such files."
    )


def test_the_header_of_a_table_is_no_answer() -> None:
    text = "Fiscal Years Ended | January 28, 2023 | January 29, 2022\nCash | 1,874 | 2,936\nInventory | 5,140 | 5,965\n"
    question = "What was cash at the end of the fiscal year ended January 28, 2023?"
    assert best(text, question).startswith("Cash | 1,874 | 2,936")


def test_items_of_any_kind_have_passages_by_their_words() -> None:
    def shown(kind: str, text: str, question: str) -> str:
        item = with_passages(question, Item(Ref(kind, "x"), "", text, 0.5))
        assert all(item.text[each.start : each.end] == each.text for each in item.passages)
        return item.passages[0].text if item.passages else ""

    message = "Mend the retry\n\nIt slept too long. The server closed the connection meanwhile."
    assert shown("commit", message, "Why was the connection closed?").endswith("connection meanwhile.")
    assert shown("commit", message, "What about elephants?") == "Mend the retry"
    code = 'def close_fence(text):\n    """Whether it ends."""\n    shut = 1\n\n    return open_mark(text)'
    assert shown("code", code, "Where is the mark opened?").strip() == "return open_mark(text)"
    assert shown("code", code, "What closes a fence?").startswith("def close_fence(text):")
    assert shown("memory", "", "Anything?") == ""


def test_of_an_experience_what_came_of_it_is_the_passage_and_not_what_was_believed() -> None:
    believed = "Goal: Find out why mails stop\nHypothesis: The relay is down"
    came = "Outcome: falsified - it ran\nRoot cause: Its disk was full"
    item = told_experience(Item(Ref("experience", "x"), "", "", 0.5), f"{believed}\n{came}")
    for question in ("Is the relay down?", "What about elephants?"):
        [passage] = with_passages(question, item).passages
        assert passage.text == came
