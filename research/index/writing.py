"""Answers that a model writes from what an index gave: the writer, the prompt, and what of it may be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.index.base import IndexBase
from research.models import ResearchContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from research.answer import AnswerWriter, CheckedAnswer, Prompt


class Writing(IndexBase):
    """The part of `Index` that has answers written."""

    def writer(self, *, with_pictures: bool = False) -> AnswerWriter:
        """What writes answers from contexts with the model that the settings name, for any number of them.
        `with_pictures` also sends pictures of the first pages. Raises UsageError if they name none."""
        from research.answer import AnswerWriter

        counter = self._rooms.counter()
        return AnswerWriter(self.settings, counter=counter, with_pictures=with_pictures, recorder=self.recorder)

    def answer(
        self, context: ResearchContext, *, on_piece: Callable[[str], object] | None = None, with_pictures: bool = False
    ) -> CheckedAnswer:
        """An answer that a model writes from what `ask` gave, each sentence checked. `on_piece` gets it meanwhile. What
        goes wrong with the model is told in the answer."""
        with self.writer(with_pictures=with_pictures) as writer:
            return self.written_by(writer, context, on_piece)

    def written_by(
        self, writer: AnswerWriter, context: ResearchContext, on_piece: Callable[[str], object] | None = None
    ) -> CheckedAnswer:
        """The same by a writer that is kept. A model elsewhere is sent nothing that the policy does not permit."""
        return writer.write(self._sendable(context), on_piece)

    def keep_answer(self, context: ResearchContext, answer: CheckedAnswer, *, tenant: str = "") -> None:
        """Keep what a model wrote with the turn of the session that it answers; without a session there is none."""
        self._sessions().keep_answer(context, self._tenant(tenant), answer.written.text, answer.written.model)

    def prompt(self, context: ResearchContext, *, with_pictures: bool = False) -> Prompt:
        """What a model would get for a context, exactly: also where none is named yet. Nothing is sent."""
        from research.answer import prompt_for

        sent = self._sendable(context)
        return prompt_for(sent, self.settings, self._rooms.counter(), with_pictures=with_pictures)

    def _sendable(self, context: ResearchContext) -> ResearchContext:
        """A context as the model that the settings name may get it."""
        from research.answer import LOCAL

        return context if self.settings.model == LOCAL else self.access.without_unsendable(context)
