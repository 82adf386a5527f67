"""Full-text scores: BM25 of pages, how rare words are, and names."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_making import Making

from research.store.analyzer import analyze
from research.store.catalog import Catalog
from tests.pace import draws

COMMON = ["company", "report", "year"]
RARE = ["walrus", "penguin", "orca", "seal", "narwhal"]


def _search(making: Making, asked: list[str], limit: int = 10) -> dict[int, float]:
    """page_id → score, as the lexical leg asks for it."""
    terms = making.catalog.words.statistics(asked)
    return making.catalog.words.score(terms, sorted(making.catalog.words.find(terms, limit=limit)))


def _by_page(making: Making, scores: dict[int, float]) -> dict[int, float]:
    pages = making.catalog.pages.get_many(list(scores))
    return {pages[page_id].page: score for page_id, score in scores.items()}


def test_idf_is_that_of_the_pages(making: Making) -> None:
    making.add("a.pdf", ["walrus penguin", "penguin", "penguin", "seal"])
    idf = {term.word: term.idf for term in making.catalog.words.statistics(["walrus", "penguin", "orca", "walrus"])}
    assert list(idf) == ["walrus", "penguin", "orca"]
    assert idf["walrus"] == pytest.approx(math.log(1 + (4 - 1 + 0.5) / 1.5))
    assert idf["penguin"] == pytest.approx(math.log(1 + 1.5 / 3.5)), "on most pages: little, but not nothing"
    assert idf["orca"] == pytest.approx(math.log(1 + 4.5 / 0.5)), "on no page: the rarest"


def test_a_page_scores_at_most_the_sum_of_idf(making: Making) -> None:
    making.add("a.pdf", ["walrus " * 500, "walrus seal", "other things", *["filler text"] * 8])
    asked = ["walrus", "seal"]
    most = sum(term.idf for term in making.catalog.words.statistics(asked))
    scores = _by_page(making, _search(making, asked))
    assert set(scores) == {1, 2}
    assert 0 < scores[1] < scores[2] <= most


def test_scores_are_bm25_with_our_own_weights(making: Making) -> None:
    texts = [f"walrus number {n} " + "ice " * n for n in range(12)]
    making.add("a.pdf", texts)
    lengths = [len(analyze(text)) for text in texts]
    mean = sum(lengths) / len(lengths)
    weights = {term.word: term.idf for term in making.catalog.words.statistics(["walrus", "ice"])}
    found = _by_page(making, _search(making, ["walrus", "ice"], limit=100))
    assert set(found) == set(range(1, 13)), "a word of every page still finds it"
    for page, score in found.items():
        norm = 1.2 * (0.25 + 0.75 * lengths[page - 1] / mean)
        expected = sum(
            weight * (tf := analyze(texts[page - 1]).count(word)) / (tf + norm) for word, weight in weights.items()
        )
        assert score == pytest.approx(expected, rel=1e-4)


def test_more_pages_than_one_statement_takes(making: Making) -> None:
    making.add("long.pdf", ["walrus"] * 1000)
    assert len(_search(making, ["walrus"], limit=5000)) == 1000
    assert len(_search(making, ["walrus"], limit=3)) == 3
    assert len(making.catalog.words.statistics([f"w{n}" for n in range(2000)])) == 2000


@pytest.fixture(scope="module")
def common_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Making]:
    """Pages on which a few words stand nearly everywhere and others on one page in ten or fewer."""
    making = Making(tmp_path_factory.mktemp("common") / "index")
    pick = random.Random(4)
    pages = []
    for _ in range(400):
        everywhere = [word for word in COMMON if pick.random() < 0.7] * pick.randint(1, 3)
        here = [word for word in RARE if pick.random() < 0.08] * pick.randint(1, 2)
        pages.append(" ".join([*everywhere, *here, *["filler"] * pick.randint(0, 30)]))
    making.add("common.pdf", pages)
    yield making
    making.catalog.close()


@given(asked=st.lists(st.sampled_from([*COMMON, *RARE, "nowhere"]), min_size=1), limit=st.integers(1, 60))
@draws(150)
def test_looking_at_rare_words_first_loses_no_page(common_words: Making, asked: list[str], limit: int) -> None:
    """The quick way finds what sorting every page that holds any of the words would."""
    catalog = common_words.catalog
    terms = catalog.words.statistics(asked)
    expression = " OR ".join(f'"{term.word}"' for term in terms)
    plain = catalog.execute(
        "SELECT rowid FROM page_words WHERE page_words MATCH ? ORDER BY bm25(page_words, 1.0, 1.0), rowid LIMIT ?",
        (expression, limit),
    )
    assert catalog.words.find(terms, limit=limit) == {row[0] for row in plain}


def test_pairs_need_neighbours(making: Making) -> None:
    making.add("a.pdf", ["interest rate", "rate of interest", "interest in a rate", "none"])
    found, complete = making.catalog.words.find_pairs(analyze("interest rate"), limit=9)
    assert (set(_by_page(making, found)), complete) == ({1, 3}, True)
    assert making.catalog.words.score_pairs(analyze("interest rate"), [1, 2]) == {1: found[1]}
    assert making.catalog.words.find_pairs(["interest"], limit=9) == ({}, True)


@pytest.mark.parametrize(
    "question",
    ['"', "'", "a AND", "NEAR(x, 2)", "col:word", "-walrus", "wal*", "(", "^walrus", "body : x", "🎉", "%_", "+"],
)
def test_no_question_is_taken_for_an_expression(making: Making, question: str) -> None:
    making.add("a.pdf", ["walrus AND seal", "near the body"])
    for asked in (analyze(question), [question], [question, question]):
        _search(making, asked)
        making.catalog.words.find_pairs(asked, limit=5)
        making.catalog.words.name_matches(asked)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("भारत की जनसंख्या", "जनसंख्या"),
        ("ประเทศไทยสวยงาม", "ไทย"),
        ("日本語の文書です", "文書"),
        ("Die Straße nach Köln", "strasse koln"),
        ("Revenue was 1,234.5 million", "1234.5"),
        ("ACME™ products", "acme"),
    ],
)
def test_every_script_is_found(making: Making, text: str, question: str) -> None:
    making.add("a.pdf", [text, "something else"])
    asked = analyze(question)
    assert set(_by_page(making, _search(making, asked))) == {1}
    assert all(term.pages == 1 for term in making.catalog.words.statistics(asked)), "the index knows every word"


def test_names_weigh_by_how_many_documents_share_the_word(making: Making) -> None:
    first = making.add("report-walrus.pdf", ["one"]).doc_id
    second = making.add("report-seal.pdf", ["two"]).doc_id
    found = making.catalog.words.name_matches(["report", "walrus", "nothing"])
    assert set(found) == {first, second}
    assert found[first] > found[second] > 0


def _half_hold_it(making: Making) -> None:
    """A word on half of the pages, where FTS5's own weight for it is next to nothing."""
    making.add("a.pdf", ["walrus on ice", "walrus", "seal", "orca"])


