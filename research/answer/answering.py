"""An answer from beginning to end: the model that the settings name writes it, and every sentence is checked.

with index.writer() as writer:
    answer = writer.write(index.ask("How long is parental leave?"))
    print(answer.written.text, [sentence.verdict for sentence in answer.sentences])

The model is the one that the settings name, with the call that the contract (seed 004) has:

    with open_model(settings) as client:
        for piece in client.reply(messages, max_tokens=600):
            ...

`await client.complete_with_context(query, context, system_message)` gives an object with `.content`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from research.addresses import EXAMPLE, parse_address
from research.answer.check import HEADING, SOURCE_LIST, CheckedSentence, check_answer
from research.answer.prompt import Prompt, Window, fit_prompt, messages_of
from research.answer.written import WrittenAnswer, page_pictures, write_answer
from research.context import CitedPages, TokenCounter, item_of
from research.errors import ModelError, UsageError
from research.llm import LOCAL, MOST_WINDOW, WINDOW, ChatModel, LocalChat, OpenAIChat, Patience
from research.models import ResearchContext, SourceDocument
from research.observe import NULL_RECORDER
from research.secret import MODEL_KEY, find_key
from research.settings import Settings
from research.units import Structure

if TYPE_CHECKING:
    from research.llm import ChatModel, Completion
    from research.observe import Recorder


class ModelClient(ChatModel):
    """A language model that is asked about a context."""

    async def complete_with_context(self, query: str, context: str, system_message: str = "") -> Completion:
        """Answer `query` from `context`, the `formatted_text` of a `ResearchContext`. Without a `system_message` the
        model is told what `prompts/system.txt` says."""
        return await asyncio.to_thread(self.complete, messages_of(query, context, system_message))


class OpenAIModel(OpenAIChat, ModelClient):
    """A model behind an OpenAI-compatible address."""


class LocalModel(LocalChat, ModelClient):
    """The small model that runs on this machine."""


def open_model(settings: Settings, environment: Mapping[str, str] | None = None) -> ModelClient:
    """Return the client for `model` at `model_url`; `local` needs no address. Nothing is contacted or started yet.

    Raise UsageError if no model is named, ModelUnavailableError if the packages of `local` are missing.
    """
    patience = Patience.of(settings.model_timeout)
    if not settings.model:
        raise UsageError(
            "no model is named", hint=f"ctx ask … --model local, or CTX_MODEL_URL={EXAMPLE} ctx ask … --model NAME"
        )
    window, most = settings.model_context, settings.max_answer_tokens
    if settings.model == LOCAL:
        return LocalModel(window=window, max_answer_tokens=most, patience=patience)
    if not settings.model_url:
        raise UsageError(
            f"the model {settings.model!r} is named, but not where it is",
            hint=f"CTX_MODEL_URL={EXAMPLE}, or --model local",
        )
    key = find_key(parse_address(settings.model_url).base, MODEL_KEY, environment)
    return OpenAIModel(
        settings.model_url, settings.model, key=key, patience=patience, window=window, max_answer_tokens=most
    )


NOT_ASKED = "not_asked"

_NO_CLAIMS = (HEADING, SOURCE_LIST)


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """What a model wrote, and what its sources say to each sentence."""

    written: WrittenAnswer
    sentences: tuple[CheckedSentence, ...] = ()

    @property
    def claims(self) -> tuple[CheckedSentence, ...]:
        """Without headings and lists of sources, which say nothing that a source could carry."""
        return tuple(each for each in self.sentences if each.verdict != "uncited" or each.reason not in _NO_CLAIMS)

    def to_dict(self) -> dict[str, Any]:
        return {**self.written.to_dict(), "sentences": [asdict(sentence) for sentence in self.sentences]}


class AnswerWriter:
    """Writes with one client. Raises UsageError if the settings name no model or not where it is; what is wrong with
    the model itself is told in its answers, for there are quotes to show all the same."""

    def __init__(
        self,
        settings: Settings,
        *,
        counter: TokenCounter | None = None,
        with_pictures: bool = False,
        recorder: Recorder = NULL_RECORDER,
    ) -> None:
        self._settings = settings
        self._counter = counter or TokenCounter()
        self._with_pictures = with_pictures
        self._recorder = recorder
        self._client: ChatModel | None = None
        self._problem: ModelError | None = None
        try:
            self._client = open_model(settings)
        except ModelError as error:  # the packages of the local one are missing
            self._problem = error

    def prepare(self) -> None:
        """Begin with what takes time, beside the search that comes first. Nobody is contacted."""
        if self._client is not None:
            self._client.prepare()

    def write(self, context: ResearchContext, on_piece: Callable[[str], object] | None = None) -> CheckedAnswer:
        """The answer to the question of a context, checked; `on_piece` gets it while it is written. Where nothing that
        was found seems to answer, the model is not asked to."""
        if self._client is None:
            problem = self._problem or ModelError("there is no model")
            return CheckedAnswer(self._unwritten(problem.message, problem.hint, problem.code))
        if not context.sources or (context.confidence is not None and context.confidence.level == "none"):
            why = "nothing that was found seems to answer this, so the model was not asked"
            return CheckedAnswer(self._unwritten(why, "", NOT_ASKED))
        with self._recorder.time("answer"):
            with self._recorder.time("write"):
                written = write_answer(
                    self._client, context, on_piece=on_piece, counter=self._counter, with_pictures=self._with_pictures
                )
            return checked(written, context)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _unwritten(self, problem: str, hint: str, code: str) -> WrittenAnswer:
        host = self._client.host if self._client else ""
        return WrittenAnswer("", False, self._settings.model, host, problem=problem, hint=hint, code=code)


def prompt_for(
    context: ResearchContext, settings: Settings, counter: TokenCounter, *, with_pictures: bool = False
) -> Prompt:
    """What the model of these settings would get, exactly; what any would, if they name none. Nothing is sent."""
    tokens = settings.model_context
    if settings.model == LOCAL:
        tokens = min(tokens or WINDOW, MOST_WINDOW)
    pictures = page_pictures(context.sources) if with_pictures else ()
    window = Window(tokens, settings.max_answer_tokens)
    return fit_prompt(context.asked, context.sources, window, counter=counter, pictures=pictures)


def checked(answer: WrittenAnswer, context: ResearchContext) -> CheckedAnswer:
    """An answer beside the sources that the model was given: one it did not get cannot carry what it says."""
    given = {number: source for number, source in context.get_citation_map().items() if number in answer.sources}
    texts = {number: source.structure or Structure(source.markdown_content) for number, source in given.items()}
    headers = {number: _header(source, number) for number, source in given.items()}
    if not answer.text.strip():
        return CheckedAnswer(answer)
    sentences = check_answer(answer.text, texts, question=context.asked, headers=headers)
    return CheckedAnswer(answer, tuple(sentences))


def _header(source: SourceDocument, number: int) -> str:
    if source.kind == "page":
        return CitedPages().header(item_of(source), number)
    from research.context import header

    return header(source.kind, source.name, number)
