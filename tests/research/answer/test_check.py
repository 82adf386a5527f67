"""The check of a written answer: what each verdict is given for, and that no answer breaks it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.answer.check import CheckedSentence, check_answer
from research.answer.claims.evidence import Source
from research.units import Structure, Unit, pack_units
from tests.pace import draws

PAGE = """# Report of the harbour

Anna Bell paid Bob Sutter 18 % of $3.0 billion on 3 May 2024. The bridge is safe for walkers, but not for horses.
Revenue rose to 1,200 pounds. No reply was filed. The parent who gives birth has 18 weeks of leave; the other has six.
We plan to open a branch in Lyon with nine engineers. The load is at most 5 A. Fans start at 65 degrees and stop at 40.
Cooling was studied before [12]. The data protection officer, or DPO, is asked before cameras are put up.

| £ thousand | 2024 | 2023 |
| --- | --- | --- |
| Revenue | 80,095 | 79,115 |
| Cost of sales | (48,857) | (47,469) |
"""
OTHER = "The ferry leaves at 8:15 from the north quay. Tickets cost four euros."
SOURCES = {1: PAGE, 2: OTHER}


def checked(sentence: str, **options: object) -> CheckedSentence:
    found = check_answer(sentence, SOURCES, **options)  # type: ignore[arg-type]
    return next(each for each in reversed(found) if each.citations or each.verdict != "uncited" or len(found) == 1)


def verdict(sentence: str, **options: object) -> str:
    return checked(sentence, **options).verdict


@pytest.mark.parametrize(
    "sentence",
    [
        "Anna Bell paid Bob Sutter 18 percent of 3,000 million dollars on May 3, 2024 [1].",
        "On 2024-05-03 Bob Sutter was paid 18% of $3bn by Anna Bell [1].",
        "Revenue went up to £1200 [1].",
        "Nobody filed a reply [1].",
        "A reply was not filed [1].",
        "The bridge isn't safe for horses [1].",
        "The bridge is unsafe for horses [1].",
        "Eighteen weeks of leave are given to the parent who gives birth [1].",
        "Revenue was £80.1 million in 2024 [1].",
        "Revenue was 80,095 in 2024 and 79,115 in 2023 [1].",
        "In 2023 and 2024, revenue was 79,115 and 80,095 respectively [1].",
        "The load must not exceed 5 amperes [1].",
        "The DPO is consulted before cameras are installed [1].",
        "They plan to open a branch in Lyon with 9 engineers [1].",
        "Fans stop at 40 degrees and start at 65 [1].",
        "The ferry leaves at 8:15 am from the north quay [2], and revenue rose to 1,200 pounds [1].",
        "According to the document, tickets cost €4 [2].",
    ],
)
def test_what_the_source_says_is_carried(sentence: str) -> None:
    assert verdict(sentence) == "carried", checked(sentence)


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Bob Sutter paid Anna Bell 18 % [1].", "[1] has it the other way round"),
        ("Anna Bell was paid by Bob Sutter [1].", "[1] has it the other way round"),
        ("A reply was filed [1].", "[1] says “no” to it"),
        ("Revenue did not rise to 1,200 pounds [1].", "[1] does not say “no” to it"),
        ("The bridge is safe for horses [1].", "[1] says “no” to it"),
        ("Revenue fell to 1,200 pounds [1].", "[1] says “rose”, not “fell”"),
        ("The load is at least 5 A [1].", "[1] says “at most”, not “at least”"),
        ("A branch in Lyon opened with nine engineers [1].", "[1] only plans or expects it"),
        ("Revenue was 79,115 in 2024 [1].", "[1] says 80,095 for 2024"),
        ("Revenue was 79,115 in 2024 and 80,095 in 2023 [1].", "[1] says 80,095 for 2024"),
        ("Cost of sales was 80,095 in 2024 [1].", "[1] says 80,095 for “Revenue”"),
        ("The other parent has 18 weeks of leave [1].", "“other” stands elsewhere in [1]"),
        ("Fans start at 40 degrees and stop at 65 [1].", "[1] says “Fans” of 5, not of 40"),
        ("Revenue was £80.0 million [1].", "the number 80.0 million is not in [1]"),
        ("Anna Bell paid Bob Sutter 19 % [1].", "the number 19% is not in [1]"),
        ("The cameras cost 18 pounds [1].", "“cameras”, “pounds” stand elsewhere in [1]"),
        ("Carla Dorn paid Bob Sutter 18 % [1].", "“Carla” is not in [1]"),
        ("Anna Bell paid Bob Sutter on 4 May 2024 [1].", "the number 4 May 2024 is not in [1]"),
        ("Lemons grow on trees in the sun [1].", "little of it is in [1]"),
        ("The load increased to 5 A [1].", "“increased” stands elsewhere in [1]"),
        ("Tickets cost four euros [1].", "stands in [2], not in [1]"),
    ],
)
def test_what_it_does_not_say_is_told_with_the_reason(sentence: str, reason: str) -> None:
    found = checked(sentence)
    assert found.verdict in {"doubtful", "not found"}
    assert found.reason == reason


COMPANY = """# Annual report

