"""Confidence on real indexes: high where a page answers, none where nothing does, in every way to search."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import ingest
from research import Index
from research.answer.confidence import WEIGHTS, Features, Weights, confidence_of, judged, whole
from research.evaluation import read_questions
from research.models import CONFIDENCE_LEVELS, Confidence, Coverage, Item, LegCoverage, LegScore, Passage, Question, Ref
from research.settings import Settings
from research.sources.documents import MODES
from research.store import Catalog
from tests.conftest import SAMPLES, write_pdf
from tests.pace import draws

ANSWERED = [
    "How many days of holiday did a full-timer at Saltmarsh get under the 2024 rules?",
    "What quorum does the Saltmarsh members' meeting need to vote?",
    "From what wind speed on does the G4 shut the vents by default?",
    "Who is the new CFO of Tessel & Rowe?",
    "Which repair of the footbridge do the engineers advise, and what is the price?",
]
FOREIGN = [
    "What is Amazon's effective tax rate in FY2017?",
    "How many blogs mentioned Germanwings?",
    "What is the copay for Northwind Health Plus?",
    "Who won the 1998 World Cup in France?",
    "How do I train a golden retriever puppy?",
]
GIBBERISH = ["asdf qwer zxcv", "?", "...", "zzzzzz", "fjdksl ghtur vbnm"]
KEY_WORDS = ["footbridge", "lettuce", "parental leave", "E04", "SF-2024-0318", "--keep-users", "holiday carry over"]


@pytest.fixture(scope="module")
def index(sample_index: Path) -> Iterator[Index]:
    with Index(sample_index) as index:
        yield index


def told(index: Index, question: str, **options: object) -> Confidence:
    found = index.search(question, **options)  # type: ignore[arg-type]
    assert found.confidence is not None
    assert found.to_dict()["confidence"] == {"value": found.confidence.value, "level": found.confidence.level}
    return found.confidence


def test_asking_and_searching_are_equally_sure(index: Index) -> None:
    for question in (ANSWERED[0], FOREIGN[0]):
        context = index.ask(question, max_tokens=200)
        assert context.confidence == told(index, question)
        assert context.to_dict()["confidence"]["level"] == told(index, question).level
        assert context.sources


def test_what_is_answered_is_told_from_what_is_not(index: Index) -> None:
    answered = [told(index, question) for question in ANSWERED]
    foreign = [told(index, question) for question in FOREIGN]
    assert {each.level for each in answered} <= {"medium", "high"}
    assert {each.level for each in foreign} == {"none"}
    assert min(each.value for each in answered) > max(each.value for each in foreign)


@pytest.mark.slow
def test_hardly_any_question_of_ours_is_refused(index: Index) -> None:
    questions = read_questions(SAMPLES.parent / "questions.jsonl")
    refused = [each.query for each in questions if told(index, each.query).level == "none"]
    assert len(refused) <= 1, refused


@pytest.mark.parametrize("question", GIBBERISH)
def test_gibberish_is_answered_by_nothing(index: Index, question: str) -> None:
    assert told(index, question).level == "none"


@pytest.mark.parametrize("mode", MODES)
def test_key_words_that_are_there_are_never_refused(index: Index, mode: str) -> None:
    for words in KEY_WORDS:
        found = index.search(words, mode=mode)
        on_page = any(
            words.lower() in (index.documents.markdown(result.doc_id) or "").lower() for result in found.results
        )
        assert found.confidence is not None
        assert not on_page or mode == "visual" or found.confidence.level != "none", words


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_way_to_search_tells_them_apart(index: Index, mode: str) -> None:
    answered = [told(index, question, mode=mode).value for question in ANSWERED]
    foreign = [told(index, question, mode=mode).value for question in (*FOREIGN, *GIBBERISH)]
    assert all(0 <= value <= 1 for value in (*answered, *foreign))
    assert sum(answered) / len(answered) > 0.3 + sum(foreign) / len(foreign)


def test_a_part_of_a_document_that_a_booster_found(index: Index) -> None:
    for question in ("summary of the night cooling article", "abstract", "What is on page 3 of the G4 manual?"):
        assert told(index, question).level != "none", question


def test_a_slip_of_the_pen_costs_no_answer(index: Index) -> None:
    assert told(index, "What quorum does the Saltmash members' meeting need?").level in ("medium", "high")


def test_a_question_in_another_language_is_not_refused(index: Index) -> None:
    for question in (
        "Wie viele Urlaubstage gibt es bei Saltmarsh?",
        "休假有几天?",
        "Combien de jours de congés par an?",
    ):
        assert told(index, question).level == "low", question


def test_a_restricted_question_is_judged_by_what_is_left(index: Index) -> None:
    question = "From what wind speed on does the G4 shut the vents by default?"
    assert told(index, question, documents=["brindle*"]).level in ("medium", "high")
    assert told(index, question, documents=["footbridge*"]).level == "none"


@pytest.mark.slow
def test_a_tiny_index(tmp_path: Path) -> None:
    pdf = write_pdf(tmp_path / "lease.pdf", ["The rent is 900 euros a month.", "Pets are allowed if Ms Okafor agrees."])
    index = Index(tmp_path / "index", Settings(images=False))
    ingest(index, [pdf])
    with index:
        for question in ("How much is the rent?", "rent", "May I keep pets?", "Does Ms Okafor have to agree to a dog?"):
            assert told(index, question).level != "none", question
        for question in ("Who is the CEO of Apple?", "qwertz", "What was the GDP growth rate in 2021?"):
            assert told(index, question).level == "none", question


def test_an_index_without_documents(tmp_path: Path) -> None:
    index = Index(tmp_path / "empty")
    index.create()
    with Catalog(index.paths, writable=True):
        pass
    with index:
        context = index.ask("How much is the rent?")
        assert (context.sources, context.confidence) == ([], Confidence(0.0, "none"))
        assert index.search("rent").confidence == Confidence(0.0, "none")


def test_what_is_wanted_at_least(index: Index) -> None:
    sure = index.ask(ANSWERED[1])
    scores = [source.relevance_score for source in sure.sources]
    least = index.ask(ANSWERED[1], min_score=scores[2])
    assert [source.relevance_score for source in least.sources] == scores[:3]
    assert least.confidence == sure.confidence
    assert not least.truncated
    assert len(index.search(ANSWERED[1], min_score=scores[0]).results) == 1
    assert index.search(ANSWERED[1], min_score=1).results == []
    for wanted in ("high", 0.999, "0.999"):
        unsure = index.ask(FOREIGN[0], min_confidence=wanted)
        assert (unsure.sources, unsure.formatted_text, unsure.total_tokens) == ([], "", 0)
        assert unsure.confidence == told(index, FOREIGN[0])
        assert index.search(FOREIGN[0], min_confidence=wanted).results == []
    for wanted in ("none", 0):
        assert index.ask(FOREIGN[0], min_confidence=wanted).sources


shares = st.floats(0, 1)
features = st.builds(Features, shares, shares, st.sampled_from([0.0, 1.0]), shares, st.booleans(), st.booleans())


@given(features, st.sampled_from(list(WEIGHTS.values())))
def test_better_signs_never_make_it_less_sure(seen: Features, weights: Weights) -> None:
    value = judged(seen, weights).value
    assert 0 < value <= 1
    for better in (replace(seen, score=1.0), replace(seen, together=1.0), replace(seen, missing=0.0)):
        assert judged(better, weights).value >= value
    assert CONFIDENCE_LEVELS[judged(seen, weights).level] <= value


@pytest.mark.parametrize("value", [0.0, 0.0799, 0.08, 0.4999, 0.5, 0.8, 1.0])
def test_levels_are_thresholds(value: float) -> None:
    reached = [level for level, least in CONFIDENCE_LEVELS.items() if value >= least]
    assert Confidence.of(value) == Confidence(value, reached[-1])


def page(text: str, score: float, **legs: float) -> Item:
    seen = {name: LegScore(1, value) for name, value in legs.items()}
    return Item(Ref("page", "a", "1"), "", text, 0.0, score, seen, metadata={"filename": "a.pdf"})


BOTH = Coverage(legs=[LegCoverage("lexical", "ok"), LegCoverage("dense", "ok"), LegCoverage("visual", "off", "…")])


@draws(50)
@given(st.text(max_size=60), st.lists(st.tuples(st.text(max_size=60), shares), max_size=12))
def test_any_question_and_any_pages_have_a_value(question: str, found: list[tuple[str, float]]) -> None:
    told = confidence_of(
        Question(question), [page(text, score, lexical=score, dense=score) for text, score in found], BOTH
    )
    assert 0 <= told.value <= 1
    assert math.isfinite(told.value)


def test_a_leg_that_stood_alone_is_judged_by_its_own_weights() -> None:
    items = [page("The rent is 900 euros.", 0.4, lexical=0.4)]
    alone = Coverage(legs=[LegCoverage("lexical", "ok"), LegCoverage("dense", "failed", "no vectors")])
    assert confidence_of(Question("rent"), items, alone) != confidence_of(Question("rent"), items, BOTH)
    assert confidence_of(Question("rent"), items, Coverage()) == confidence_of(Question("rent"), items, BOTH)


def doubts(question: str, *items: Item) -> tuple[Confidence, list[str]]:
    asked = Question(question)
    return confidence_of(asked, items, BOTH), asked.notes


def test_a_name_that_no_page_has_is_said() -> None:
    costco, walmart = (page(f"{name} earned 5 billion in all.", 0.6, lexical=0.6) for name in ("Costco", "Walmart"))
    told, notes = doubts("What did our rival Walmart earn?", costco)
    assert notes == ["None of these pages has “Walmart”."]
    assert told.value < doubts("What did our rival Costco earn?", costco)[0].value
    assert doubts("What did our rival Walmart earn?", costco, walmart)[1] == []


def test_a_question_of_two_parts_is_answered_if_both_are(index: Index) -> None:
    own, other = ANSWERED[0].rstrip("?"), "who won the football World Cup in 1998?"
    asked = index.ask(f"{own}, and {other}")
    assert asked.confidence is not None and asked.confidence.level != "high"
    items = [Item(ref=Ref("memory", "a"), title="", text="Yuki leads. Staging runs on osprey.", score=0.9)]
    sure = Confidence.of(0.9)
    assert whole(sure, "Who leads, and where does staging run?", items) == (sure, "")
    less, note = whole(sure, f"Where does staging run, and {other}", items)
    assert (less.level, note) == ("medium", f"Nothing shown seems to say “{other.rstrip('?')}”.")
    assert whole(sure, "According to the chart of staging, who leads?", items)[0] == sure, "no question of its own"


def test_a_name_that_is_given_twice_may_be_written_either_way() -> None:
    loan = page("The WBC loan has a rate of 4.13 %.", 0.6, lexical=0.6, dense=0.6)
    assert doubts("What is the rate of the Westpac (WBC) loan?", loan)[1] == []
    told = [
        doubts(f"What is the rate of the {name} loan?", loan)[0].value for name in ("Westpac (WBC)", "WBC", "Westpac")
    ]
    assert told[0] == told[1] > told[2]


@pytest.mark.parametrize(("year", "said"), [("2022", []), ("FY21", []), ("2025", ["2025"])])
def test_a_year_that_nothing_found_is_of_is_said(year: str, said: list[str]) -> None:
    text = "Years ended June 30 | 2022 | 2021\nRevenue | 66 | 62\n\nWe plan a bridge for 2025."
    row = text.index("Revenue")
    table = replace(
        page(text, 0.9, lexical=0.9, dense=0.8), passages=(Passage("Revenue | 66 | 62", 0.9, None, row, row + 17),)
    )
    told, notes = doubts(f"How much was revenue in {year}?", table)
    assert notes == [f"Nothing found is for {each}; the nearest figures are for 2022." for each in said]
    assert (told.level == "low") == bool(said)


def test_pages_without_text_are_judged_by_what_the_legs_say() -> None:
    seen = Coverage(legs=[LegCoverage("visual", "ok")])
    picture = confidence_of(Question("What did Costco earn in 2021?"), [page("", 0.9, visual=0.9)], seen)
    assert picture.level in ("medium", "high")
    assert (
        confidence_of(Question("What did Costco earn in 2021?"), [page("Bees.", 0.9, visual=0.9)], seen).value
        < picture.value
    )
