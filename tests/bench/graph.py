"""The graph helps or keeps quiet: the gold page among the first items, and within a token budget, with what the best
pages refer to and without; on a set of ours with cross references, and on the development sets. What a hub costs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ingest import Observer, ingest
from research.context import TokenCounter
from research.evaluation import Question, look_up, read_questions
from research.evaluation.questions import Gold, document_key
from research.graph import find_neighbourhood, neighbour_scores, references_said, seeds_of
from research.index import Index
from research.settings import Settings
from research.store import Catalog, IndexPaths, graph
from tests.bench import crossrefs
from tests.bench.table import line, title

ITEMS, TOKENS = (3, 5, 10), (1000, 2000, 4000)
FEW_TOKENS = (150, 250, 400)  # for our set, whose pages have fifty each
_FOUND = 30
_HUB = 1_000_000


def run(eval_folder: Path, keep: Path | None) -> None:
    title("The graph: questions whose gold page is there, without it → with it (won, lost)")
    with tempfile.TemporaryDirectory() as folder:
        documents = Path(folder) / "crossrefs"
        made = crossrefs.make(documents)
        index = index_of(documents, "crossrefs", Path(folder))
        apart = {field.name for field in crossrefs.fields() if field.held_apart}
        for name, chosen in (
            ("ours, seen", [question for field in made if field not in apart for question in made[field]]),
            ("ours, held apart", [question for field in made if field in apart for question in made[field]]),
        ):
            _one_set(name, index, chosen, FEW_TOKENS)
        for name in ("azure", "mmlongbench-dev"):
            if (eval_folder / name).is_dir():
                index = index_of(eval_folder / name / "pdfs", name, keep or Path(folder))
                _one_set(name, index, read_questions(eval_folder / name / "qrels.jsonl"), TOKENS)
    title("A node with a million edges")
    with tempfile.TemporaryDirectory() as folder:
        _hub(Path(folder))


def index_of(documents: Path, name: str, folder: Path) -> Path:
    root = folder / f"graph-{name}"
    if not root.exists():
        ingest(IndexPaths(root), [documents], settings=Settings(images=False, ocr="off"), observer=Observer())
    return root


@dataclass(frozen=True, slots=True)
class _Asked:
    gold: set[str]
    found: list[str]
    joined: list[str]


def _one_set(name: str, root: Path, questions: Sequence[Question], budgets: Sequence[int]) -> None:
    with Index(root) as index:
        index.graph.update()
        asked = [_ask(index, gold) for gold in look_up(index.catalog, questions).askable]
        changed = sum(each.found != each.joined[: len(each.found)] for each in asked)
        line(name, f"{len(asked)} questions", f"{changed} rankings changed")
        for most in ITEMS:
            _tell(f"  first {most} items", asked, partial(_first, most))
        counter = TokenCounter()
        sizes: dict[str, int] = {}
        for budget in budgets:
            _tell(f"  {budget} tokens", asked, partial(_fit, index, sizes, counter, budget))


def _first(most: int, refs: Sequence[str]) -> list[str]:
    return list(refs[:most])


def _ask(index: Index, gold: Gold) -> _Asked:
    outcome = index.rank(gold.question.query, _FOUND)
    ranked = [(f"page:{found.page.doc_id}#{found.page.page}", found.score) for found in outcome.found]
    texts = {ref: found.text for (ref, _), found in zip(ranked, outcome.found, strict=True)}
    seeds = seeds_of(ranked)
    with index.catalog.snapshot() as reader:
        near = find_neighbourhood(reader, seeds, kinds=["refers", "calls", "supports"])
    said = {ref: references_said(gold.question.query, texts[ref]) for ref in seeds}
    own, near_scores = dict(ranked), neighbour_scores(ranked, near.edges, said)
    better = [ref for ref, _ in ranked[:2]]  # whatever a neighbour is worth
    scores = own | {ref: worth for ref, worth in near_scores.items() if worth > own.get(ref, 0.0)}
    joined = [*better, *sorted(scores.keys() - {*better}, key=lambda ref: -scores[ref])]
    names = {document.doc_id: document_key(document.filename) for document in index.documents.list()}
    pages = {f"page:{doc_id}#{page}" for doc_id, name in names.items() for named, page in gold.pages if named == name}
    return _Asked(pages, [ref for ref, _ in ranked], joined)


def _fit(index: Index, sizes: dict[str, int], counter: TokenCounter, budget: int, refs: Sequence[str]) -> list[str]:
    """Whole pages in order, as long as there is room; one that is too large is passed over."""
    chosen: list[str] = []
    for ref in refs:
        if ref not in sizes:
            doc_id, _, page = ref.removeprefix("page:").partition("#")
            sizes[ref] = counter.count(index.catalog.pages.markdown(doc_id, int(page)) or "")
        if sizes[ref] <= budget:
            chosen.append(ref)
            budget -= sizes[ref]
    return chosen


def _tell(name: str, asked: Sequence[_Asked], chosen: Callable[[list[str]], list[str]]) -> None:
    without = [not each.gold.isdisjoint(chosen(each.found)) for each in asked]
    with_it = [not each.gold.isdisjoint(chosen(each.joined)) for each in asked]
    won = sum(now and not before for before, now in zip(without, with_it, strict=True))
    lost = sum(before and not now for before, now in zip(without, with_it, strict=True))
    line(name, f"{sum(without)} → {sum(with_it)}", f"won {won}, lost {lost}")


def _hub(folder: Path) -> None:
    with Catalog(IndexPaths(folder / "hub"), writable=True) as catalog:
        with catalog.transaction() as connection:
            numbers = list(connection.graph.put_nodes([graph.NewNode(f"file:{n}") for n in range(_HUB + 1)]).values())
            connection.graph.put_edges([(numbers[0], graph.CONTAINS, other) for other in numbers[1:]])
            pairs = zip(numbers[1::100], numbers[2::100], strict=False)
            connection.graph.put_edges([(one, graph.REFERS, other) for one, other in pairs])
        for hops in (1, 2, 3):
            took = []
            for _ in range(7):
                with catalog.snapshot() as reader:
                    started = time.perf_counter()
                    found = find_neighbourhood(reader, ["file:0"], hops=hops)
                    took.append(time.perf_counter() - started)
            best = sorted(took)[len(took) // 2] * 1000
            line(f"  {hops} hops from it", f"{best:.1f} ms", f"median; {len(found.nodes)} nodes")
