"""Ratios are looked for with the lines they are computed from, inside documents that hold statements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_index import add, embed

from research.contract import SearchEngine
from research.encoders import TextEncoder
from research.errors import UsageError
from research.models import Question, Rewrite
from research.search.legs import Ranked, Reranking
from research.search.rewriters import FINANCE_HINTS, MOST_BYTES, TABLE, Rewriters, matches, read_table
from research.store import Catalog, ChromaClient
from research.store import publish as writer

BUILT_IN = read_table(TABLE)
REPORT = [
    *(f"The quick reader finds the ratio of orders of the {name} here." for name in ("north", "south", "east", "west")),
    "Cash 120. Receivables 340. Inventories 90. Total current assets 550. Total current liabilities 410. Total assets"
    " 900. Total liabilities 700.",
]


def expand(question: str, catalog: Catalog, ranked: Sequence[Ranked], *own_tables: str) -> Rewrite | None:
    rerankings = Rewriters(["finance"], own_tables).rerankings(Question(question), [], catalog, ranked)
    assert all(reranking.keep_best for reranking in rerankings)
    return rerankings[0].rewrite if rerankings else None


def names_in(question: str) -> list[str]:
    return [name for name, _ in matches(question, BUILT_IN)]


@pytest.mark.parametrize(
    ("question", "line"),
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
def test_a_ratio_brings_its_lines(question: str, line: str) -> None:
    added = {word for _, entry in matches(question, BUILT_IN) for word in entry.lines}
    assert set(line.split()) <= added


# All but the first four had balance-sheet words added by 0.1.0.
@pytest.mark.parametrize(
    "question",
    [
        "How many roe deer live here?",
        "What is the current speed?",
        "A ratio of 3 to 4",
        "Which tax rate applies?",
        "Does the cap exceed the legal limit?",
        "How many cogs does the gearbox have?",
        "What does an acid test of a rock show?",
        "Was he in debt to his brother?",
        "How is ppe cleaned?",
        "WHAT PPE MUST BE WORN?",
        "",
    ],
)
def test_words_inside_other_words_and_lower_case_names_do_not_match(question: str) -> None:
    assert names_in(question) == []


def test_every_name_of_the_table_is_behind_a_hint() -> None:
    names = [name for entry in BUILT_IN.entries for name in (*entry.names, *entry.capitals)]
    assert names
    assert [name for name in names if not any(hint in name for hint in FINANCE_HINTS)] == []


def test_only_documents_with_statements_are_ranked_again(catalog: Catalog) -> None:
    ids = add(catalog, {"/x/report.pdf": REPORT, "/x/safety.pdf": ["PPE is worn.", "Total assets are mentioned."]})
    ranked = [Ranked(n, doc_id, 1.0 / n) for n, doc_id in enumerate(ids.values(), start=1)]
    done = expand("Which PPE is worn?", catalog, ranked)
    assert done is not None
    assert done.documents == (ids["/x/report.pdf"],)
    assert done.name == "finance"
    assert done.after.startswith("Which PPE is worn? property plant and equipment")
    assert "PPE" in done.why
    assert expand("Which PPE is worn?", catalog, ranked[1:]) is None
    assert expand("What is worn?", catalog, ranked) is None
    assert expand("Which PPE is worn?", catalog, []) is None


def test_the_statement_is_found_that_holds_no_word_of_the_question(
    catalog: Catalog, encoder: TextEncoder, tmp_path: Path
) -> None:
    add(catalog, {"/x/notes.pdf": REPORT})
    embed(catalog, encoder)
    writer.publish(catalog)
    client = ChromaClient(tmp_path / "index")
    question = "Has the quick ratio improved?"
    on = SearchEngine(client, encoder=encoder).run(question, 5)
    assert on.found[0].page.page == 5
    assert [done.name for done in on.rewrites] == ["finance"]
    assert on.searched == question
    assert on.found[0].legs["finance"].rank == 1
    off = SearchEngine(client, encoder=encoder, rewriters=()).run(question, 5)
    assert off.found[0].page.page != 5
    assert off.rewrites == []
    assert sorted(page.score for page in on.found) == sorted(page.score for page in off.found)


PAGES = st.lists(
    st.tuples(st.integers(1, 60), st.sampled_from("ABCD"), st.floats(0, 1)), unique_by=lambda page: page[0], max_size=40
)


def ranking(pages: Sequence[tuple[int, str, float]]) -> list[Ranked]:
    # A page belongs to one document in both rankings.
    return sorted((Ranked(n, "ABCD"[n % 4], score) for n, _, score in pages), key=lambda page: -page.score)


@given(PAGES, PAGES, st.sets(st.sampled_from("ABCD")), st.booleans())
def test_other_documents_never_move(
    plain: list[tuple[int, str, float]], longer: list[tuple[int, str, float]], chosen: set[str], keep_best: bool
) -> None:
    before, expanded = ranking(plain), ranking(longer)
    after = Rewriters().merge(
        before,
        [page for page in expanded if page.doc_id in chosen],
        Reranking("", tuple(sorted(chosen)), keep_best),
    )
    if keep_best:
        assert [page.doc_id for page in after[: len(before)]] == [page.doc_id for page in before]
    assert [page.score for page in after[: len(before)]] == [page.score for page in before]
    assert all(new == old for new, old in zip(after, before, strict=False) if old.doc_id not in chosen)
    assert len({page.page_id for page in after}) == len(after)
    assert {page.page_id for page in before} <= {page.page_id for page in after}
    for doc_id in chosen:  # the best page by the plain question stays among the first six of its document
        own = [page.page_id for page in before if page.doc_id == doc_id]
        new = [page.page_id for page in after if page.doc_id == doc_id]
        assert not own or not keep_best or new.index(own[0]) <= 5
    if not keep_best:  # they share their places, in the other order
        wanted = [page.page_id for page in [*expanded, *before] if page.doc_id in chosen]
        assert [page.page_id for page in after if page.doc_id in chosen] == list(dict.fromkeys(wanted))


def test_a_page_that_stands_out_stays() -> None:
    plain = [Ranked(1, "A", 0.9), Ranked(2, "A", 0.8), Ranked(3, "A", 0.5), Ranked(4, "A", 0.49)]
    longer = [Ranked(4, "A", 0.9), Ranked(3, "A", 0.8), Ranked(2, "A", 0.7), Ranked(1, "A", 0.6)]
    merged = Rewriters().merge(plain, longer, Reranking("", ("A",), keep_best=True))
    assert [page.page_id for page in merged] == [1, 2, 4, 3]


OWN = """
[statements]
"lab report" = [["reference range", "specimen"]]

