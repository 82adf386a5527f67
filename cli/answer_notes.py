"""What is said beside an answer: what the budget cost, and what could not be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.options import notes_on
from research.visible_text import one_line, phrase

if TYPE_CHECKING:
    from research.models import ResearchContext

# Of the pages left out, a reader is told the first; JSON has them all.
_NAMED = 3
_NAME = 24  # cells of a name on the screen


@dataclass(frozen=True, slots=True)
class Note:
    text: str
    style: str


def screen_notes(context: ResearchContext) -> list[Note]:
    """All there is to say, for a reader who sees the answer drawn; a long name must not hide what is said of it."""
    from cli.layout import shorten_middle

    def short(name: str) -> str:
        return shorten_middle(one_line(name), _NAME)

    return [
        *([Note(f"↪ {follow_note(context)}", "dim")] if context.follows else []),
        *(Note(f"✂ {note}", "bold yellow") for note in budget_notes(context, short)),
        *(Note(f"! {note}", "yellow") for note in notes_on(context.coverage)),
    ]


def follow_note(context: ResearchContext) -> str:
    """Of a question that leans on the one before it."""
    added = context.searched.removeprefix(context.query)
    if added == context.searched:  # something else has changed it as well
        return f"searched with words of the question before: {phrase(context.searched)}"
    return f"searched with words of the question before: {phrase(added)}"


def budget_notes(context: ResearchContext, shown: Callable[[str], str] = one_line) -> list[str]:
    """What the budget cost."""
    notes = []
    cut = [str(number) for number, source in context.get_citation_map().items() if source.cut and context.truncated]
    if cut:
        which = f"source {cut[0]} is" if len(cut) == 1 else f"sources {', '.join(cut[:-1])} and {cut[-1]} are"
        notes.append(f"truncated: {which} shown in part")
    if context.dropped:
        names = ", ".join(_place(shown(d.filename), d.page) for d in context.dropped[:_NAMED])
        more = f" and {len(context.dropped) - _NAMED} more" if len(context.dropped) > _NAMED else ""
        notes.append(f"truncated: left out: {names}{more}")
    if notes:
        notes[-1] += f" (budget {context.max_tokens} tokens; raise it with --max-tokens)"
    return notes


def _place(name: str, page: int) -> str:
    return f"{name}:{page}" if page else name  # what is no page has none
