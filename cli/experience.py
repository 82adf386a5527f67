"""ctx experience: what was tried and what came of it, recorded, found again, and what many have in common.

All of it is somebody's text, and made safe where it is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.call import Call, Verbs, offers, open_file, plain_words
from cli.options import (
    AxisOption,
    DomainOption,
    FileArgument,
    IdArgument,
    IdsArgument,
    LimitOption,
    OutcomeOption,
    QuestionArgument,
    StrategyOption,
)
from cli.output import say, write, write_document
from research.errors import BusyError, CtxError, NothingFoundError, SomeFilesFailedError, UsageError
from research.text import block, phrase

if TYPE_CHECKING:
    from research.experiences import Experience, ImportedLines, Rebuilt
    from research.index import Index

SCHEMA = "ctx.experience/1"
_SHOWN = 160  # characters of a text in a line
_FOUND = 10

MaybeIdArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="ID", help="An experience, or the beginning of its id. Default: the open one.", show_default=False
    ),
]

# What may be said of an experience while it is open, when it is closed, and of one that is recorded as a whole.
_SAID: dict[str, Any] = {
    "goal": Annotated[str | None, typer.Option("--goal", metavar="TEXT", help="What is wanted.")],
    "hypothesis": Annotated[str | None, typer.Option("--hypothesis", metavar="TEXT", help="What is believed.")],
    "action": Annotated[str | None, typer.Option("--action", metavar="TEXT", help="What is done about it.")],
    "prediction": Annotated[
        str | None, typer.Option("--prediction", metavar="TEXT", help="What will happen if that is right.")
    ],
    "outcome_result": Annotated[str | None, typer.Option("--result", metavar="TEXT", help="What came of it.")],
    "surprise": Annotated[str | None, typer.Option("--surprise", metavar="TEXT", help="What nobody expected.")],
    "root_cause": Annotated[str | None, typer.Option("--root-cause", metavar="TEXT", help="Why it was so.")],
    "lesson": Annotated[str | None, typer.Option("--lesson", metavar="TEXT", help="What worked, or would have.")],
    "domain": DomainOption,
    "strategy": StrategyOption,
    "iteration_count": Annotated[
        int | None, typer.Option("--iterations", metavar="N", help="How often it was tried. Default: counted.")
    ],
}
_ENDED: dict[str, Any] = {
    "outcome": OutcomeOption,
    "confidence_tier": Annotated[
        str | None,
        typer.Option("--tier", metavar="T", help="gold, silver, bronze or abandoned. Default: by its outcome."),
    ],
}
_WHICH: dict[str, Any] = {"domain": DomainOption, "strategy": StrategyOption, "outcome": OutcomeOption}


@offers(more={**_SAID, **_ENDED})
def start(call: Call) -> int:
    """Record what is about to be tried: a goal, a hypothesis, an action and a prediction. With an outcome it is closed
    at once.

    Examples:
      ctx experience start --domain debugging --strategy read-the-error --goal "Find out why the export stops" \\
          --hypothesis "The disk is full" --action "Look at df" --prediction "No space left"
    """
    needed = dict.fromkeys(("goal", "hypothesis", "action", "prediction"), "")
    with call.index() as index:
        return _said(call, index, index.experiences.start(**{**needed, **_given(call.typed)}))


@offers(more=_SAID)
def update(call: Call, id: MaybeIdArgument = None) -> int:
    """Say more of the one that is open, or of ID. Another hypothesis is another iteration.

    Examples:
      ctx experience update --hypothesis "A quota was reached"
    """
    with call.index() as index:
        return _said(call, index, index.experiences.update(_id(index, id), **_given(call.typed)))


@offers(more={**_SAID, **_ENDED})
def close(call: Call, id: MaybeIdArgument = None) -> int:
    """Record the outcome of the one that is open, or of ID: confirmed, falsified or abandoned. From then on it is
    found.

    Examples:
      ctx experience close --outcome falsified --result "Half of it is free" --surprise "A quota was reached" \\
          --root-cause "The quota counts files, not bytes" --lesson "Look at quotas before disks"
    """
    with call.index() as index:
        fields = {"outcome": "", "outcome_result": "", **_given(call.typed)}
        experience = index.experiences.close(_id(index, id), **fields)
        return _said(call, index, experience, closed=True)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, as valid text."""
    return {
        name: plain_words(value) if isinstance(value, str) else value
        for name, value in values.items()
        if value is not None
    }


def _id(index: Index, named: str | None) -> str:
    if named:
        return plain_words(named)
    found = index.experiences.list(outcome="open", limit=6)
    if len(found) == 1:
        return found[0].id
    if not found:
        raise UsageError("no experience is open", hint="begin one with: ctx experience start --goal …")
    count = str(len(found)) if len(found) < 6 else "many"
    hint = f"name its id: {', '.join(each.id for each in found)}"
    raise UsageError(f"{count} experiences are open; which one is meant?", hint=hint)