[[entry]]
names = ["anion gap"]
lines = "sodium chloride bicarbonate"

[[entry]]
capitals = ["EBITX"]
lines = "operating income"
statements = ["income statement"]
"""


def test_a_table_of_the_users_own_is_added(catalog: Catalog, tmp_path: Path) -> None:
    table = tmp_path / "own.toml"
    table.write_text(OWN)
    ids = add(catalog, {"/x/lab.pdf": ["Specimen: serum. Sodium 140. Reference range 135 to 145."]})
    ranked = [Ranked(1, ids["/x/lab.pdf"], 0.5)]
    done = expand("How large is the anion gap?", catalog, ranked, str(table))
    assert done is not None
    assert done.after.endswith("sodium chloride bicarbonate")
    assert expand("What is the EBITX?", catalog, ranked, str(table)) is None  # no income statement there
    assert expand("How large is the anion gap?", catalog, ranked) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[entry", "cannot be read"),
        ("entry = 3", "at most 500"),
        ("[[entry]]\nlines = 'x'", "entry 1 has neither names nor capitals"),
        ("[[entry]]\nnames = ['a']", "1 to 40 words"),
        ("[[entry]]\nnames = ['a']\nlines = '" + "x " * 41 + "'", "1 to 40 words"),
        ("[[entry]]\nnames = 'a'\nlines = 'x'", "list of texts"),
        ("[[entry]]\nnames = ['a']\nlines = 'x'\nstatements = ['diary']", "unknown statement 'diary'"),
        ("[[entry]]\nnames = ['a']\nlines = 'x'\ncode = 'y'", "unknown key 'code'"),
        ("[statements]\na = []", "list of lists"),
        ("[statements]\na = [[]]", "empty list"),
        ("statements = 1", "must be a table"),
        ("entry = [1]", "entry 1 must be a table"),
        ("[[entry]]\n" * 501, "at most 500"),
        ("# " + "x" * MOST_BYTES, "larger than"),
    ],
)
def test_a_wrong_table_says_where(tmp_path: Path, text: str, problem: str) -> None:
    table = tmp_path / "own.toml"
    table.write_text(text)
    with pytest.raises(UsageError, match=problem) as caught:
        read_table(table, known=BUILT_IN.statements)
    assert str(table) in caught.value.message
    assert "vocabulary" in caught.value.hint


def test_a_missing_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_table(tmp_path / "none.toml")
