"""Confidence: how well it tells questions that are answered from those that are not, and the weights it is made of.

    make bench ONLY="confidence --keep /tmp/indexes"

Of every set with known pages: its own questions, the same asked of their own document alone and of all the others, the
questions of other sets (far), those that its documents do not answer (near), key words drawn from its pages, and
gibberish. The figures are told by the weights in the code; then by weights fitted without a set and everything asked
of it or from it; then come the weights that all of it would give.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest import ingest
from research.answer.confidence import WEIGHTS, Features, features_of, judged
from research.evaluation import read_questions
from research.evaluation.questions import document_key
from research.index import Index
from research.models import CONFIDENCE_LEVELS, Question
from research.settings import Settings
from research.store import STOP_WORDS
from tests.bench.calibration import fit
from tests.bench.table import line, title

DATA = Path(__file__).parents[2] / "data"
GOALS = "goals: far ≥ .95, near ≥ .70; none: answered ≤ .02, far ≥ .60"
MODES = {"hybrid": "both", "lexical": "lexical", "dense": "dense", "visual": "visual"}
SEED = 12

# What each kind counts where weights are fitted; the answered ones as much as the others.
ANSWERED = {"own": 0.6, "alone": 0.25, "words": 0.15}
UNANSWERED = {"far": 0.55, "others": 0.2, "near": 0.2, "gibberish": 0.05}
GIBBERISH = (
    "asdf qwer zxcv", "xkcdq blorf", "?", "???", "the", "fjdksl ghtur vbnm", "qwertyuiop", "zzzzzz", "what", "...",
    "glorp the fnord of snarfle", "blue elephants dancing on mars", "best pizza recipe with pineapple",
    "how do I train a golden retriever puppy", "What is the capital of Mongolia?", "How tall is Mount Kilimanjaro?",
    "symptoms of scarlet fever in toddlers", "how to knit a scarf", "lyrics of Bohemian Rhapsody",
)  # fmt: skip
_STEP = 3  # questions are enough for the ways to search that few ask for
_DRAWN = 60  # key words of a set
_WORD = re.compile(r"[^\W\d_]{5,}")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it was asked of an index, and what was known of its answer."""

    kind: str
    asked_of: str  # the set
    taken_from: str
    features: Features
    value: float
    text: str

    @property
    def answered(self) -> bool:
        return self.kind in ANSWERED


@dataclass(frozen=True, slots=True)
class Set:
    """Documents, the questions they answer with the documents that do, and those they do not answer."""

    name: str
    pdfs: Path
    questions: list[tuple[str, frozenset[str]]]
    unanswerable: list[str]


