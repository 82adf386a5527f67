"""Redaction of memories and summaries. It fails closed: what could not be redacted is left out, never shown.

A redactor that raises costs the item it raised for; one that is missing or hangs, all that were not done in time. What
it says when it raises may quote the text, so nobody hears its words.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from research.conversation.candidates import Candidate
from research.conversation.disarm import disarmed, label
from research.conversation.messages import Snippet
from research.conversation.salience import Scored, time_shown
from research.conversation.workers import Workers

if TYPE_CHECKING:
    from research.governance.redaction import RedactorProtocol

Redact = Callable[[str], str]

FAILED, TIMED_OUT = "redaction_failed", "redaction_timed_out"


class Redaction:
    """One redactor, for the memories and summaries of many turns."""

    def __init__(self, redactor: RedactorProtocol | None, seconds: float) -> None:
        """Without a redactor it is the base one, which knows keys and tokens."""
        self._redactor = redactor
        self._seconds = seconds
        self._workers = Workers("ctx-redaction")

    async def snippets(self, scored: Sequence[Scored]) -> tuple[list[Snippet], Counter[str]]:
        """Those that may be shown, in their order, and how many were left out for which reason."""
        if not scored:
            return [], Counter()
        shown: list[Snippet] = []
        dropped: Counter[str] = Counter()

        def work() -> None:
            redact = self._for_one_context()
            for each in scored:
                try:
                    shown.append(_snippet(each, redact))
                except Exception as error:  # noqa: BLE001  any reason is a reason not to show it
                    dropped[FAILED] += 1
                    _log(error)

        why = await self._within_time(work)
        done, lost = list(shown), Counter(dropped)  # one that hangs may still go on
        if why:
            lost[why] += len(scored) - len(done) - lost[FAILED]
        return done, lost

    async def summary(self, make: Callable[[Redact], str]) -> str | None:
        """A text that is made with a function that redacts; None if that failed."""
        made: list[str] = []
        why = await self._within_time(lambda: made.append(make(self._for_one_context())))
        return None if why else made[0]

    async def warm_up(self) -> None:
        sample = Scored(Candidate("warm-up", "A memory of [1] a — warm summer.", 1.0), 1.0, 1.0)
        await self._workers.run(lambda: _snippet(sample, self._for_one_context()))

    async def _within_time(self, work: Callable[[], None]) -> str:
        """Why it was not done; empty if it was."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._workers.run(work)
        except TimeoutError as error:
            _log(error)
            return TIMED_OUT
        except Exception as error:  # noqa: BLE001  a redactor that cannot be made: whatever was to be shown is not
            _log(error)
            return FAILED
        return ""

    def _for_one_context(self) -> Redact:
        """With placeholders that are the same in all texts of one context, where the redactor has such."""
        if self._redactor is None:
            from research.governance.redaction import BaseRedactor

            self._redactor = BaseRedactor()
        redactor = self._redactor
        if hasattr(redactor, "within"):
            from research.governance.placeholders import Placeholders

            redactor = redactor.within(Placeholders())

        def redact(text: str) -> str:
            redacted: object = redactor.redact(text)
            if not isinstance(redacted, str):
                raise TypeError("a redactor gives text")
            return redacted

        return redact


def _snippet(scored: Scored, redact: Redact) -> Snippet:
    candidate = scored.candidate
    text = redact(candidate.text)
    return Snippet(
        id=redact(candidate.id) if candidate.id else "",
        text=disarmed(text),
        label=label(redact(candidate.source), text),
        score=scored.score,
        base_score=candidate.score,
        recency=scored.recency,
        time=time_shown(candidate.metadata),
    )


def _log(error: BaseException) -> None:
    from research.observe.log import logger_of

    # By its type alone, and without its traceback: its words may be those of the text.
    logger_of("conversation").warning("a redactor failed: %s", type(error).__name__)
