"""Service: one warm index and all that a server does with it, whatever door a request came through.

Routes, the web page and the tools of agents call these methods; none of them opens an index, a model or a thread of its
own. Questions take turns: so many are in work at once, so many wait, and the rest are told to come again. So does what
a model writes, apart from them: a model is slow, and whoever waits for one keeps nobody from searching.

Work runs in threads, of which there are as many as places: more would only take the cores from each other. A question
that takes too long is answered with a time-out; its place is free again when its thread is through, not before, so
that a hundred hopeless questions never run at once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from research.encoders import usable_cores
from research.errors import ProblemError
from research.parallel import Call, Workers
from research.service.problems import Problem, refused

if TYPE_CHECKING:
    from research.answer import AnswerWriter, CheckedAnswer
    from research.conversation import TurnMaker
    from research.governance import Principal
    from research.index import Index
    from research.models import ResearchContext, SearchResults
    from research.observe import Recorder
    from research.records import DocumentInfo
    from research.request import AskRequest

T = TypeVar("T")

_WRITING = 4  # answers that a model writes at once; its server has turns of its own
_SPARE_SECONDS = 30.0  # beyond all that a model may take by its own clock


class Service:
    """Made where the event loop runs, or before; used from it alone, but for `index`."""

    def __init__(
        self,
        index: Index,
        options: ServeOptions | None = None,
        *,
        recorder: Recorder | None = None,
        maker: TurnMaker | None = None,
    ) -> None:
        self.index = index
        self._makers = [maker] if maker is not None else []  # one at most, for all views of this service
        self.options = options or ServeOptions()
        self.recorder = recorder
        self.stopping = asyncio.Event()  # streams end, nothing new begins
        self.when_started: list[Callable[[], object]] = []
        self.when_stopping: list[Callable[[], object]] = []  # called with it, and do not wait
        self.when_closing: list[Callable[[], Awaitable[object]]] = []  # what has to be waited for, a moment, at the end
        limits = self.options.limits
        self.turns = Turnstile(limits)
        self.looking = Turnstile(limits)  # pages, lists, pictures: short, and never behind a queue of questions
        self._writing = Turnstile(Limits(questions=_WRITING, waiting=limits.waiting, wait_seconds=limits.wait_seconds))
        self._writers: list[AnswerWriter] = []  # one at most, for all views of this service
        self._opening = threading.Lock()
        self._warming: Call[None] | None = None

    def acting_as(self, principal: Principal) -> Service:
        """The same service, whose index is seen as this principal may see it. All else is shared."""
        view = copy(self)
        view.index = self.index.acting_as(principal)
        return view

    @property
    def turn_maker(self) -> TurnMaker:
        """What builds the messages of a turn for whom the index acts."""
        with self._opening:
            if not self._makers:
                from research.conversation import TurnMaker

                self._makers.append(TurnMaker(self.index))
        who = self.index.principal
        return self._makers[0] if who is None else self._makers[0].acting_as(who)

    @property
    def model(self) -> str:
        """The name of the model that writes answers; empty if there is none."""
        return self.index.settings.model

    def warm_up(self) -> None:
        """Begin to load what the first question would wait for. Questions wait until that is done: they would only load
        the same once more. What goes wrong here is told by the request that meets it."""
        self._warming = Workers("ctx-warm-up").start(self._warm_up)

    async def ask(self, request: AskRequest) -> ResearchContext:
        """`Index.ask` with the places on the pages, in its turn."""
        return await self.asked(lambda index: index.ask(request, highlights=True))

    async def search(self, request: AskRequest) -> SearchResults:
        return await self.asked(lambda index: index.search(request, highlights=True))

    async def write(self, context: ResearchContext, on_piece: Callable[[str], object] | None = None) -> CheckedAnswer:
        """What the configured model writes from a context, checked. `on_piece` is called in another thread; it ends the
        answer by raising KeyboardInterrupt, as Ctrl-C would."""
        seconds = self.index.settings.model_timeout * 5 + _SPARE_SECONDS
        made = await self._writing.run(lambda: self.index.written_by(self._answer_writer(), context, on_piece), seconds)
        if context.turn:
            await self.look(lambda index: index.keep_answer(context, made))
        return made

    async def look(self, work: Callable[[Index], T]) -> T:
        """Something short about the index: a page, a list, a picture."""
        return await self.looking.run(partial(self._present, partial(work, self.index)))

    async def asked(self, work: Callable[[Index], T]) -> T:
        """Something that is a question to the index, though not `ask` or `search`."""
        return await self.turns.run(partial(self._question, partial(work, self.index)))

    async def anyway(self, work: Callable[[Index], T], *, question: bool) -> T:
        """Also where there is no index yet: something may be told before any document is added."""
        asked = partial(work, self.index)
        return await (self.turns.run(partial(self._warmed, asked)) if question else self.looking.run(asked))

    def begin_stop(self) -> None:
        if not self.stopping.is_set():
            self.stopping.set()
            for stop in self.when_stopping:
                stop()

    async def close(self) -> None:
        self.begin_stop()
        for close in self.when_closing:
            await close()
        for turns in (self.turns, self.looking, self._writing):
            turns.close()
        with self._opening:
            for writer in self._writers:
                writer.close()
        self.index.close(collections=False)

    def _warm_up(self) -> None:
        try:
            if self.index.exists and self.index.documents.totals()[1]:
                self.index.prepare()
                self.index.search("warm up", num_results=1)
        except Exception as error:  # noqa: BLE001  a damaged index is told to whoever asks it
            from research.observe import log_failure

            log_failure("service", "warming up", error)

    def _question(self, work: Callable[[], T]) -> T:
        return self._warmed(partial(self._present, work))

    def _warmed(self, work: Callable[[], T]) -> T:
        if self._warming is not None:
            self._warming.wait()
        return work()

    def _present(self, work: Callable[[], T]) -> T:
        """An index that was removed is gone, though its open file would go on answering."""
        if not self.index.exists:
            raise self.index.nothing_found()
        return work()

    def _answer_writer(self) -> AnswerWriter:
        with self._opening:
            if not self._writers:
                self._writers.append(self.index.writer())
            return self._writers[0]


def documents_with(index: Index, words: str, tags: Sequence[str]) -> list[tuple[DocumentInfo, list[str]]]:
    """Find the documents, with their tags, whose name, title or id has all the words and that have all the tags; none
    of an index that is not there yet."""
    if not index.exists:
        return []
    tagged: dict[str, list[str]] = {}
    for tag, documents in index.documents.all_tags().items():
        for info in documents:
            tagged.setdefault(info.doc_id, []).append(tag)
    wanted, needed = words.casefold().split(), {tag.casefold() for tag in tags}

    def fits(info: DocumentInfo) -> bool:
        names = f"{info.filename} {info.title} {info.doc_id}".casefold()
        return all(word in names for word in wanted) and needed <= {
            tag.casefold() for tag in tagged.get(info.doc_id, ())
        }

    return [(info, tagged.get(info.doc_id, [])) for info in index.documents.list() if fits(info)]


_KIB, _MIB = 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What is done and kept at most; beyond it a request is refused with a status that says so."""

    questions: int = field(default_factory=lambda: max(2, usable_cores()))  # in work at once: more would only wait
    waiting: int = 64  # questions that wait for their turn
    wait_seconds: float = 30.0  # and how long
    question_seconds: float = 60.0  # from its turn to its answer; one that a model writes has the model's own time
    body_bytes: int = 1 * _MIB  # of a request that is no upload
    body_seconds: float = 30.0  # for all of such a body
    idle_body_seconds: float = 20.0  # for the next piece of any body
    upload_bytes: int = 512 * _MIB  # of one request
    upload_files: int = 100
    upload_seconds: float = 3600.0
    header_bytes: int = 32 * _KIB
    header_seconds: float = 10.0  # from the connection to the end of the headers
    connections: int = 512
    jobs: int = 20  # ingests that wait for their turn
    stop_seconds: float = 10.0  # from the signal to the end


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line says of a server. It listens on this machine's loopback or a socket file, never wider."""

    port: int = 0  # 0: any free one
    socket: Path | None = None  # instead of a port
    token_file: Path | None = None  # None: the default in the user's state folder
    token_needed: bool = True
    allow_ingest: bool = False
    roots: tuple[Path, ...] = ()  # folders that may be ingested
    hosts: tuple[str, ...] = ()  # names beside those of loopback: of a proxy that stands before it
    cors_origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


