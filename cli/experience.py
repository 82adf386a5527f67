"""ctx experience: what was tried and what came of it, told, listed, searched, and what many have in common.

Experiences and values as lines, as blocks, and as JSON. All of it is somebody's text, and made safe.
"""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import common, index_for
from cli.output import say, write, write_document, write_line
from research.errors import NothingFoundError, SomeFilesFailedError, UsageError
from research.text import block, phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.options import Common
    from research.experiences import Experience, ExperienceResults, ImportedLines, Rebuilt, Removed
    from research.index import Index

SCHEMA = "ctx.experience/1"

_SHOWN = 160  # characters of a text in a line


def show_list(experiences: Sequence[Experience], given: Common) -> None:
    if given.as_json:
        write_document(SCHEMA, {"experiences": [each.to_dict() for each in experiences]})
        return
    for each in experiences:
        write_line(each.id, each.state, each.domain, each.strategy, _short(each.goal))
    if not experiences and not given.quiet:
        say("ctx: note: no experiences; begin one with: ctx experience start --goal …")


def export(experiences: Sequence[Experience], given: Common) -> None:
    """The oldest first, as they came. With --json one document, as every command."""
    import json

    ordered = [each.to_dict() for each in reversed(experiences)]
    if given.as_json:
        write_document(SCHEMA, {"experiences": ordered})
        return
    for each in ordered:
        if not write(json.dumps(each, ensure_ascii=True) + "\n"):
            return


def show_one(experience: Experience, given: Common) -> None:
    if given.as_json:
        write_document(SCHEMA, {"experience": experience.to_dict()})
        return
    tier = f", {experience.confidence_tier}" if experience.confidence_tier else ""
    facts = {
        "id": experience.id,
        "state": f"{experience.state}{tier}, iteration {experience.iteration_count}",
        "domain": experience.domain,
        "strategy": experience.strategy,
        "goal": experience.goal,
        "hypothesis": experience.hypothesis,
        "action": experience.action,
        "prediction": experience.prediction,
        "result": experience.outcome_result,
        "surprise": experience.surprise,
        "root cause": experience.root_cause,
        "lesson": experience.lesson,
        "started": experience.started_at[:19],
        "closed": experience.closed_at[:19],
    }
    for name, text in facts.items():
        if text:
            write(f"{name:<12}{block(text).replace(chr(10), chr(10) + ' ' * 12)}\n")


def show_results(found: ExperienceResults, given: Common) -> None:
    if given.as_json:
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
        write_document(SCHEMA, {"query": found.query, "results": results, "notes": list(found.notes)})
    else:
        for each in found.results:
            told = each.experience.goal if each.axis == "full" else each.text
            write_line(f"{each.score:.2f}", each.experience.id, each.experience.state, _short(told))
    for note in () if given.quiet else found.notes:
        say(f"ctx: note: {note}")
    if not found.results and not given.quiet:
        say("ctx: note: no experience fits; see all with: ctx experience list")


def show_removed(removed: Removed, given: Common) -> None:
    if given.as_json:
        write_document(SCHEMA, {"removed": list(removed.ids), "removed_values": list(removed.values)})
    else:
        for id in removed.ids:
            write_line(id)
    if removed.values and not given.quiet:
        say(f"ctx: {len(removed.values)} values were made of it and went, too")


def show_imported(done: ImportedLines, given: Common) -> None:
    counts = {
        "added": len(done.imported.added),
        "changed": len(done.imported.changed),
        "known": len(done.imported.known),
        "failed": done.failed,
        "still_open": done.still_open,
    }
    if given.as_json:
        write_document(SCHEMA, {"imported": counts, "problems": [asdict(each) for each in done.problems]})
    else:
        for name in ("added", "changed", "known", "failed"):
            write_line(name, counts[name])
    for each in done.problems:
        say(f"ctx: line {each.line}: {each.error}" + (f"; {each.hint}" if each.hint else ""))
    if done.failed > len(done.problems):
        say(f"ctx: and {done.failed - len(done.problems):,} lines more")
    if done.still_open and not given.quiet:
        say(f"ctx: note: {done.still_open} of them have no outcome yet, and are not found before they are closed")


