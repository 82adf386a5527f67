"""Experiences and values as lines, as blocks, and as JSON. All of it is somebody's text, and made safe."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cli.output import say, write, write_document, write_line
from research.visible_text import block, phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.options import Common
    from research.experiences.records import Experience, ExperienceResults, ImportedLines, Rebuilt, Removed
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
    values = index.values(axis=axis)
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
