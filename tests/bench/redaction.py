"""What redaction finds and what it leaves alone: made sentences with something in them that has to go, sentences of
real pages in which nothing has to, and the time both take, hostile texts included."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pymupdf

from research.governance import BaseRedactor, PresidioRedactor
from tests.bench.table import line, title
from tests.research.governance.clean import every, some
from tests.research.governance.hostile import TEXTS
from tests.research.governance.made import Made, made

SETS = ("azure", "financebench-dev", "mmlongbench-dev")
EACH, SEED = 200, 20
GOALS = {"email": 0.98, "card": 0.98, "iban": 0.98, "phone": 0.98, "key": 0.98, "person": 0.85}
SAMPLES = Path(__file__).parents[2] / "data" / "samples"
SENTENCES = 140  # of each set

# Of these pages, read by hand: sentences that do name a person, a number to call or an address.
NOT_CLEAN = {
    "eab62e14b26d", "73d6e455345f", "1743b78d70cc", "edfc0808d3b5", "4e51bc9dfd3d", "5b7e1d7b9a4e", "a860bbf1ed42",
    "50aa615d5f96", "567f6eac6e84", "11776ba16789", "1cdb8620358e", "ea8ef562903d", "625336de54c7", "dc0ea0d55ca9",
    "b743758f7840", "b3bba875acbf", "4182a24d104b", "4c528aafc224", "17a9d39c9ef7", "9b1ea0377573", "6b7fbdf5f19d",
}  # fmt: skip


def run(eval_folder: Path) -> None:
    base, presidio = BaseRedactor("pii"), PresidioRedactor()
    begun = time.perf_counter()
    presidio.warm_up()
    loading = time.perf_counter() - begun
    sentences = list(made(SEED, EACH))
    title(f"redaction: {len(sentences)} made sentences, half of them of templates, countries and formats held apart")
    for kind, goal in GOALS.items():
        of_kind = [each for each in sentences if each.kind == kind]
        redactor, name = (presidio, "presidio") if kind == "person" else (base, "base")
        found = _recall(of_kind, redactor)
        line(f"{kind}, {name}: all / held apart", f"{found[None]:.3f} / {found[True]:.3f}", f"goal {goal:.2f}")
    clean = _clean(eval_folder)
    title(f"redaction: {len(clean)} clean sentences of real pages")
    for name, redactor, goal in (("base, pii", base, "goal .02"), ("presidio", presidio, "goal .08")):
        line(f"touched by {name}", f"{sum(bool(redactor.find(each)) for each in clean) / len(clean):.3f}", goal)
    _speed(clean, base, presidio, loading)


def _recall(sentences: Sequence[Made], redactor: BaseRedactor) -> dict[bool | None, float]:
    """Share of sentences in which nothing was left: of all, and of those that were held apart."""
    counts: dict[bool | None, Counter[bool]] = defaultdict(Counter)
    for each in sentences:
        gone = not each.left(redactor.redact(each.text))
        counts[None][gone] += 1
        counts[each.held][gone] += 1
    return {held: count[True] / count.total() for held, count in counts.items()}


def _clean(eval_folder: Path) -> list[str]:
    folders = [eval_folder / name / "pdfs" for name in SETS]
    if not all(folder.is_dir() for folder in folders):
        return list(every(sorted(SAMPLES.glob("*.pdf"))))
    pymupdf.TOOLS.mupdf_display_errors(False)
    sentences = [each for folder in folders for each in some(sorted(folder.rglob("*.pdf")), SENTENCES, 7)]
    return [each for each in sentences if hashlib.sha256(each.encode()).hexdigest()[:12] not in NOT_CLEAN]


def _speed(clean: Sequence[str], base: BaseRedactor, presidio: PresidioRedactor, loading: float) -> None:
    title("redaction: time for 1,000 characters")
    text = "\n".join(clean)[:40_000]
    secrets = BaseRedactor()
    for name, redact, against in (
        ("base, secrets", secrets.redact, "goal 1 ms"),
        ("base, pii", base.redact, "goal 1 ms"),
        ("presidio", presidio.redact, f"loaded in {loading:.1f} s"),
    ):
        line(name, f"{_milliseconds(redact, text) / len(text) * 1000:.2f} ms", against)
    slowest = max(((_milliseconds(base.redact, text), name) for name, text in TEXTS.items()), key=lambda each: each[0])
    line("the slowest of hostile texts of 100,000 characters", f"{slowest[0] / 100:.1f} ms", f"{slowest[1]!r} repeated")


def _milliseconds(redact: Callable[[str], str], text: str) -> float:
    """CPU time of the best of three."""
    taken = []
    for _ in range(3):
        begun = time.process_time()
        redact(text)
        taken.append(time.process_time() - begun)
    return min(taken) * 1000
