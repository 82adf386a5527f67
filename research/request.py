"""AskRequest: one question and how it is to be answered, the same for a prompt, a batch, HTTP and an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from research.filters import Filters
    from research.models import Extent


@dataclass(frozen=True, slots=True)
class AskRequest:
    """What is asked. Fields that are None are as the settings have them."""

    question: str
    types: tuple[str, ...] | None = None  # the sources: documents, code, commits, memories … ; None: documents alone
    max_tokens: int | None = None
    max_sources: int | None = None
    num_results: int | None = None  # items of each source that are looked at
    mode: str | None = None
    documents: tuple[str, ...] | None = None  # only these: names, paths, patterns, titles or ids
    filters: Filters | None = None
    extent: Extent = "fit"
    highlights: bool = False  # also find the places on the pages
    min_score: float | None = None
    min_confidence: str | float | None = None
    session: str | None = None  # the conversation it goes on from and is kept in
    turn: int = 0  # asks again what was this turn of the session, and keeps nothing
    before: tuple[str, ...] = ()  # questions of a conversation that is kept elsewhere, oldest first
    tenant: str = ""  # whose memories and sessions
