"""Pages become units of meaning: sentences, entries, rows, lines, headings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.units import Structure, pack_units, split, split_code, values_of
from tests.pace import draws


def texts(markdown: str) -> list[tuple[str, str]]:
    return [(unit.kind, markdown[unit.start : unit.end]) for unit in split(markdown)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "He met Dr. Smith at 3.5 km, e.g. near Fig. 3 of J. F. Glover. Then he left. Why? No idea.",
            ["He met Dr. Smith at 3.5 km, e.g. near Fig. 3 of J. F. Glover.", "Then he left.", "Why?", "No idea."],
        ),
        (
            "U.S. sales rose 3.2%. The rest fell (see Sec. 4.1). It was 2010. The end.",
            ["U.S. sales rose 3.2%.", "The rest fell (see Sec. 4.1).", "It was 2010.", "The end."],
        ),
        ("Am 3. Mai kam z. B. Herr Müller. Gut!", ["Am 3. Mai kam z. B. Herr Müller.", "Gut!"]),
        ("これは本です。あれは何ですか？はい。", ["これは本です。", "あれは何ですか？", "はい。"]),
        ("Он пришёл. Она ушла.", ["Он пришёл.", "Она ушла."]),
        ('"Why?" he asked. "So."', ['"Why?" he asked.', '"So."']),
    ],
)
def test_sentences_end_where_sentences_end(text: str, sentences: list[str]) -> None:
    assert [shown for _, shown in texts(text)] == sentences


def test_entries_rows_lines_and_headings_are_units() -> None:
    page = (
        "# Report\n\nIt grew. It shrank.\n\n- first entry\n- second\n  goes on\n\n## Figures\n\n"
        "| Year | Sales |\n| --- | --- |\n| 2020 | 12 |\n| 2021 | 15 |\n\nCompany: Zava\nLocation: Anywhere\n"
    )
    assert texts(page) == [
        ("heading", "# Report"),
        ("sentence", "It grew."),
        ("sentence", "It shrank."),
        ("item", "- first entry"),
        ("item", "- second\n  goes on"),
        ("heading", "## Figures"),
        ("row", "| Year | Sales |"),
        ("row", "| 2020 | 12 |"),
        ("row", "| 2021 | 15 |"),
        ("line", "Company: Zava"),
        ("line", "Location: Anywhere"),
    ]
    units = split(page)
    assert [unit.section for unit in units] == [1] * 5 + [2] * 6
    assert [unit.block for unit in units] == [0, 1, 1, 2, 2, 3, 4, 4, 4, 5, 5]
    headers = [page[slice(*unit.header)] if unit.header else None for unit in units]
    assert headers == [None] * 7 + ["| Year | Sales |"] * 2 + [None] * 2


def test_rows_without_a_rule_find_their_header_also_in_the_block_above() -> None:
    page = (
        "(Dollars in millions) | 2021 | 2020\n\nRevenues by:\n\nFootwear | 28,021 | 23,305\nApparel | 12,865 | 10,953\n"
    )
    *_, footwear, apparel = split(page)
    assert footwear.kind == apparel.kind == "row"
    assert footwear.header == apparel.header == (0, page.index("\n"))


def test_a_header_does_not_reach_over_a_heading_or_a_paragraph() -> None:
    for between in ("## Other", "A whole paragraph that tells of other things " * 3):
        page = f"Name | 2021 | 2020\n\n{between}\n\nFootwear | 28,021 | 23,305\n"
        assert split(page)[-1].header is None


STATEMENT = """### CONSOLIDATED BALANCE SHEETS

##### (In millions, except par value)

December 2, | December 3,
2022 | 2021
ASSETS
Current assets:
Cash and cash equivalents | $ 4,236 $ 3,844
Adjustments that take a whole line to say, and do not end the table they stand in the middle of:
Total current assets | 8,996 | 8,669

#### LIABILITIES

