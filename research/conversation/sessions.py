"""Sessions: conversations with the documents. The next question leans on the turns before it, and becomes one itself.

What is kept of a turn is the question, what was searched, the pages cited with what was quoted of them, and what a
model wrote. It lies in the index, under the name of a session, and belongs to a tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from research.conversation.followups import MOST_TURNS, Earlier, follow_up
from research.conversation.intake import name_of, storable, stored_time
from research.errors import CtxError, NothingFoundError, UsageError
from research.sessions import AskedTurn, CitedPage, Session
from research.store.catalog import session_turns

if TYPE_CHECKING:
    from research.models import Question, ResearchContext
    from research.store.catalog.catalog import Catalog
    from research.store.catalog.reader import Reader

_LOOKED_AT = 5  # pages of a turn that say which documents it was about


class Sessions:
    """Those of an index. May be used by many threads."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def next_question(
        self,
        reader: Reader,
        question: Question,
        session: str | None,
        tenant: str,
        *,
        before: Sequence[str] = (),
        turn: int = 0,
    ) -> tuple[Question, str]:
        """The question as its session makes it (as it was before a `turn`, if that is given), or questions that were
        asked `before`; and the one that it leans on, if it does."""
        kept: list[Earlier] = []
        if session is not None:
            question = replace(question, session=session_name(session), tenant=tenant)
            stored = session_turns.turns_of(reader, tenant, question.session, last=None if turn else MOST_TURNS)
            kept = [_earlier(each) for each in stored if not turn or each.number < turn]
        turns: list[Earlier] = []
        try:
            for text in before:  # each may have leaned on the one before it
                turns.append(Earlier(text, follow_up(text, turns, reader).searched))
            turns += kept
            found = follow_up(question.text, turns, reader)
        except CtxError:
            raise
        except Exception as error:  # noqa: BLE001  it costs itself alone: the question is asked as it stands
            from research.observe import log_failure

            log_failure("conversation", "reading a follow-up failed", error)
            question.notes.append(f"what was asked before was left out ({type(error).__name__})")
            return question, ""
        if found.rewrite is None:
            return replace(question, about=found.about), ""
        asked = replace(question.searching(found.searched), about=found.about, rewrites=(found.rewrite,))
        return asked, turns[-1].question

    def keep(self, context: ResearchContext, session: str, tenant: str) -> ResearchContext:
        """The context with its number in the session. Where it cannot be written, a note tells: it was answered all the
        same."""
        quotes: dict[int, list[str]] = {}
        for quote in context.quotes:
            quotes.setdefault(quote.citation, []).append(storable(quote.text))
        sources = tuple(
            CitedPage(number, source.doc_id, source.page, source.relevance_score, tuple(quotes.get(number, ())))
            for number, source in context.get_citation_map().items()
            if source.kind == "page"
        )
        now = stored_time(datetime.now(UTC))
        turn = AskedTurn(storable(context.query), storable(context.searched), sources, asked_at=now)
        try:
            with self._catalog().short_write() as connection:
                number = session_turns.add_turn(connection, tenant, session, turn)
        except CtxError as error:
            note = f"this turn is not kept in the session: {error.message}"
            coverage = replace(context.coverage, notes=[*context.coverage.notes, note])
            return replace(context, session=session, coverage=coverage)
        return replace(context, session=session, turn=number)

    def keep_answer(self, context: ResearchContext, tenant: str, answer: str, model: str) -> None:
        """What a model wrote to a turn that was kept."""
        if context.turn and answer:
            with self._catalog().short_write() as connection:
                session_turns.keep_answer(
                    connection, tenant, context.session, context.turn, answer=storable(answer), model=storable(model)
                )

    def listed(self, tenant: str) -> list[Session]:
        """The one asked last first."""
        with self._catalog().snapshot() as reader:
            return session_turns.list_sessions(reader, tenant)

    def turns(self, session: str, tenant: str, *, last: int | None = None) -> list[AskedTurn]:
        """Oldest first; none if there is no such session yet."""
        with self._catalog().snapshot() as reader:
            return session_turns.turns_of(reader, tenant, session, last=last)

    def remove(self, session: str, tenant: str) -> int:
        """How many turns it had; overwritten in the file."""
        with self._catalog().short_write(erase=True) as connection:
            removed = session_turns.remove_session(connection, tenant, session)
        self._catalog().shrink_log()
        return removed


def session_name(given: str) -> str:
    """Raises UsageError for what is no name."""
    name = name_of("session", given)
    if not name:
        raise UsageError("a session needs a name", hint="--session NAME")
    return name


def no_session(name: str) -> NothingFoundError:
    return NothingFoundError(f"there is no session {name}", hint="see them with: ctx sessions")


def _earlier(turn: AskedTurn) -> Earlier:
    documents: dict[str, float] = {}
    for source in turn.sources[:_LOOKED_AT]:
        documents.setdefault(source.doc_id, source.relevance_score)
    return Earlier(turn.question, turn.searched, tuple(documents.items()))
