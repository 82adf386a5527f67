"""An answer that a model writes from the sources of a context: passed on while it is written, and kept whatever
happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from research.answer.prompt import Prompt, Window, fit_prompt
from research.context import TokenCounter
from research.errors import ContextTooLongError, ModelError
from research.llm import LENGTH, REPETITION, ChatModel, Picture, Reply, Usage
from research.models import ResearchContext, SourceDocument

MOST_PICTURES = 3

_MOST_PICTURE = 1 << 23  # bytes
_PICTURE_KINDS = ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n", "image/png"))
_REFITS = 3
_LITTLE = 0.6  # of what we count; a server that counts less has probably cut the prompt
_INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """What a model wrote. With `finished` False it is not all of it, and `problem` says why."""

    text: str
    finished: bool
    model: str
    host: str  # who wrote it
    finish_reason: str = ""
    usage: Usage | None = None
    first_token_seconds: float | None = None  # None: nothing came
    seconds: float = 0.0
    problem: str = ""
    hint: str = ""
    code: str = ""  # of the problem: one of a ModelError's, "length", "repetition", "empty", "interrupted", …
    sources: tuple[int, ...] = ()  # the numbers of those the model was given
    shortened: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()  # of those it was not given, because they did not fit
    notes: tuple[str, ...] = ()

    @property
    def interrupted(self) -> bool:
        return self.code == _INTERRUPTED

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def write_answer(
    client: ChatModel,
    context: ResearchContext,
    *,
    on_piece: Callable[[str], object] | None = None,
    max_answer_tokens: int = 0,
    with_pictures: bool = False,
    counter: TokenCounter | None = None,
) -> WrittenAnswer:
    """The answer to the question of a context. `on_piece` gets each piece of text as it comes.

    Whatever goes wrong with the model is told in the result, with what was written so far; Ctrl-C likewise, which ends
    the answer and is not raised. Raises NothingFoundError for a context without sources.
    """
    return _Writing(
        client,
        context.sources,
        context.asked,
        window=Window(client.window, max_answer_tokens or client.max_answer_tokens),
        counter=counter or TokenCounter(),
        pictures=page_pictures(context.sources) if with_pictures else (),
        on_piece=on_piece or (lambda piece: None),
    ).run()


def page_pictures(sources: Sequence[SourceDocument], most: int = MOST_PICTURES) -> tuple[tuple[int, Picture], ...]:
    """The pictures of the first pages that have one, each with its source's number."""
    found = ((number, _picture(source)) for number, source in enumerate(sources, start=1))
    return tuple((number, picture) for number, picture in found if picture is not None)[:most]


def _picture(source: SourceDocument) -> Picture | None:
    try:
        with Path(source.image_path or "").open("rb") as file:
            data = file.read(_MOST_PICTURE + 1)
    except OSError:  # it has none, or none any more
        return None
    kind = next((kind for begin, kind in _PICTURE_KINDS if data.startswith(begin)), "")
    return Picture(data, kind) if kind and len(data) <= _MOST_PICTURE else None


@dataclass(slots=True, eq=False)
class _Writing:
    """One answer on its way."""

    client: ChatModel
    sources: Sequence[SourceDocument]
    question: str
    window: Window
    counter: TokenCounter
    pictures: tuple[tuple[int, Picture], ...]
    on_piece: Callable[[str], object]
    written: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)
    first: float | None = None
    prompt: Prompt | None = None
    reply: Reply | None = None

    def run(self) -> WrittenAnswer:
        try:
            for attempt in range(_REFITS):
                self.prompt = fit_prompt(
                    self.question, self.sources, self.window, counter=self.counter, pictures=self.pictures
                )
                try:
                    self._write(self.prompt)
                    break
                except ContextTooLongError as error:
                    if self.written or attempt + 1 == _REFITS:
                        raise
                    self.window = _smaller(self.window, self.prompt, error)
        except KeyboardInterrupt:
            return self._result("it was interrupted", code=_INTERRUPTED)
        except ModelError as error:
            return self._result(error.message, hint=error.hint, code=error.code)
        finally:
            if self.reply is not None:
                self.reply.close()
        return self._ended()

    def _write(self, prompt: Prompt) -> None:
        self.reply = self.client.reply(prompt.messages, self.window.max_answer_tokens)
        for piece in self.reply:
            if self.first is None:
                self.first = time.perf_counter() - self.started
            self.written.append(piece)
            self.on_piece(piece)

    def _ended(self) -> WrittenAnswer:
        """The model says that it is through; whether it really is."""
        reason = self.reply.finish_reason if self.reply else ""
        most = self.window.max_answer_tokens
        if reason == LENGTH and not self.written and self.reply and self.reply.thought:
            problem = f"the model used up its {most:,} tokens by thinking, and wrote nothing"
            return self._result(problem, hint="raise max_answer_tokens", code=LENGTH)
        if not "".join(self.written).strip():
            return self._result("the model wrote nothing", code="empty")
        if reason == LENGTH:
            return self._result(f"it was cut at {most:,} tokens", hint="raise max_answer_tokens", code=LENGTH)
        if reason == REPETITION:
            return self._result("the model repeated itself, and was stopped", code=REPETITION)
        if reason in {"content_filter", "tool_calls", "function_call"}:
            return self._result(f"the server ended it ({reason})", code=reason)
        return self._result()

    def _result(self, problem: str = "", *, hint: str = "", code: str = "") -> WrittenAnswer:
        reply, prompt = self.reply, self.prompt
        written = WrittenAnswer(
            text="".join(self.written),
            finished=not problem,
            model=self.client.model,
            host=self.client.host,
            finish_reason=reply.finish_reason if reply else "",
            usage=reply.usage if reply else None,
            first_token_seconds=self.first,
            seconds=time.perf_counter() - self.started,
            problem=problem,
            hint=hint,
            code=code,
        )
        if prompt is None:
            return written
        _log(written)
        notes = tuple(note for note in (prompt.note, self._cut_prompt(written.usage, prompt)) if note)
        return replace(written, sources=prompt.sources, shortened=prompt.shortened, dropped=prompt.dropped, notes=notes)

    def _cut_prompt(self, usage: Usage | None, prompt: Prompt) -> str:
        """Some servers cut a prompt that is too long for them, and say nothing."""
        if usage is None or not 0 < usage.prompt_tokens < prompt.tokens * _LITTLE or self.pictures:
            return ""
        return (
            f"{self.client.host} counted {usage.prompt_tokens:,} of about {prompt.tokens:,} tokens: it may have cut"
            " the prompt; give it a larger window, or set model_context to the one it has"
        )


def _log(answer: WrittenAnswer) -> None:
    """Who wrote, how much and how long; not a word of it."""
    from research.observe import logger_of

    tokens = answer.usage.completion_tokens if answer.usage else 0
    size = f"{len(answer.text)} characters, {tokens} tokens, {answer.seconds:.1f} s"
    logger_of("model").info("%s at %s: %s, %s", answer.model, answer.host, size, answer.code or "finished")


def _smaller(window: Window, prompt: Prompt, error: ContextTooLongError) -> Window:
    """The window that the server tells, and its way of counting; half of what was sent, where it tells nothing."""
    if error.prompt_tokens:
        margin = max(window.margin, 1.05 * error.prompt_tokens / prompt.tokens)
    else:  # it counts more than the margin allows for, if it was told to fit
        margin = window.margin * (1.3 if window.tokens else 1.0)
    most = window.max_answer_tokens
    refused = Window(0, most, margin).estimate(prompt.tokens) + most
    known = error.window or window.tokens or prompt.estimate // 2 + most
    return Window(min(known, refused - 1), most, margin)