def test_a_commit_inside_a_question_leaves_its_scores_as_they_were(making: Making) -> None:
    """The statistics of one moment and FTS5's scores of the next gave 46,980 where the most is 0.7."""
    _half_hold_it(making)
    calm = _search(making, ["walrus"])
    with Catalog(making.paths) as reader, reader.snapshot() as snapshot:
        terms = snapshot.words.statistics(["walrus"])
        making.add("b.pdf", ["seal"])
        assert snapshot.words.score(terms, sorted(snapshot.words.find(terms, limit=10))) == calm


def test_no_score_is_above_the_most_there_can_be(making: Making) -> None:
    """Even of statistics that are out of date, as whoever asks without a snapshot may have them."""
    _half_hold_it(making)
    terms = making.catalog.words.statistics(["walrus"])
    making.add("b.pdf", ["seal"])
    scores = making.catalog.words.score(terms, sorted(making.catalog.words.find(terms, limit=10)))
    assert 0 < max(scores.values()) <= terms[0].idf


def test_pages_of_several_phrases_are_looked_up_at_once(making: Making) -> None:
    making.add("a.pdf", ["walrus on ice", "walrus ice", "seal", "walrus"])
    phrases = [["walrus", "ice"], ["seal"], ["walrus"], ["orca"]] * 10  # more than one statement takes
    found = making.catalog.words.few_pages(phrases, most=2)
    assert [len(pages) for pages in found] == [2, 1, 0, 0] * 10, "walrus is on more than two pages"