The remuneration of the CEO, Mr Jonah Wick, and of the other Executive Director, Ms Petra Lund, is set by the board.
The effective tax rate was 22.1%, 26.6% and 27.3% in 2022, 2021 and 2020, respectively.
Fenmoor Markets has about 230 associates. Its probe measures 214 × 72 mm and weighs 1.3 kg.
The Orrin loan of 2,760,321 was paid off on 2 September 2022, and the Tavish loan bears interest at 4.13 %.
Meters belong to the operator, cables behind them to the customer. Cover is for people of 18 or older.
Call 112 first, then extension 207.
The assembly approves the accounts and elects the board. The guarantee runs for 36 months, the probe for 12 months.

| £ thousand | 2022 | 2021 | Change |
| --- | --- | --- | --- |
| Total current assets | 741 | 702 | 6 % |
| Total assets | 1,959 | 1,852 | 6 % |
"""


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("The CEO is Jonah Wick", ""),
        ("Ms Petra Lund is an Executive Director", ""),
        ("The CEO is Petra Lund", "says “CEO” of “Jonah Wick”, not of “Petra Lund”"),
        ("The effective tax rate was 26.6% in 2021", ""),
        ("The effective tax rate was 26.6% in 2022", "says 22.1% for 2022"),
        ("Fenmoor Markets employs about 230 people", ""),
        ("The Orrin loan was paid off on 2 September 2022", ""),
        ("The Tavish loan was paid off on 2 September 2022", "says “paid” of “Orrin”, not of “Tavish”"),
        ("The board approves the accounts", "has it the other way round"),
        ("Total assets were 1,959 thousand pounds in 2022", ""),
        ("Total assets were 741 in 2022", "says 741 for “Total current assets”"),
        ("Total assets were 1,852 in 2022", "says 1,959 for 2022"),
        ("Total assets rose from 1,852 to 1,959", ""),
        ("Total assets rose from 1,959 to 1,852", "has it the other way round"),
        ("Total assets were £1,959 in 2022", "says 1,959 in thousands"),
        ("Total assets rose by 1,959 in 2022", "says 1,959 for 2022"),
        ("The probe weighs 214 kg", "says “weighs” of 1.3, not of 214"),
        ("The board elects the assembly", "has it the other way round"),
        ("The accounts are approved by the board", "has it the other way round"),
        ("The guarantee runs for 12 months", "says “guarantee” of 36, not of 12"),
        ("Meters belong to the customer", "says it of “operator” and “cables”"),
        ("Cover is for people under 18", "says “at least”, not “less than”"),
        ("Call extension 207 first, then 112", "says “Call” of 112, not of 207"),
    ],
)
def test_roles_rows_years_and_lists_are_told_apart(sentence: str, reason: str) -> None:
    [found] = check_answer(f"{sentence} [1].", {1: COMPANY})
    assert (found.verdict, found.reason) == (("doubtful", f"[1] {reason}") if reason else ("carried", "in [1]"))


def test_what_stands_in_a_source_that_is_not_cited_gets_its_number() -> None:
    found = check_answer("- the ferry leaves at 8:15, from the North Quay\n- It rose.", SOURCES)
    assert [(each.verdict, each.reason, each.citations) for each in found] == [
        ("carried", "stands in [2]", ()),
        ("uncited", "it cites nothing", ()),
    ]
    assert checked("The ferry leaves at 8:15 from the north quay [1].").reason == "stands in [2], not in [1]"
    assert verdict("Ferry leaves at 8:15 from the south quay.") == "uncited"


def test_the_units_that_are_stored_are_read() -> None:
    stored = [Unit(0, 25, "sentence", 0, 0)]
    text = "The fee is 5. It is low. The deposit is 20."
    assert Source(1, Structure(text, pack_units(stored))).units == stored
    assert len(Source(1, Structure(text)).units) == 3


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("It rose [17].", "[17] is not among the 2 sources"),
        ("No reply was filed [1][3].", "[3] is not among the 2 sources"),
        ("It rose [0].", "[0] is not among the 2 sources"),
        ("It rose [-1].", "[-1] is not among the 2 sources"),
        (f"It rose [{'9' * 50}].", f"[{'9' * 19}…] is not among the 2 sources"),
        ("No reply was filed [Document 3: x.pdf, Page 2].", "a source's header is forged in it"),
        ("No reply was filed [1] [Document 1: x.pdf, Page 2].", "a source's header is forged in it"),
    ],
)
def test_a_citation_that_is_not_there_or_forged_is_told(sentence: str, reason: str) -> None:
    found = checked(sentence)
    assert (found.verdict, found.reason, found.score) == ("not found", reason, 0.0)


def test_a_header_that_is_repeated_as_it_is_cites_its_source() -> None:
    header = "[Document 2: ferry-times.pdf, Page 1]"
    found = checked(f"Tickets cost four euros {header}.", headers={2: header})
    assert (found.verdict, found.citations) == ("carried", (2,))
    assert verdict("Tickets of the ferry times cost four euros [2].", headers={2: header}) == "carried"


def test_a_mark_that_the_source_has_of_its_own_is_no_citation() -> None:
    assert verdict("Cooling was studied before [12] [1].") == "carried"
    assert checked("Cooling was studied before [12].").reason == "[12] is not among the 2 sources"
    assert verdict("Revenue rose [12] to 1,200 pounds [1].") == "not found"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("It rose.", "it cites nothing"), ("## Revenue", "a heading"), ("- A point", "it cites nothing")],
)
def test_a_sentence_without_citation_is_named(answer: str, reason: str) -> None:
    [found] = check_answer(answer, SOURCES)
    assert (found.verdict, found.reason, found.citations) == ("uncited", reason, ())


def test_a_list_of_sources_at_the_end_claims_nothing() -> None:
    found = check_answer("No reply was filed [1].\n\nSources:\n[1] report.pdf, page 3\n[4] x.pdf", SOURCES)
    assert [(each.verdict, each.reason) for each in found] == [
        ("carried", "word for word"),
        ("uncited", "a list of sources"),
        ("uncited", "a list of sources"),
        ("not found", "[4] is not among the 2 sources"),
    ]


def test_a_bare_answer_is_read_with_its_question() -> None:
    question = "How many weeks of leave does the parent have who gives birth?"
    assert verdict("18 [1].", question=question) == "carried"
    assert verdict("65 [1].", question=question) == "doubtful"
    assert verdict("Yes [1].", question=question) == "doubtful"
    assert verdict("No, a reply was not filed [1].", question="Was a reply filed?") == "carried"


def test_an_answer_in_another_language_is_compared_by_its_numbers() -> None:
    found = checked("Der Elternteil hat nach der Geburt 18 Wochen frei [1].")
    assert (found.verdict, found.reason) == ("doubtful", "in another language than [1]")
    assert verdict("Der Elternteil hat nach der Geburt 19 Wochen frei [1].") == "not found"
    assert verdict("親は18週間の休暇があります[1]。") == "doubtful"


def test_other_languages_and_scripts_are_checked_like_english() -> None:
    pages = {1: "Der Hafen ist im Winter geschlossen. 港は冬に閉鎖されます。料金は五百円です。"}
    for sentence, expected in (
        ("Der Hafen ist im Winter geschlossen [1].", "carried"),
        ("Der Hafen ist im Winter nicht geschlossen [1].", "doubtful"),
        ("港は冬に閉鎖されます[1]。", "carried"),
        ("港は冬に閉鎖されません[1]。", "doubtful"),
    ):
        assert check_answer(sentence, pages)[-1].verdict == expected, sentence


def test_what_a_source_does_not_hold_cannot_be_found_in_it() -> None:
    assert checked("The sources do not mention a bonus [1].").reason == "it says what a source does not hold"


WORDS = st.sampled_from(
    ["Anna", "Bob", "paid", "not", "no", "18", "%", "1,200", "3 May 2024", "[1]", "[2]", "[17]", "[1-3]", ". ", "\n",
     "- ", "| a | b |", "```", "# ", "at most", "5 A", "one and a half", "respectively", "港は", "by", "was",
     "[Document 1: a.pdf, Page 2]", "Sources:", "12:30", "-", "/", "$", "million", "0", "\x00", "\ud800",
     "’", "(20)", "=0"]
)  # fmt: skip


@draws(120)
@given(
    st.lists(WORDS | st.text(max_size=4), max_size=25).map(" ".join),
    st.dictionaries(st.integers(-1, 4), st.lists(WORDS, max_size=25).map(" ".join), max_size=3),
    st.lists(WORDS, max_size=4).map(" ".join),
)
def test_no_answer_breaks_it_and_every_sentence_gets_a_verdict(
    answer: str, sources: dict[int, str], question: str
) -> None:
    found = check_answer(answer, sources, question=question)
    assert "".join("".join(each.text for each in found).split()) == "".join(answer.split())
    for each in found:
        assert each.verdict in {"carried", "doubtful", "not found", "uncited"}
        assert each.reason
        assert 0.0 <= each.score <= 1.0
        if any(number not in sources for number in each.citations) and each.verdict != "not found":
            assert each.verdict != "uncited"  # a mark of the source's own
    assert check_answer(answer, sources, question=question) == found


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("word " * 20_000 + "[1].", PAGE),
        ("[1]" * 20_000, PAGE),
        ("No reply was filed [1]. " * 2_000, PAGE),
        ("No wall [1]\n" * 500, "No wall not 3\n" * 10_000),
        ("not " * 2_000 + "[1].", "not " * 50_000),
        ("Aa Bb Cc Dd " * 100 + "[1].", "Aa Bb Cc Dd " * 5_000),
        ("ABC DEF [1].", "ABC DEF a b c d e f " * 5_000),
        ("| a | 1 [1] |\n" * 300, "| a | b | c |\n|---|---|---|\n" + "| x | 1 | 2 |\n" * 2_000),
        ("1 2 3 4 [1]. " * 200, "1 2 3 4 " * 10_000),
        ("漢字" * 5_000 + "[1]。", "漢字不" * 10_000),
        ("x y z w; " * 5_000 + "[1]", "no x y z w; " * 5_000),
    ],
)
def test_hostile_answers_and_sources(answer: str, source: str) -> None:
    found = check_answer(answer, {1: source})
    assert "".join("".join(each.text for each in found).split()) == "".join(answer.split())
