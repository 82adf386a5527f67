"""ctx eval: how often the right page is found, on questions with known pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.call import Call
from cli.layout import plain
from cli.output import check_legs, on_terminal, paint, write_document, write_line
from cli.progress import counted
from research.context import coverage_notes
from research.errors import NothingFoundError, UsageError
from research.evaluation import (
    METRICS,
    GoldCheck,
    RankedMemory,
    ask_all,
    ask_memories,
    asks_memories,
    check_field,
    fill,
    look_up,
    read_questions,
    read_set,
    summarise,
    write_run,
)
from research.settings import Mode
from research.text import one_line, phrase

if TYPE_CHECKING:
    from rich.console import RenderableType

    from research.evaluation import Asked, Failure, Latency, Question, RankedPage, Report
    from research.settings import Settings

# Enough to see what came instead; the JSON has them all.
_SHOWN = 5


def rows_of(report: Report) -> list[tuple[str, ...]]:
    """The figures: rankings, then slices."""
    named = [(row.name, row) for row in report.rankings]
    named += [(f"{report.field}={row.name}", row) for row in report.slices]
    rows: list[tuple[str, ...]] = [("ranking", "questions", *METRICS)]
    for name, row in named:
        figures = (row.figures[metric] for metric in METRICS)
        rows.append((name, str(row.questions), *(f"{f.mean:.3f} ({f.low:.3f}-{f.high:.3f})" for f in figures)))
    return rows


def failure_rows(report: Report) -> Iterator[tuple[str, ...]]:
    for failure in report.failures:
        asked = failure.question
        wanted, returned = f"wanted {_gold(failure)}", f"returned {_returned(failure)}"
        yield "failed", str(asked.qid), phrase(asked.query), wanted, _came(failure), returned


def rendering(report: Report, *, failures: bool) -> Iterator[RenderableType]:
    """The rows for a terminal: figures above their intervals, failures indented."""
    from rich import box
    from rich.padding import Padding
    from rich.table import Table

    header, *rows = rows_of(report)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(header):
        table.add_column(name, justify="right" if number else "left", no_wrap=bool(number), overflow="fold")
    for row in rows:
        table.add_row(*(plain(phrase(cell).replace(" (", "\n(")) for cell in row))
    yield table
    yield plain(f"a question takes {' and '.join(_times(report.latency))}, warm")
    if failures:
        yield plain(f"\nwithout a gold page among the first {report.among}: {len(report.failures)}")
        for _, qid, query, *more in failure_rows(report):
            yield plain(f"\n{one_line(qid)}  {query}", "bold")
            yield Padding(plain("\n".join(more)), (0, 0, 0, 4))


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


_DEEPEST = 100
MEMORIES = "memories"  # in place of the mode


def evaluate(
    call: Call,
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS.jsonl", help="The questions, one JSON object a line.")
    ],
    *,
    failures: Annotated[
        bool, typer.Option("--failures", help="List the questions that failed, and what came.")
    ] = False,
    top: Annotated[
        int,
        typer.Option(
            "--top", metavar="K", help=f"A question failed if no gold page is among the first K, at most {_DEEPEST}."
        ),
    ] = 10,
    by: Annotated[
        str | None,
        typer.Option(
            "--slice", metavar="FIELD", help="Figures for each value of a field, such as kind or meta.source."
        ),
    ] = None,
    per_doc: Annotated[
        bool, typer.Option("--per-doc", help="Search only the gold documents: is the page right once the document is?")
    ] = False,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="OUT.jsonl", help="Write the ranked pages of each question, 100 deep."),
    ] = None,
    mode: Annotated[
        Mode | None, typer.Option("--mode", help="Which legs answer. Default: hybrid.", show_default=False)
    ] = None,
) -> int:
    """Each line of the file is an object: {"query": "…", "gold": [["file.pdf", 3]]}, with an optional "qid" and any
    further fields. Pages are physical, counted from 1; every gold page answers the question or a part of it.

    With ids of memories as gold, and "conversation": "NAME" beside a file NAME.memories.jsonl, memories are measured:
    each conversation is remembered in an index made for it, and recalled from. What you remember yourself is not
    touched.

    Figures are means over the questions with a bootstrap interval of 95 %, for the fusion and for each leg alone.
    Questions none of whose gold documents is indexed are left out of the figures and named. In a pipe each ranking is
    one line of tab-separated fields: name, questions, hit@1, hit@5, hit@10, MRR@10, nDCG@5.

    Examples:
      ctx eval data/questions.jsonl
      ctx eval data/questions.jsonl --failures --top 5
      ctx eval data/questions.jsonl --slice kind --mode lexical
      ctx eval conversations/qrels.jsonl --slice category
      ctx eval data/questions.jsonl --run run.jsonl --json | jq '.rankings[0].figures["hit@5"].mean'
    """
    if not 1 <= top <= _DEEPEST:
        raise UsageError(f"--top cannot be {top}", hint=f"--top is a whole number from 1 to {_DEEPEST}")
    settings = call.settings(mode=mode.value if mode else None)
    _check_writable(run)
    if asks_memories(questions):
        measured = MEMORIES
        if mode or per_doc:
            raise UsageError("--mode and --per-doc are for pages; these are questions to memories")
        check, asked = _recall(call, settings, questions, by, run)
    else:
        measured = settings.mode
        check, asked = _measure(call, settings, questions, by, run, per_doc=per_doc)
    report = summarise(asked, measured, field=by, among=top)
    if call.as_json:
        document = {
            "file": str(questions),
            "mode": measured,
            "per_doc": per_doc,
            "questions": len(asked),
            "rankings": [asdict(row) for row in report.rankings],
            "slice": by,
            "slices": [asdict(row) for row in report.slices],
            "latency_seconds": asdict(report.latency),
            "failed": [_failure(failure) for failure in report.failures] if failures else None,
            "left_out": [question.qid for question in check.left_out],
            "missing_documents": check.missing,
            "pages_beyond_end": check.beyond,
            "coverage": _worst(asked).coverage.to_dict(),
        }
        write_document("ctx.eval/2", document)
    elif on_terminal():
        paint(rendering(report, failures=failures))
    else:
        failed = failure_rows(report) if failures else ()
        for line in (*rows_of(report), ("latency", *_times(report.latency)), *failed):
            write_line(*line)
    for note in _notes(check, asked):
        call.note(note)
    return 0


def _measure(
    call: Call, settings: Settings, file: Path, by: str | None, run: Path | None, *, per_doc: bool
) -> tuple[GoldCheck, list[Asked]]:
    """Pages, in the user's own index."""
    read = read_questions(file)
    if by is not None:
        check_field(read, by)
    check, asked = _ask(call, settings, read, per_doc=per_doc)
    if run is not None:
        write_run(run, asked)
    return check, asked