def _said(call: Call, index: Index, experience: Experience, *, closed: bool = False) -> int:
    call.show(SCHEMA, {"experience": experience.to_dict()}, [(experience.id,)])
    if closed:
        call.say(f"{experience.outcome}, {experience.confidence_tier}")
    elif experience.is_open:
        end = f"ctx experience close {experience.id} --outcome confirmed|falsified|abandoned --result …"
        call.say(f"iteration {experience.iteration_count}; record how it ends with: {end}")
    else:
        call.say("kept")
    if not experience.is_open:
        _renew_values(call, index)
    return 0


def _renew_values(call: Call, index: Index) -> None:
    """Look for values anew if enough is new. What hinders it is told when values are asked for."""
    with suppress(CtxError):
        if index.experiences.rebuild_values(force=False).done:
            call.say("values were looked for anew; see them with: ctx experience values")


@offers(acting=True, more={**_WHICH, "limit": LimitOption})
def list_experiences(call: Call) -> int:
    """List them: id, state, domain, strategy, goal.

    Examples:
      ctx experience list --domain debugging --outcome falsified
    """
    with call.index() as index:
        found = index.experiences.list(**_given(call.typed))
    lines = ((each.id, each.state, each.domain, each.strategy, _short(each.goal)) for each in found)
    call.show(SCHEMA, {"experiences": [each.to_dict() for each in found]}, lines)
    if not found and not call.as_json:
        call.note("no experiences; begin one with: ctx experience start --goal …")
    return 0


@offers(acting=True)
def show_experience(call: Call, id: IdArgument) -> int:
    """Print one.

    Examples:
      ctx experience show 3f9a
    """
    with call.index() as index:
        found = index.experiences.get(plain_words(id))
    if call.as_json:
        write_document(SCHEMA, {"experience": found.to_dict()})
        return 0
    tier = f", {found.confidence_tier}" if found.confidence_tier else ""
    facts = {"id": found.id, "state": f"{found.state}{tier}, iteration {found.iteration_count}"}
    facts |= {
        name: getattr(found, name) for name in ("domain", "strategy", "goal", "hypothesis", "action", "prediction")
    }
    facts |= {"result": found.outcome_result, "surprise": found.surprise, "root cause": found.root_cause}
    facts |= {"lesson": found.lesson, "started": found.started_at[:19], "closed": found.closed_at[:19]}
    for name, text in facts.items():
        if text:
            write(f"{name:<12}{block(text).replace(chr(10), chr(10) + ' ' * 12)}\n")
    return 0


@offers(acting=True, more={"axis": AxisOption, **_WHICH, "limit": LimitOption})
def search(call: Call, question: QuestionArgument = None) -> int:
    """Find closed ones on one of four axes: full, strategy, surprise, root_cause. Lines: score, id, state, text.

    Examples:
      ctx experience search "writing stopped though there was space" --axis root_cause
    """
    with call.index() as index:
        found = index.experiences.search(call.question(question), **{"limit": _FOUND, **_given(call.typed)})
    results = [
        {
            "ref": f"experience:{each.experience.id}",
            "axis": each.axis,
            "relevance_score": each.score,
            "raw_score": each.raw_score,
            "parts": dict(each.parts),
            "experience": each.experience.to_dict(),
        }
        for each in found.results
    ]
    lines = (
        (
            f"{each.score:.2f}",
            each.experience.id,
            each.experience.state,
            _short(each.experience.goal if each.axis == "full" else each.text),
        )
        for each in found.results
    )
    call.show(SCHEMA, {"query": found.query, "results": results, "notes": list(found.notes)}, lines)
    for note in found.notes:
        call.note(note)
    if not found.results:
        call.note("no experience fits; see all with: ctx experience list")
    return 0 if found.results else NothingFoundError.exit_code


@offers(acting=True)
def premortem(
    call: Call,
    domain: Annotated[str, typer.Argument(metavar="DOMAIN", help="debugging, feature, testing, performance …")],
    *,
    strategy: StrategyOption = None,
    limit: LimitOption = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", metavar="N", help="The token budget.")] = 1500,
) -> int:
    """Gather what went wrong before in a domain, for the moment a test or a build fails for the first time: past
    failures, what a strategy has brought, what nobody expected, root causes, and the values that experiences share.
    The sections share the token budget evenly, and what one does not need flows on. Where nothing is known of the
    domain, it exits with 3.

    Examples:
      ctx experience premortem debugging
      ctx experience premortem debugging --strategy systematic-elimination
      ctx experience premortem debugging --json | jq -r '.markdown'
      pytest -q || ctx experience premortem debugging --quiet
    """
    from cli.context import show_context

    with call.opened(call.settings()) as index:
        found = index.premortem(domain, strategy, limit=limit or _FOUND, max_tokens=max_tokens)
    return show_context(call, "premortem", {"domain": domain, "strategy": strategy}, found)


