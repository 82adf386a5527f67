"""Storing the summaries of what left a conversation's window: redacted, each once, and never at a turn's expense."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from research.conversation.history import spoken
from research.conversation.redacting import Redaction
from research.conversation.report import TurnReport
from research.conversation.service import GuardedService
from research.conversation.summary import (
    Due,
    Payload,
    Summarizer,
    SummaryLedger,
    joined,
    said,
    summary_key,
    summary_payload,
)
from research.errors import SomaClientError
from research.parallel import Workers

_SAID_TO_MODEL = 50  # messages that a model is given to sum up


class Summaries:
    def __init__(
        self,
        memory: GuardedService,
        redaction: Redaction,
        now: Callable[[], datetime],
        *,
        seconds: float,
        summarizer: Summarizer | None,
        summarizer_seconds: float,
    ) -> None:
        self._memory = memory
        self._redaction = redaction
        self._now = now
        self._seconds = seconds
        self._summarizer = summarizer
        self._summarizer_seconds = summarizer_seconds
        self._ledger = SummaryLedger()
        self._workers = Workers("ctx-summary")

    async def store(self, trimmed: Sequence[Any], kept: int, report: TurnReport) -> bool:
        """Remember what was trimmed, if that is due, and say so in the report. One that could not be stored is due
        again at the next turn. Raises SomaClientError if the service failed."""
        due = self._ledger.take(report.turn, trimmed)
        if due is None:
            report.summary = "known"
            return False
        report.summary = "failed"
        payload, stored = due.payload, False
        try:
            if payload is None:
                payload = await self._payload(due, kept, report)
            stored = payload is not None and await self._sent(payload, report)
        finally:
            self._ledger.settle(due, stored=stored, payload=payload)
        if stored:
            report.summary = "stored"
        return stored

    async def _payload(self, due: Due, kept: int, report: TurnReport) -> Payload | None:
        own_words = joined(await self._redaction.texts(said(due.messages)))
        if not own_words:
            report.notes.append("the summary could not be redacted, and was not stored")
            return None
        text = await self._written(due, report) or own_words
        return summary_payload(report.turn, text, summary_key(report.turn, own_words), kept, self._now())

    async def _sent(self, payload: Payload, report: TurnReport) -> bool:
        try:
            await self._memory.remember(payload, self._seconds)
        except SomaClientError as error:
            report.notes.append(f"the summary was not stored: {error.message}")
            raise
        return True

    async def _written(self, due: Due, report: TurnReport) -> str | None:
        """The model's summary, redacted; None if there is no model, or it wrote none."""
        if self._summarizer is None:
            return None
        spoke = [each for each in map(spoken, due.messages[-_SAID_TO_MODEL:]) if each is not None]
        messages = [{"role": role, "content": text} for role, text in spoke]
        try:
            async with asyncio.timeout(self._summarizer_seconds):
                text = await self._workers.call(self._summarizer, messages)
        except Exception as error:  # noqa: BLE001  the messages' own words will do
            report.notes.append(f"the model wrote no summary: {type(error).__name__}")
            return None
        if not isinstance(text, str) or not text.strip():
            report.notes.append("the model wrote no summary")
            return None
        return joined(await self._redaction.texts([text.strip()])) or None