def _recall(
    call: Call, settings: Settings, file: Path, by: str | None, run: Path | None
) -> tuple[GoldCheck, list[Asked]]:
    """Memories, in an index of their own."""
    from tempfile import TemporaryDirectory

    from research.index import Index

    read = read_set(file)
    if by is not None:
        check_field(read.questions, by)
    with TemporaryDirectory() as folder, Index(folder, settings) as index:
        fill(index, read)
        running = ask_memories(index, read)
        asked = list(counted(running, len(read.questions), "asking", "questions", quiet=call.quiet))
    if run is not None:
        write_run(run, asked)
    return GoldCheck([one.gold for one in asked], [], {}, []), asked


def _ask(call: Call, settings: Settings, questions: list[Question], *, per_doc: bool) -> tuple[GoldCheck, list[Asked]]:
    with call.opened(settings) as index:
        call.prepare(index)
        with index.catalog.snapshot() as reader:
            check = look_up(reader, questions)
        if not check.askable:
            names = _listed(list(check.missing))
            raise NothingFoundError(f"no gold document is indexed: {names}", hint="add them: ctx ingest PATH")
        asked: list[Asked] = []
        running = ask_all(index, check.askable, settings.mode, per_doc=per_doc)
        for one in counted(running, len(check.askable), "asking", "questions", quiet=call.quiet):
            check_legs(one.coverage)
            asked.append(one)
    return check, asked


def _check_writable(run: Path | None) -> None:
    """Before the questions are asked, because a long run should not end in a wrong path."""
    if run is not None and (run.is_dir() or not run.parent.is_dir()):
        raise UsageError(f"cannot write {run}", hint="name a file in a folder that exists, such as --run run.jsonl")


def _worst(asked: list[Asked]) -> Asked:
    """A question that some leg failed on, if there is one: figures that rest on it say so."""
    return next((one for one in asked if not one.coverage.complete), asked[-1])


def _notes(check: GoldCheck, asked: list[Asked]) -> list[str]:
    notes = []
    if check.missing:
        total = len(check.askable) + len(check.left_out)
        notes.append(
            f"not indexed: {_listed(list(check.missing))}; {len(check.left_out)} of {total} questions are left out"
            " of the figures; add them: ctx ingest PATH"
        )
    if check.beyond:
        notes.append(f"gold pages beyond their document's end: {_listed(check.beyond)}; pages are physical, from 1")
    return notes + coverage_notes(_worst(asked).coverage)


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "qid": failure.question.qid,
        "query": failure.question.query,
        "gold": [list(pair) for pair in failure.question.gold],
        "rank": failure.rank,
        "leg_ranks": failure.leg_ranks,
        "right_document": failure.right_document,
        "returned": [_page(page) for page in failure.returned],
    }


def _page(page: RankedPage) -> dict[str, Any]:
    named = {"id": page.doc} if isinstance(page, RankedMemory) else {"filename": page.doc, "page": page.page}
    return {**named, "raw_score": page.score}


def _listed(names: list[str]) -> str:
    most = 10
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