def show_values(index: Index, axis: str | None, report: Rebuilt, given: Common) -> None:
    values = index.experiences.values(axis=axis)
    if given.as_json:
        shown = [each.to_dict() for each in values]
        write_document(SCHEMA, {"values": shown, "rebuilt": _rebuilt(report)})
    else:
        for each in values:
            write_line(each.id, each.axis, each.cluster_size, _short(each.text))
    if given.quiet:
        return
    for found in report.axes:
        if found.note and axis in (None, found.axis):
            say(f"ctx: note: {found.axis}: {found.note}")
    if report.without_vectors:
        say(f"ctx: note: {report.without_vectors:,} items have no vector yet; run it again to take them in")
    if report.note and not values:
        say(f"ctx: note: no values: {report.note}")


def _rebuilt(report: Rebuilt) -> dict[str, Any] | None:
    if not report.done:
        return None
    return {"axes": [asdict(each) for each in report.axes], "without_vectors": report.without_vectors}


def _short(text: str) -> str:
    line = phrase(text)
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


DETAILS = """
An experience is a goal, a hypothesis, an action and a prediction, told before something is tried (`start`), and an
outcome told after it (`close`): confirmed, falsified or abandoned. Closed ones are found by `search`, and by context
and premortem, on four axes: full, strategy, surprise, root_cause. `update` and `close` mean the one that is open where
no ID is given. `import` and `export` are JSON Lines, one experience each; the same again changes nothing. `values` are
sentences that many experiences share. In a pipe the fields of a line are separated by tabs.
"""

EPILOG = """
\b
Examples:
  ctx experience start --domain debugging --strategy read-the-error --goal "Find out why the export stops" \\
      --hypothesis "The disk is full" --action "Look at df" --prediction "No space left"
  ctx experience close --outcome falsified --result "Half of it is free" --surprise "A quota was reached" \\
      --root-cause "The quota counts files, not bytes" --lesson "Look at quotas before disks"
  ctx experience list --domain debugging --outcome falsified
  ctx experience search "writing stopped though there was space" --axis root_cause
  ctx experience export > experiences.jsonl
  ctx experience values --rebuild
"""


class Verb(StrEnum):
    start = "start"
    update = "update"
    close = "close"
    list = "list"
    show = "show"
    search = "search"
    remove = "remove"
    import_ = "import"
    export = "export"
    values = "values"


# What may be told of an experience, by which verbs.
_TOLD = {
    "goal": "What is wanted.",
    "hypothesis": "What is believed.",
    "action": "What is done about it.",
    "prediction": "What will happen if that is right.",
    "outcome_result": "What came of it.",
    "surprise": "What nobody expected.",
    "root_cause": "Why it was so.",
    "lesson": "What worked, or would have.",
}
_TELLING = (Verb.start, Verb.update, Verb.close)
_ALLOWED = {
    "domain": (*_TELLING, Verb.list, Verb.search, Verb.export),
    "strategy": (*_TELLING, Verb.list, Verb.search, Verb.export),
    "outcome": (Verb.start, Verb.close, Verb.list, Verb.search, Verb.export),
    "axis": (Verb.search, Verb.values),
    "limit": (Verb.list, Verb.search),
    "rebuild": (Verb.values,),
    "confidence_tier": (Verb.start, Verb.close),
}
_FLAGS = {"outcome_result": "--result", "confidence_tier": "--tier", "iteration_count": "--iterations"}
_LIMIT = 10


def _text(name: str, flag: str = "") -> Any:
    return typer.Option(flag or f"--{name.replace('_', '-')}", metavar="TEXT", help=_TOLD[name])


