"""One call of a command: what it offers, its settings and its index, what it says, the question, and how it ends.

Ctrl-C and SIGTERM are alike: the first ends a run in good order, the second at once.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, NamedTuple, TypeVar

import typer

from cli.output import say, write_document, write_line
from research.errors import NothingFoundError, UsageError
from research.files import index_folder
from research.settings import Settings, load_settings
from research.text import one_line

if TYPE_CHECKING:
    from research.governance import Principal
    from research.index import Index
    from research.request import AskRequest, Parameter

Function = TypeVar("Function", bound=Callable[..., int])

_MOST_SHOWN = 20  # before a question
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Collections are let go with the process: to take a large one apart takes longer than to search it.
_held: list[Index] = []


class Verbs(NamedTuple):
    """A command with sub-commands, the first of which is meant where none is named."""

    help: str
    verbs: dict[str, Callable[..., int]]


class Offers(NamedTuple):
    """Which options a command has besides its parameters."""

    door: str = ""  # those of a question, by `research.request`
    acting: bool = False  # --as, for commands that show what is in the index
    without: tuple[str, ...] = ()  # of those that all commands have
    more: Mapping[str, Any] = MappingProxyType({})  # with their types; what was typed stands in `Call.typed`


class LogLevel(StrEnum):
    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


# What the shell offers for a document or a tag is silent whatever happens: somebody is in the middle of typing. Names
# are other people's: those that hold quotes, dollars, backslashes or what cannot be seen are not offered, because a
# shell may evaluate what it is given; nor are those that begin with a dash, because ctx would take them for options.
_RISKY = re.compile(r"[\"'\\$`!]")
_TO_ESCAPE = re.compile(r"([^\w@%+=:,./-])")


class _Word(str):
    """A word as bash needs it. Typer would drop it, for it does not begin with what was typed: it is escaped."""

    __slots__ = ()

    def startswith(self, *_: Any) -> bool:
        return True


def complete_document(ctx: Any, incomplete: str) -> list[str]:
    return _complete(ctx, incomplete, lambda index: [document.filename for document in index.documents.list()])


def complete_tag(ctx: Any, incomplete: str) -> list[str]:
    return _complete(ctx, incomplete, lambda index: index.documents.all_tags())


def _complete(ctx: Any, incomplete: str, names_of: Callable[[Any], Any]) -> list[str]:
    try:
        contexts = [ctx]
        while contexts[-1].parent is not None:
            contexts.append(contexts[-1].parent)
        folder = next((each.params["index"] for each in contexts if each.params.get("index")), None)
        with Call(folder, quiet=True).index() as index:
            names = sorted(set(names_of(index)))
    except Exception:  # noqa: BLE001  no index, a damaged one, wrong settings: the next command tells, not this
        return []
    fitting = [
        name
        for name in names
        if name.startswith(incomplete)
        and one_line(name) == name
        and not name.startswith("-")
        and not _RISKY.search(name)
    ]
    return [_Word(_TO_ESCAPE.sub(r"\\\1", name)) if _in_bare_bash() else name for name in fitting]


def _in_bare_bash() -> bool:
    """Bash takes a word as it is given; zsh and fish escape it, and so does a quote that is open."""
    if os.environ.get("_CTX_COMPLETE") != "complete_bash":
        return False
    words = os.environ.get("COMP_WORDS", "").split("\n")
    return not words[-1].startswith(("'", '"'))


def request_options(door: str) -> dict[str, Any]:
    """The options of a command that asks: what `research.request.DOORS` has for it, by name, with their types."""
    from research.request import parameters_of

    return {each.name: _request_option(each) for each in parameters_of(door)}


def _request_option(each: Parameter) -> Any:
    if each.kind == "boolean":
        return Annotated[bool, typer.Option(each.spelling, help=each.words)]
    several = each.kind == "texts" and not each.separator
    more = " Repeatable." if several else f" Of {', '.join(each.choices)}." if each.separator else ""
    known = {"DOC": complete_document, "TAG": complete_tag}
    option = typer.Option(
        each.spelling,
        metavar=f"[{'|'.join(each.choices)}]" if each.metavar == "MODE" else each.metavar,
        help=f"{each.words}{more}",
        show_default=False,
        autocompletion=known.get(
            each.metavar, lambda incomplete: [name for name in each.choices if name.startswith(incomplete)]
        ),
    )
    return Annotated[(list[str] if several else str) | None, option]


def offers(
    door: str = "", acting: bool = False, without: tuple[str, ...] = (), more: Mapping[str, Any] = Offers().more
) -> Callable[[Function], Function]:
    """Decorate a command with what it offers."""

    def mark(function: Function) -> Function:
        function.__dict__["offers"] = Offers(door, acting, without, more)
        return function

    return mark


@dataclass(frozen=True, slots=True)
class Call:
    """What holds for every command, and in `typed` the options that its decorator names."""

    folder: str | None = None
    quiet: bool = False
    as_json: bool = False
    acting: Principal | None = None
    typed: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, **flags: Any) -> Settings:
        """All layers of settings under the flags of this call."""
        if self.folder is not None and not self.folder.strip():
            raise UsageError("--index needs a folder", hint="ctx status tells which index is used without it")
        return load_settings({"index": self.folder, **flags})

    def index_of(self, settings: Settings) -> Index:
        """The index these settings mean, whether it exists yet or not. Nothing is opened."""
        from research.index import Index

        root = index_folder(settings)
        if root.exists() and not root.is_dir():
            raise UsageError(f"{root} is a file, not an index folder", hint="ctx status tells which index is used")
        index = Index(root, settings, relative_to=os.getcwd())  # noqa: PTH109  as files were stored
        return index if self.acting is None else index.acting_as(self.acting)

    def index(self) -> Index:
        """The index of this call. Says why nothing of it may be seen, if a policy cannot be used."""
        index = self.index_of(self.settings())
        if problem := index.access.problem:
            self.note(f"nothing is released: {problem}")
        return index

    @contextmanager
    def opened(self, settings: Settings) -> Iterator[Index]:
        """The index of these settings, to be asked: its collections stay open until the process ends."""
        index = self.index_of(settings)
        _held.append(index)
        try:
            yield index
        finally:
            index.close(collections=False)

    def prepare(self, index: Index, types: Sequence[str] | None = None) -> None:
        """Bring documents up to date before they are asked. Where sources are named, an index without documents is no
        error: the others answer."""
        if types is not None and not ("documents" in types and index.exists):
            return
        try:
            if index.prepare():
                self.say("the collections were behind and have been brought up to date")
        except NothingFoundError:
            if types is None:
                raise

    def request(self, door: str, question: str) -> AskRequest:
        """The question with what its options say."""
        from research.request import read_request

        typed = {name: value for name, value in self.typed.items() if value != ()}
        return read_request(door, typed, question=question)

    def say(self, message: str) -> None:
        if not self.quiet:
            say(f"ctx: {message}")

    def note(self, message: str) -> None:
        self.say(f"note: {message}")

    def show(self, schema: str, fields: Mapping[str, Any], lines: Iterable[Iterable[object]] = ()) -> None:
        """The result: one JSON document with --json, else lines of tab-separated fields."""
        if self.as_json:
            write_document(schema, fields)
        else:
            for line in lines:
                write_line(*line)

    def question(self, words: Sequence[str] | None) -> str:
        """The words of the command line joined, or stdin for a single `-`. Bytes that are no text are replaced."""
        if not words:
            raise UsageError("missing argument 'QUESTION...'", hint='ask something: ctx ask "What caused the crisis?"')
        text = self.stdin("type the question, then Ctrl-D") if list(words) == ["-"] else plain_words(" ".join(words))
        if not text.strip():
            raise UsageError("the question is empty", hint='ask something: ctx ask "What caused the crisis?"')
        return text.strip()

    def stdin(self, what_to_do: str) -> str:
        """All of stdin; a person at a terminal is told what to type."""
        if sys.stdin.isatty():
            self.say(what_to_do)
        stream = getattr(sys.stdin, "buffer", None)
        return stream.read().decode("utf-8", "replace") if stream is not None else sys.stdin.read()


def open_file(name: str, hint: str) -> AbstractContextManager[BinaryIO]:
    """A file to read, or stdin for `-`. Raises UsageError with the hint."""
    from pathlib import Path

    if name == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb")
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}", hint=hint) from error


def confirmed(question: str, items: Sequence[str]) -> bool:
    """Ask at a terminal whether these are to go."""
    for item in items[:_MOST_SHOWN]:
        say(f"  {item}")
    if len(items) > _MOST_SHOWN:
        say(f"  … and {len(items) - _MOST_SHOWN} more")
    return typer.confirm(question, err=True)


def plain_words(text: str) -> str:
    """Arguments that are no valid text arrive as lone surrogates, which no database or tokenizer takes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def principal_of(named: str | None) -> Principal | None:
    """Who `--as` names; nobody's tenant is the owner's."""
    if named is None:
        return None
    name, at, tenant = named.partition("@")
    if not name.strip() or (at and not tenant.strip()):
        raise UsageError("--as needs a name, as a token has it", hint="--as anna, or with a tenant: --as anna@lab")
    from research.governance import Principal

    return Principal(name.strip(), tenant.strip() or name.strip())


def close_held() -> None:
    """Close the collections that `opened` has left open, where the process goes on after the command."""
    while _held:
        _held.pop().close()


@contextmanager
def orderly_end() -> Iterator[None]:
    """Raise KeyboardInterrupt for the first signal and leave the second to the system's default."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def end(number: int, frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    for number in _SIGNALS:
        # A shell starts background jobs with SIGINT ignored, and that is to stay so.
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_signals() -> Iterator[None]:
    """Inside `orderly_end`: a signal that comes in this block waits for its end; the second is not held."""
    held: list[int] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def hold(number: int, frame: FrameType | None) -> None:
        held.append(number)
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)

    for number in _SIGNALS:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if held:
        raise KeyboardInterrupt