class Turnstile:
    """Lets questions through in the order in which they came. Of one event loop."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._places = asyncio.Semaphore(limits.questions)
        self._workers = Workers("ctx-question", limits.questions)  # what hangs keeps its place
        self._closed = False
        self.waiting = 0
        self.working = 0

    async def run(self, work: Callable[[], T], seconds: float | None = None) -> T:
        """What `work` gives, in a thread of its own turn. Raises ProblemError if there is no room, or no time."""
        if self.waiting >= self._limits.waiting and self._places.locked():
            raise self._come_again("too many questions wait already")
        self.waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                await self._places.acquire()
        except TimeoutError:
            raise self._come_again("no question before this one has ended in time") from None
        finally:
            self.waiting -= 1
        return await self._in_thread(work, self._limits.question_seconds if seconds is None else seconds)

    def close(self) -> None:
        """Nothing more begins. What runs is not waited for: a thread cannot be stopped."""
        self._closed = True

    async def _in_thread(self, work: Callable[[], T], seconds: float) -> T:
        self.working += 1
        if self._closed:
            self._leave()
            raise refused(Problem(503, "The server is stopping"))
        loop = asyncio.get_running_loop()
        call = self._workers.start(work)
        call.when_done(lambda: loop.call_soon_threadsafe(self._leave))
        outcome = await call.outcome(seconds)
        if outcome.late:
            raise refused(
                Problem(
                    504,
                    "The question took too long",
                    f"it had no answer after {seconds:g} seconds",
                    "ask for fewer results, or restrict it to some documents",
                )
            )
        return outcome.result()

    def _leave(self) -> None:
        self.working -= 1
        self._places.release()

    def _come_again(self, why: str) -> ProblemError:
        seconds = ceil(1 + self.waiting / (2 * self._limits.questions))
        headers = {"Retry-After": str(seconds)}
        return refused(
            Problem(429, "Too many questions at once", why, f"try again in {seconds} seconds", headers=headers)
        )