Treasury stock | (4) | —
Debt | 500 | —
"""


def test_a_header_holds_over_section_lines_and_headings_of_one_table() -> None:
    rows = [unit for unit in split(STATEMENT) if unit.kind == "row"][2:]
    assert len(rows) == 4
    for row in rows:
        assert row.header is not None
        assert row.title is not None
        assert STATEMENT[slice(*row.header)] == "December 2, | December 3,\n2022 | 2021"
        assert STATEMENT[slice(*row.title)].endswith("(In millions, except par value)")


SALES = """# SEGMENT SALES

Q2 | % Change
Adjusted
($ in Millions) | 2023 | 2022 | Operational1,2
Operational1,3
ONCOLOGY
US | 2,069 | 1,679 | 23.2
DARZALEX
WW | 2,431 | 1,986 | 22.4
# Employees | 10,112 | 3,160 | 1.0
"""


def test_lines_that_part_the_rows_stand_under_their_header_and_marks_of_footnotes_are_no_values() -> None:
    under = {SALES[unit.start : unit.end].partition(" | ")[0]: unit for unit in split(SALES) if unit.header}
    assert list(under) == ["Operational1,3", "ONCOLOGY", "US", "DARZALEX", "WW", "# Employees"]
    (header,), (title,) = {unit.header for unit in under.values()}, {unit.title for unit in under.values()}
    assert header is not None
    assert title is not None
    assert SALES[slice(*header)].splitlines()[::2] == [
        "Q2 | % Change",
        "($ in Millions) | 2023 | 2022 | Operational1,2",
    ]
    assert SALES[slice(*title)] == "# SEGMENT SALES"
    assert split("| Width | 325 mm |\n| --- | --- |\n| Weight | 32 kg |\n")[-1].header is None


def test_rows_of_another_shape_below_a_heading_have_not_its_header() -> None:
    page = f"{STATEMENT}\n#### Stores\n\nOhio | 12 | 14 | 16 | 18\n"
    assert split(page)[-1].header is None


def test_values_are_the_figures_behind_a_label() -> None:
    assert values_of("Total assets of 2022 | $ 17,003 $ 17,426") == ["17,003", "17,426"]
    assert values_of("Debt | 500 | —") == ["500", "—"]


def test_a_table_of_words_that_goes_on_has_no_header() -> None:
    page = (
        "Amex Australia | Australia | Victoria\nCenturion Finance | New Zealand | Auckland\nPayback | Germany | Bonn\n"
    )
    assert [unit.header for unit in split(page * 3)] == [None] * 9


def test_a_caption_below_its_table_is_its_title() -> None:
    page = "Model | Accuracy\nOurs | 76.2\nTheirs | 62.3\n\nTable 7: Accuracy on the hard subset.\n"
    rows = [unit for unit in split(page) if unit.kind == "row" and unit.header]
    assert [page[slice(*row.title)] for row in rows if row.title] == ["Table 7: Accuracy on the hard subset."] * 2


def test_code_keeps_its_lines() -> None:
    assert texts("```\nx = 1. Y\n# no heading\n\n| a | b |\n```\n\nAfter it.") == [
        ("code", "x = 1. Y\n# no heading\n\n| a | b |"),
        ("sentence", "After it."),
    ]


@pytest.mark.parametrize(
    "page",
    [
        "a" * 100_000,
        "word " * 20_000,
        "a | b\n" * 5_000,
        "| 3 | b |\n" * 5_000,
        "|" * 100_000,
        ". " * 30_000,
        "e.g. " * 20_000,
        ("a" * 40 + "\n") * 2_000,
        " " * 100_000 + "x",
        ".)" * 50_000,
        "漢字" * 30_000,
    ],
)
def test_hostile_pages_are_split_whole(page: str) -> None:
    units = split(page)
    kept = "".join(page[unit.start : unit.end] for unit in units)
    assert "".join(kept.split()) == "".join(page.split()) or set(page.strip()) <= set("| \n")
    assert all(unit.end - unit.start <= 1500 for unit in units)


_PIECES = st.sampled_from(
    [
        *[
            "# H",
            "word",
            "Dr. No.",
            " ",
            "\n",
            "\n\n",
            "---",
            "- ",
            "3.",
            "。",
            "```",
            "> ",
            "12",
            "\t",
            "!?",
            "(",
            "é",
            "\x0c",
            "\u2028",
            "\r",
            "\\",
            "|",
            " | ",
        ]
    ]
)


@draws(150)
@given(st.lists(_PIECES, max_size=30).map("".join))
def test_units_are_in_order_and_hold_every_word(page: str) -> None:
    units = split(page)
    end = 0
    left = []
    for unit in units:
        assert end <= unit.start < unit.end
        assert not page[unit.start].isspace()
        assert not page[unit.end - 1].isspace()
        left.append(page[end : unit.start])
        end = unit.end
    left.append(page[end:])
    # What is between units is blanks, and lines of markup: fences, rules of tables, cells without anything.
    assert not any(char.isalnum() for gap in left for line in gap.split("\n") if "```" not in line for char in line)
    assert [unit.block for unit in units] == sorted(unit.block for unit in units)
    assert [unit.section for unit in units] == sorted(unit.section for unit in units)


@draws(100)
@given(st.lists(_PIECES, max_size=30).map("".join))
def test_what_is_stored_is_what_was_found(page: str) -> None:
    units = split(page)
    assert Structure(page, pack_units(units, 17)).units == units
    assert Structure(page, pack_units(units, 17)).signals == 17


@pytest.mark.parametrize("packed", [b"", b"no zlib", pack_units([])[:-3], pack_units(split(STATEMENT * 2))])
def test_what_does_not_fit_its_text_is_found_anew(packed: bytes) -> None:
    """A catalog may come from anywhere: spans beyond a page, and rules of another version, cost a look at the page."""
    assert Structure(STATEMENT, packed).units == split(STATEMENT)


CODE = """```python
@cache
def is_end(
    text: str,
) -> bool:
    \"\"\"Whether a sentence ends. Or
    an abbreviation does.\"\"\"
    if text[-1] in ("(", "."):  # )
        return f(1,
                 2)

    x = '''
    a
    '''
```"""


def test_code_is_taken_apart_at_statements_under_its_signature() -> None:
    units = split_code(CODE)
    assert [CODE[unit.start : unit.end].strip() for unit in units] == [
        "@cache",
        "def is_end(\n    text: str,\n) -> bool:",
        '"""Whether a sentence ends.',
        'Or\n    an abbreviation does."""',
        'if text[-1] in ("(", "."):  # )',
        "return f(1,\n                 2)",
        "x = '''\n    a\n    '''",
    ]
    assert {unit.header for unit in units[2:]} == {(units[0].start, units[1].end)}
    assert [unit.kind for unit in units[1:4]] == ["line", "sentence", "sentence"]
    assert split_code(CODE.removeprefix("```python\n").removesuffix("\n```")) == [
        unit._replace(
            start=unit.start - 10, end=unit.end - 10, header=unit.header and (unit.header[0] - 10, unit.header[1] - 10)
        )
        for unit in units
    ]


@given(st.lists(st.sampled_from(["a", "\n", " ", "(", ")", "'", '"', '"""', "# ", "//", "[", "]", "```", "\\", ". A"])))
def test_statements_hold_all_of_the_code_and_do_not_overlap(pieces: list[str]) -> None:
    text = "".join(pieces)
    units, last = split_code(text), 0
    fence = len(re.match(r"(`{3,}[^`\n]*\n)?", text).group())  # type: ignore[union-attr]
    for unit in units:
        assert fence <= unit.start and last <= unit.start < unit.end <= len(text)
        assert not text[max(last, fence) : unit.start].strip()
        last = unit.end
    assert units == [] or text[last:].strip() in ("", "```")


def test_hostile_code_takes_no_time() -> None:
    for bad in ('"' * 20_000, "'a" * 10_000, "(" * 20_000, '\\"' * 10_000, "x('\n" * 5_000, '"""\n' * 5_000):
        assert all(unit.end - unit.start <= 1_500 for unit in split_code(bad))