def command(
    ctx: typer.Context,
    *,
    verb: Annotated[
        Verb,
        typer.Argument(
            metavar="start|update|close|list|show|search|remove|import|export|values",
            help="What to do. Default: list.",
        ),
    ] = Verb.list,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID|FILE|QUESTION...",
            help="Which experience, or the beginning of its id; what to import, - for stdin; what to search.",
            show_default=False,
        ),
    ] = None,
    goal: Annotated[str | None, _text("goal")] = None,
    hypothesis: Annotated[str | None, _text("hypothesis")] = None,
    action: Annotated[str | None, _text("action")] = None,
    prediction: Annotated[str | None, _text("prediction")] = None,
    outcome: Annotated[
        str | None,
        typer.Option("--outcome", metavar="O", help="confirmed, falsified or abandoned; list: also open."),
    ] = None,
    outcome_result: Annotated[str | None, _text("outcome_result", "--result")] = None,
    surprise: Annotated[str | None, _text("surprise")] = None,
    root_cause: Annotated[str | None, _text("root_cause")] = None,
    lesson: Annotated[str | None, _text("lesson")] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", metavar="D", help="debugging, feature, testing, security, … or other.")
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", metavar="S", help="root-cause-analysis, trial-and-error, … or other."),
    ] = None,
    confidence_tier: Annotated[
        str | None,
        typer.Option("--tier", metavar="T", help="gold, silver, bronze or abandoned. Default: by its outcome."),
    ] = None,
    iteration_count: Annotated[
        int | None, typer.Option("--iterations", metavar="N", help="How often it was tried. Default: counted.")
    ] = None,
    axis: Annotated[
        str | None,
        typer.Option("--axis", metavar="A", help="full, strategy, surprise or root_cause. Default of search: full."),
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="At most so many.")] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="values: look for them anew.")] = False,
) -> int:
    given, named = common(ctx), [_plain(word) for word in words or ()]
    told: dict[str, Any] = {
        "goal": goal,
        "hypothesis": hypothesis,
        "action": action,
        "prediction": prediction,
        "outcome": outcome,
        "outcome_result": outcome_result,
        "surprise": surprise,
        "root_cause": root_cause,
        "lesson": lesson,
        "domain": domain,
        "strategy": strategy,
        "confidence_tier": confidence_tier,
        "iteration_count": iteration_count,
    }
    told = {
        name: _plain(value) if isinstance(value, str) else value for name, value in told.items() if value is not None
    }
    asked = {**told, **({"axis": axis} if axis else {}), **({"limit": limit} if limit is not None else {})}
    _check_options(verb, {**asked, **({"rebuild": True} if rebuild else {})}, limit)
    with index_for(given) as index:
        if verb in _TELLING:
            _tell(index, verb, named, told, given)
        elif verb is Verb.import_:
            return _import(index, named, given)
        else:
            return _look(index, verb, named, asked, given, rebuild=rebuild)
    return 0


def _check_options(verb: Verb, given: dict[str, Any], limit: int | None) -> None:
    for name in given:
        if verb not in _ALLOWED.get(name, _TELLING):
            flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
            raise UsageError(f"{flag} does not belong to {verb}", hint="see: ctx experience --help")
    if limit is not None and not 1 <= limit <= 10_000:
        raise UsageError(f"--limit cannot be {limit}", hint="a whole number from 1 to 10,000")


def _tell(index: Index, verb: Verb, named: Sequence[str], told: dict[str, Any], given: Common) -> None:
    from cli.output import say, write_document, write_line

    if verb is Verb.start:
        _check_count(verb, named, 0)
        needed = dict.fromkeys(("goal", "hypothesis", "action", "prediction"), "")
        experience = index.experiences.start(**{**needed, **told})
    else:
        _check_count(verb, named, 1)
        id = named[0] if named else _the_open_one(index).id
        if verb is Verb.update:
            experience = index.experiences.update(id, **told)
        else:
            experience = index.experiences.close(id, **{"outcome": "", "outcome_result": "", **told})
    if given.as_json:
        write_document("ctx.experience/1", {"experience": experience.to_dict()})
    else:
        write_line(experience.id)
    if not given.quiet and verb is not Verb.close:
        end = f"ctx experience close {experience.id} --outcome confirmed|falsified|abandoned --result …"
        say(
            f"ctx: iteration {experience.iteration_count}; tell how it ends with: {end}"
            if experience.is_open
            else "ctx: kept"
        )
    elif not given.quiet:
        say(f"ctx: {experience.outcome}, {experience.confidence_tier}")
    if not experience.is_open:
        _renew_values(index, given)


