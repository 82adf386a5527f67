"""How `ctx eval` shows its figures and failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from research.evaluation import METRICS
from research.visible_text import one_line, phrase

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from research.evaluation import Failure, Figure, Latency, Report, Row

# Enough to see what came instead; the JSON has them all.
_SHOWN = 5


def plain_lines(report: Report, *, failures: bool) -> Iterator[tuple[str, ...]]:
    """Tab-separated lines for a pipe: rankings, slices, latency, failures."""
    yield ("ranking", "questions", *METRICS)
    named = [(row.name, row) for row in report.rankings]
    named += [(f"{report.field}={row.name}", row) for row in report.slices]
    for name, row in named:
        figures = (row.figures[metric] for metric in METRICS)
        yield name, str(row.questions), *(f"{f.mean:.3f} ({f.low:.3f}-{f.high:.3f})" for f in figures)
    yield "latency", *_times(report.latency)
    for failure in report.failures if failures else ():
        yield (
            "failed",
            str(failure.question.qid),
            phrase(failure.question.query),
            f"wanted {_gold(failure)}",
            _came(failure),
            f"returned {_returned(failure)}",
        )


def rendering(report: Report, *, failures: bool) -> Iterator[RenderableType]:
    from cli.views import plain

    yield _table("ranking", report.rankings)
    if report.field is not None:
        yield _table(phrase(report.field), report.slices)
    yield plain(f"a question takes {' and '.join(_times(report.latency))}, warm")
    if failures:
        yield plain(f"\nwithout a gold page among the first {report.among}: {len(report.failures)}")
        for failure in report.failures:
            yield from _block(failure)


def _table(heading: str, rows: Sequence[Row]) -> Table:
    from rich import box
    from rich.table import Table

    from cli.views import plain

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(heading, overflow="fold")
    table.add_column("questions", justify="right", no_wrap=True)
    for metric in METRICS:
        table.add_column(metric, justify="right", no_wrap=True)
    for row in rows:
        cells = [_cell(row.figures[metric]) for metric in METRICS]
        table.add_row(plain(phrase(row.name), "bold"), plain(str(row.questions)), *cells)
    return table


def _cell(figure: Figure) -> RenderableType:
    from rich.text import Text

    return Text.assemble((f"{figure.mean:.3f}\n", "bold"), (f"{figure.low:.2f}–{figure.high:.2f}", "dim"))


def _block(failure: Failure) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    from cli.views import plain

    yield Text.assemble((f"\n{one_line(str(failure.question.qid))}  ", "bold"), phrase(failure.question.query))
    for label, words in (("wanted", f"{_gold(failure)}: {_came(failure)}"), ("returned", _returned(failure))):
        yield Padding(plain(f"{label:<9} {words}"), (0, 0, 0, 4))


def _times(latency: Latency) -> tuple[str, str]:
    return f"p50 {latency.p50 * 1000:.1f} ms", f"p95 {latency.p95 * 1000:.1f} ms"


def _gold(failure: Failure) -> str:
    return ", ".join(_place(name, page) for name, page in failure.question.gold)


def _came(failure: Failure) -> str:
    """Where the gold page came after all, and whether its document was met."""
    legs = ", ".join(f"{name} {rank or 'not at all'}" for name, rank in failure.leg_ranks.items())
    place = f"came at {failure.rank}" if failure.rank else "did not come"
    if not failure.question.gold[0][1]:  # memories
        return place
    return f"{'right' if failure.right_document else 'wrong'} document, {place}" + (f" ({legs})" if legs else "")


def _returned(failure: Failure) -> str:
    return ", ".join(_place(page.doc, page.page) for page in failure.returned[:_SHOWN]) or "nothing"


def _place(name: str, page: int) -> str:
    """A page, or a memory, which has none."""
    return f"{one_line(name)}:{page}" if page else one_line(name)