def run(eval_folder: Path, keep: Path | None) -> None:
    title("Confidence: is a page that answers among the sources")
    sets = list(_sets(eval_folder))
    asked: dict[str, list[Asked]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as folder:
        for each in sets:
            index = Index((keep or Path(folder)) / "here" / each.name, Settings(images=False))
            if not index.exists:
                ingest(index, [each.pdfs])
            with index:
                for mode in MODES:
                    asked[mode] += _ask_all(index, mode, each, sets)
    for mode, found in asked.items():
        _report(mode, found)
        _report_left_out(mode, found, [each.name for each in sets])
        weights = _fitted(found, MODES[mode])
        line(f"{mode}: fitted", ", ".join(f"{weight:.2f}" for weight in weights))
        line(f"{mode}: in the code", ", ".join(f"{weight:.2f}" for weight in astuple(WEIGHTS[MODES[mode]])))
    _report_failures(asked["hybrid"])


def _sets(eval_folder: Path) -> Iterator[Set]:
    places = {"samples": (DATA / "samples", DATA / "questions.jsonl")}
    places["no-harm"] = (DATA / "no-harm" / "pdfs", DATA / "no-harm" / "questions.jsonl")
    for path in sorted(eval_folder.glob("*/qrels.jsonl")):
        if (path.parent / "pdfs").is_dir():
            places[path.parent.name] = (path.parent / "pdfs", path)
    for name, (pdfs, path) in places.items():
        questions = [
            (question.query, frozenset(document_key(document) for document, _ in question.gold))
            for question in read_questions(path)
        ]
        others = path.with_name("unanswerable.jsonl")
        lines = others.read_text("utf-8").splitlines() if others.exists() else []
        yield Set(name, pdfs, questions, [str(json.loads(entry)["query"]) for entry in lines])


def _ask_all(index: Index, mode: str, here: Set, sets: Sequence[Set]) -> Iterator[Asked]:
    ids = {document_key(info.filename): info.doc_id for info in index.documents.list()}

    def ask(kind: str, taken_from: str, text: str, documents: Sequence[str] | None = None) -> Asked:
        with index.catalog.snapshot() as reader:
            limits = None if documents is None else tuple(documents)
            found = index.source.retrieve(reader, Question(text, mode=mode, documents=limits), 10)
        if not found.items:
            nothing = Features(0.0, 0.0, 0.0, 0.0)
            return Asked(kind, here.name, taken_from, nothing, 0.0, text)
        features = features_of(found.searched, found.items)
        return Asked(kind, here.name, taken_from, features, judged(features, WEIGHTS[MODES[mode]]).value, text)

    for each in sets:
        for text, gold in each.questions[:: 1 if mode == "hybrid" else _STEP]:
            inside = [ids[document] for document in gold if document in ids]
            if not inside:
                yield ask("far", each.name, text)
            elif each is here:
                yield ask("own", each.name, text)
                yield ask("alone", each.name, text, inside)
                yield ask("others", each.name, text, [doc_id for doc_id in ids.values() if doc_id not in inside])
    yield from (ask("near", here.name, text) for text in here.unanswerable)
    yield from (ask("words", here.name, text) for text in draw(index, random.Random(f"{SEED} {here.name}")))
    yield from (ask("gibberish", here.name, text) for text in GIBBERISH)


def draw(index: Index, chance: random.Random) -> list[str]:
    """Key words that stand on a page: one, two or three in a row."""
    with index.catalog.snapshot() as reader:
        pages = [
            [word for word in _WORD.findall(text) if word.lower() not in STOP_WORDS]
            for info in sorted(reader.documents.all(), key=lambda info: info.doc_id)
            for _, text in reader.pages.document_markdown(info.doc_id)
        ]
    found = []
    for words in chance.choices([words for words in pages if len(words) > 3], k=_DRAWN):
        size = chance.randint(1, 3)
        start = chance.randrange(len(words) - size)
        found.append(" ".join(words[start : start + size]).lower())
    return found


def auc(better: Floats, worse: Floats) -> float:
    """How often one of the first is above one of the second."""
    if not (better.size and worse.size):
        return float("nan")
    above = (better[:, None] > worse[None, :]).sum() + 0.5 * (better[:, None] == worse[None, :]).sum()
    return float(above / better.size / worse.size)


def _report(mode: str, found: Sequence[Asked]) -> None:
    values = {kind: np.array([each.value for each in found if each.kind == kind]) for kind in ANSWERED | UNANSWERED}
    near = {each.asked_of for each in found if each.kind == "near"}
    beside = np.array([each.value for each in found if each.kind == "own" and each.asked_of in near])
    line(f"{mode}: AUC of far questions", f"{auc(values['own'], values['far']):.3f}", GOALS)
    line(f"{mode}: AUC of near misses", f"{auc(beside, values['near']):.3f}")
    line(f"{mode}: AUC of questions of other documents", f"{auc(values['own'], values['others']):.3f}")
    for kind, told in values.items():
        edges = [*CONFIDENCE_LEVELS.values(), 1.01]
        shares = [float(((told >= low) & (told < high)).mean()) for low, high in pairwise(edges)]
        levels = ", ".join(f"{level} {share:.3f}" for level, share in zip(CONFIDENCE_LEVELS, shares, strict=True))
        line(f"{mode}: {kind}, {told.size}", f"{shares[0]:.3f} none", levels)


def _report_left_out(mode: str, found: Sequence[Asked], names: Sequence[str]) -> None:
    """The same by weights that have not seen a set: neither asked of it nor taken from it. The threshold is theirs,
    too: where they refuse a hundredth of what they have seen."""
    matrix, always = _matrix(found), np.array([each.kind in ("own", "far") for each in found])
    answered = np.array([each.answered for each in found])
    refused: list[bool] = []
    for name in names:
        out = np.array([name in (each.asked_of, each.taken_from) for each in found])
        weights = _fitted([each for each, left in zip(found, out, strict=True) if not left], MODES[mode])
        told = matrix @ weights
        threshold = np.quantile(told[~out & answered & always], 0.01)
        own, far = told[out & answered & always], told[out & ~answered & always]
        refused += (own < threshold).tolist()
        what = f"none: answered {(own < threshold).mean():.3f}, far {(far < threshold).mean():.3f}"
        near = told[np.array([each.kind == "near" and each.asked_of == name for each in found])]
        what += f"; near misses {auc(own, near):.3f}" if near.size else ""
        line(f"{mode}: without {name}, AUC of far questions", f"{auc(own, far):.3f}", what)
    line(f"{mode}: answered and refused, all sets left out in turn", f"{np.mean(refused):.3f}")


def _matrix(found: Sequence[Asked]) -> Floats:
    """The features that have weights, and one that is always there."""
    return np.array([[*astuple(each.features)[:4], 1.0] for each in found])


def _fitted(found: Sequence[Asked], legs: str) -> Floats:
    """The weights of these questions, for the features that the legs have."""
    kinds = [each.kind for each in found]
    counts = ANSWERED | UNANSWERED
    weights = np.array([counts[kind] / kinds.count(kind) for kind in kinds]) * len(found) / 2
    used = np.array(astuple(WEIGHTS[legs])) != 0
    fitted = np.zeros(used.size)
    good = np.array([float(each.answered) for each in found])
    fitted[used] = fit(_matrix(found)[:, used], good, weights)
    return fitted


def _report_failures(found: Sequence[Asked]) -> None:
    """The answered ones that are refused, and the far ones that seem best answered."""
    refused = [each for each in found if each.kind == "own" and each.value < CONFIDENCE_LEVELS["low"]]
    taken = sorted((each for each in found if each.kind == "far"), key=lambda each: -each.value)[:12]
    for each in [*refused, *taken]:
        line(f"  {each.kind} {each.taken_from} → {each.asked_of}"[:58], f"{each.value:.2f}", each.text[:90])
