"""Half sentences: the first half is asked, the second must be in the context, however small the budget.

    make bench ONLY="half --beside ../before"

Sentences are drawn anew from prose pages of every set, by a seed. Of those whose page was found at all, the figures
say how often it was cited within a budget, and how often the text that was asked for was in the context. Another
checkout answers the same questions from an index of its own; `--keep` keeps the indexes for the next run.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from research.index import Index
from research.text import SENTENCE_BREAK
from tests.bench.beside import command_in, python_in
from tests.bench.table import line, title

ROOT = Path(__file__).parents[2]
BUDGETS = (250, 500, 1000, 2000)
GOALS = {250: 0.75, 500: 0.88, 1000: 0.95}
SETS = ("azure", "financebench-dev", "mmlongbench-dev", "scanned-dev")
SENTENCES = 26  # of a set
SEED = 12

_SHORTEST, _LONGEST = 90, 320  # characters of a sentence
_WORDS = 14
_MARKS = re.compile(r"[*_#`|\\]")

# Runs in the checkout that is measured, and uses nothing but what both have.
_ASK = """
import json, sys
from research.context.tokens import TokenCounter
from research.index.index import Index
counter = TokenCounter()
with Index.open(sys.argv[1]) as index:
    for each in map(json.loads, open(sys.argv[2], encoding="utf-8")):
        for budget in [1_000_000, *map(int, sys.argv[3:])]:
            context = index.ask(each["question"], max_tokens=budget)
            exact = counter.count(context.formatted_text) == context.total_tokens <= budget
            cited = any((s.doc_id, s.page) == (each["doc_id"], each["page"]) for s in context.sources)
            print(json.dumps([budget, exact, cited, len(context.sources), context.formatted_text]))
"""


@dataclass(frozen=True, slots=True)
class Half:
    """A sentence of a page, asked by its first half."""

    doc_id: str
    filename: str
    page: int
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Asked:
    """How one checkout answered, by budget."""

    found: bool
    exact: bool
    cited: dict[int, bool]
    text: dict[int, bool]
    sources: dict[int, int]


def run(eval_folder: Path, other: Path | None, keep: Path | None) -> None:
    title("Half sentences: page cited, and the matching text in the context, by budget")
    checkouts = {"here": ROOT} | ({"there": other.absolute()} if other else {})
    sets = {"samples": ROOT / "data" / "samples"}
    sets |= {name: eval_folder / name / "pdfs" for name in SETS if (eval_folder / name / "pdfs").is_dir()}
    answers: dict[str, list[Asked]] = {name: [] for name in checkouts}
    halves: list[Half] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, documents in sets.items():
            indexes = {
                who: _index(root, documents, (keep or Path(folder)) / who / name) for who, root in checkouts.items()
            }
            drawn = draw(indexes["here"], random.Random(f"{SEED} {name}"))
            halves += drawn
            for who, root in checkouts.items():
                answers[who] += _ask(root, indexes[who], drawn, Path(folder))
    for who, asked in answers.items():
        _report(who, halves, asked)


def _index(root: Path, documents: Path, index: Path) -> Path:
    if not index.exists():
        index.parent.mkdir(parents=True, exist_ok=True)
        command = command_in(root, "ingest", str(documents), "--quiet", "--index", str(index.absolute()))
        subprocess.run(command, check=False, capture_output=True)  # a set may hold files that cannot be read
    return index.absolute()


def draw(folder: Path, chance: random.Random, most: int = SENTENCES) -> list[Half]:
    """Sentences of as many documents as there are, one a page."""
    with Index.open(folder) as index, index.catalog.snapshot() as reader:
        found = [
            [
                Half(info.doc_id, info.filename, page, *chance.choice(halves))
                for page, text in reader.pages.document_markdown(info.doc_id)
                if (halves := halves_of(text))
            ]
            for info in sorted(reader.documents.all(), key=lambda info: info.doc_id)
        ]
    for pages in found:
        chance.shuffle(pages)
    rounds = [half for turn in range(most) for pages in found for half in pages[turn : turn + 1]]
    return rounds[:most]


def halves_of(markdown: str) -> list[tuple[str, str]]:
    """The sentences of a page's paragraphs, halved between words; each once on its page."""
    found = []
    for paragraph in markdown.split("\n\n"):
        if paragraph[:1] in "#|->`*" or "|" in paragraph:
            continue
        # The first and the last may lack a part: the paragraph may go on from a page to the next.
        for sentence in SENTENCE_BREAK.split(" ".join(paragraph.split())):
            words = sentence.split()
            letters = sum(map(str.isalpha, sentence))
            whole = sentence[:1].isupper() and sentence.endswith((".", "?", "!"))
            if not (whole and _SHORTEST <= len(sentence) <= _LONGEST and len(words) >= _WORDS):
                continue
            if letters >= 0.7 * len(sentence) and _plain(markdown).count(_plain(sentence)) == 1:
                half = len(words) // 2
                found.append((" ".join(words[:half]), " ".join(words[half:])))
    return found


def _plain(text: str) -> str:
    return " ".join(_MARKS.sub("", text).split())


def _ask(root: Path, index: Path, halves: list[Half], folder: Path) -> list[Asked]:
    questions = folder / "questions.jsonl"
    questions.write_text("\n".join(json.dumps(asdict(half)) for half in halves), encoding="utf-8")
    command = python_in(root, "-c", _ASK, str(index), str(questions), *map(str, BUDGETS))
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    each = 1 + len(BUDGETS)
    return [
        _asked(half, [json.loads(entry) for entry in lines[n * each : (n + 1) * each]]) for n, half in enumerate(halves)
    ]


def _asked(half: Half, answers: list[tuple[int, bool, bool, int, str]]) -> Asked:
    whole, *small = answers
    return Asked(
        found=whole[2],
        exact=all(exact for _, exact, *_ in answers),
        cited={budget: cited for budget, _, cited, _, _ in small},
        text={budget: _plain(half.answer) in _plain(text) for budget, *_, text in small},
        sources={budget: sources for budget, _, _, sources, _ in small},
    )


def _report(who: str, halves: list[Half], asked: list[Asked]) -> None:
    found = [each for each in asked if each.found]
    line(f"{who}: page found", f"{len(found)} of {len(asked)}")
    line(f"{who}: budgets exact", f"{sum(each.exact for each in asked)} of {len(asked)}")
    for budget in BUDGETS:
        cited = sum(each.cited[budget] for each in asked)
        there = sum(each.text[budget] for each in found)
        sources = sum(each.sources[budget] for each in asked) / len(asked)
        goal = f"goal {GOALS[budget]:.2f}" if budget in GOALS else ""
        share = f"{there / max(1, len(found)):.3f}"
        line(f"{who}: {budget} tokens, text there", share, f"{there} of {len(found)} found {goal}")
        line(f"{who}: {budget} tokens, page cited", f"{cited} of {len(asked)}", f"{sources:.1f} sources an answer")
    for half, each in zip(halves, asked, strict=True):
        missing = [str(budget) for budget in GOALS if each.found and not each.text[budget]]
        if missing and who == "here":
            line(f"  not at {', '.join(missing)}: {half.filename[:28]}:{half.page}", "", f"{half.question[:60]} …")