def _look(
    index: Index, verb: Verb, named: Sequence[str], asked: dict[str, Any], given: Common, *, rebuild: bool
) -> int:
    if verb is Verb.list:
        _check_count(verb, named, 0)
        show_list(index.experiences.list(**asked), given)
    elif verb is Verb.export:
        _check_count(verb, named, 0)
        export(index.experiences.list(**asked), given)
    elif verb is Verb.show:
        _check_count(verb, named, 1, least=1)
        show_one(index.experiences.get(named[0]), given)
    elif verb is Verb.search:
        from cli.options import read_question

        _check_count(verb, named, None, least=1)
        results = index.experiences.search(read_question(named), **{"limit": _LIMIT, **asked})
        show_results(results, given)
        return 0 if results.results else NothingFoundError.exit_code
    elif verb is Verb.remove:
        _check_count(verb, named, None, least=1)
        show_removed(index.experiences.remove(*named), given)
    else:
        _check_count(verb, named, 0)
        show_values(index, asked.get("axis"), _values(index, rebuild=rebuild), given)
    return 0


def _values(index: Index, *, rebuild: bool) -> Rebuilt:
    """Also where nobody asks for it, if enough is new and nothing is in the way."""
    from research.errors import BusyError
    from research.experiences import Rebuilt

    try:
        return index.experiences.rebuild_values(force=rebuild)
    except BusyError:
        if rebuild:
            raise
        return Rebuilt(False)


def _import(index: Index, named: Sequence[str], given: Common) -> int:
    import sys
    from pathlib import Path

    _check_count(Verb.import_, named, 1, least=1)
    if named[0] == "-":
        done = index.experiences.import_lines(sys.stdin.buffer)
    else:
        try:
            with Path(named[0]).open("rb") as stream:
                done = index.experiences.import_lines(stream)
        except OSError as error:
            hint = "name a file with an experience a line, or - for stdin"
            raise UsageError(f"cannot read {named[0]}: {error.strerror or error}", hint=hint) from error
    show_imported(done, given)
    if done.imported.added or done.imported.changed:
        _embed(index, given)
        _renew_values(index, given)
    return SomeFilesFailedError.exit_code if done.failed else 0


def _embed(index: Index, given: Common) -> None:
    """So that the next question need not. Whoever stops it loses nothing."""
    from cli.output import say

    left = index.experiences.embed(seconds=1.0)
    if left and not given.quiet:
        say(f"ctx: embedding {left:,} more; they are found by their words already")
    while left:
        left, before = index.experiences.embed(), left
        if left >= before:  # somebody else writes, or new ones come as quickly
            return


def _renew_values(index: Index, given: Common) -> None:
    """If enough is new. What hinders it is told when values are asked for."""
    from contextlib import suppress

    from cli.output import say
    from research.errors import CtxError

    with suppress(CtxError):
        if index.experiences.rebuild_values(force=False).done and not given.quiet:
            say("ctx: values were looked for anew; see them with: ctx experience values")


def _the_open_one(index: Index) -> Experience:
    found = index.experiences.list(outcome="open", limit=6)
    if len(found) != 1:
        named = ", ".join(each.id for each in found)
        raise UsageError(
            f"{len(found) if len(found) < 6 else 'many'} experiences are open; which one is meant?" if found
            else "no experience is open",
            hint=f"name its id: {named}" if found else "begin one with: ctx experience start --goal …",
        )  # fmt: skip
    return found[0]


def _check_count(verb: Verb, named: Sequence[str], most: int | None, *, least: int = 0) -> None:
    if len(named) < least:
        needed = {Verb.import_: "a file", Verb.search: "a question"}.get(verb, "an id")
        raise UsageError(f"{verb} needs {needed}", hint="see: ctx experience --help")
    if most is not None and len(named) > most:
        raise UsageError(f"{verb} takes no {named[most]!r}", hint="see: ctx experience --help")


def _plain(word: str) -> str:
    """Words that are no valid text arrive as lone surrogates, which no database takes."""
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