def remove(call: Call, ids: IdsArgument = None) -> int:
    """Remove experiences, from the values that were made of them, too.

    Examples:
      ctx experience remove 3f9a
    """
    if not ids:
        raise UsageError("remove needs an id", hint="see them with: ctx experience list")
    with call.index() as index:
        removed = index.experiences.remove(*map(plain_words, ids))
    fields = {"removed": list(removed.ids), "removed_values": list(removed.values)}
    call.show(SCHEMA, fields, ((id,) for id in removed.ids))
    if removed.values:
        call.say(f"{len(removed.values)} values were made of it and went, too")
    return 0


def import_lines(call: Call, file: FileArgument) -> int:
    """Add experiences from JSON Lines, one each; the same again changes nothing.

    Examples:
      ctx experience import experiences.jsonl
    """
    with call.index() as index:
        with open_file(file, "name a file with an experience a line, or - for stdin") as stream:
            done = index.experiences.import_lines(stream)
        _show_imported(call, done)
        if done.imported.added or done.imported.changed:
            _embed(call, index)
            _renew_values(call, index)
    return SomeFilesFailedError.exit_code if done.failed else 0


def _show_imported(call: Call, done: ImportedLines) -> None:
    counts = {name: len(getattr(done.imported, name)) for name in ("added", "changed", "known")}
    counts["failed"] = done.failed
    fields = {"imported": {**counts, "still_open": done.still_open}, "problems": [asdict(x) for x in done.problems]}
    call.show(SCHEMA, fields, counts.items())
    for each in done.problems:
        say(f"ctx: line {each.line}: {each.error}" + (f"; {each.hint}" if each.hint else ""))
    if done.failed > len(done.problems):
        say(f"ctx: and {done.failed - len(done.problems):,} lines more")
    if done.still_open:
        call.note(f"{done.still_open} of them have no outcome yet, and are not found before they are closed")


def _embed(call: Call, index: Index) -> None:
    """Make the vectors now, so that the next question need not. Whoever stops it loses nothing."""
    left = index.experiences.embed(seconds=1.0)
    if left:
        call.say(f"embedding {left:,} more; they are found by their words already")
    while left:
        left, before = index.experiences.embed(), left
        if left >= before:  # somebody else writes, or new ones come as quickly
            return


@offers(acting=True, more=_WHICH)
def export(call: Call) -> int:
    """Print them as JSON Lines, the oldest first. With --json one document, as every command.

    Examples:
      ctx experience export > experiences.jsonl
    """
    with call.index() as index:
        found = index.experiences.list(**_given(call.typed))
    ordered = [each.to_dict() for each in reversed(found)]
    if call.as_json:
        write_document(SCHEMA, {"experiences": ordered})
        return 0
    for each in ordered:
        if not write(json.dumps(each, ensure_ascii=True) + "\n"):
            break
    return 0


@offers(acting=True)
def values(
    call: Call,
    *,
    axis: AxisOption = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Look for them anew.")] = False,
) -> int:
    """Print sentences that many experiences share: id, axis, how many share it, text.

    Examples:
      ctx experience values --rebuild
    """
    with call.index() as index:
        report = _rebuilt(index, rebuild=rebuild)
        found = index.experiences.values(axis=axis)
    rebuilt = {"axes": [asdict(each) for each in report.axes], "without_vectors": report.without_vectors}
    lines = ((each.id, each.axis, each.cluster_size, _short(each.text)) for each in found)
    fields = {"values": [each.to_dict() for each in found], "rebuilt": rebuilt if report.done else None}
    call.show(SCHEMA, fields, lines)
    for each in report.axes:
        if each.note and axis in (None, each.axis):
            call.note(f"{each.axis}: {each.note}")
    if report.without_vectors:
        call.note(f"{report.without_vectors:,} items have no vector yet; run it again to take them in")
    if report.note and not found:
        call.note(f"no values: {report.note}")
    return 0


def _rebuilt(index: Index, *, rebuild: bool) -> Rebuilt:
    """Look for values where it is asked for; else if enough is new and nothing is in the way."""
    from research.experiences import Rebuilt

    try:
        return index.experiences.rebuild_values(force=rebuild)
    except BusyError:
        if rebuild:
            raise
        return Rebuilt(False)


def _short(text: str) -> str:
    line = phrase(text)
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


EXPERIENCE = Verbs(
    """An experience is a goal, a hypothesis, an action and a prediction, recorded before something is tried (start),
    and an outcome recorded after it (close): confirmed, falsified or abandoned. Closed ones are found by search, by
    premortem and by ctx context. In a pipe the fields of a line are separated by tabs.""",
    {
        "list": list_experiences,
        "start": start,
        "update": update,
        "close": close,
        "show": show_experience,
        "search": search,
        "premortem": premortem,
        "remove": remove,
        "import": import_lines,
        "export": export,
        "values": values,
    },
)
