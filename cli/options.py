"""Options that several commands share, and what they amount to: settings, the index, the question.

Options that set a setting have no bounds of their own: `load_settings` holds flags, variables and files to the same.

What the shell offers for a document or a tag: their names, read from the index that the command would use.

Silent whatever happens: somebody is in the middle of typing. Names are other people's: those that hold quotes, dollars,
backslashes or anything that cannot be seen are not offered, because a shell may evaluate what it is given; nor are
those that begin with a dash, because ctx would take them for options.

The options of `ctx ask` for a model of the user's own, and whether it is to be asked at all.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import say
from research.errors import CtxError, NothingFoundError, UsageError
from research.files import index_folder
from research.settings import Mode, Settings, load_settings, misspelt_variables
from research.text import one_line

if TYPE_CHECKING:
    from research.governance import Principal
    from research.index import Index
    from research.models import Coverage
    from research.parameters import Parameter as Described
    from research.request import AskRequest
    from research.settings import Settings

_RISKY = re.compile(r"[\"'\\$`!]")
_TO_ESCAPE = re.compile(r"([^\w@%+=:,./-])")


class _Word(str):
    """A word as bash needs it. Typer would drop it, for it does not begin with what was typed: it is escaped."""

    __slots__ = ()

    def startswith(self, *_: Any) -> bool:
        return True


def complete_document(ctx: Any, incomplete: str) -> list[str]:
    return _offered(ctx, incomplete, "document")


def complete_tag(ctx: Any, incomplete: str) -> list[str]:
    return _offered(ctx, incomplete, "tag")


def _offered(ctx: Any, incomplete: str, kind: str) -> list[str]:
    try:
        names = sorted(set(_known(ctx, kind)))
    except Exception:  # noqa: BLE001  no index, a damaged one, wrong settings: the next command tells, not this
        return []
    fitting = [name for name in names if name.startswith(incomplete) and _harmless(name)]
    return [_Word(_TO_ESCAPE.sub(r"\\\1", name)) if _in_bare_bash() else name for name in fitting]


def _known(ctx: Any, kind: str) -> list[str]:

    above = ctx.parent.params.get("index") if ctx.parent is not None else None
    with index_for(Common(ctx.meta.get("ctx.index") or above, quiet=True)) as index:
        return (
            [document.filename for document in index.documents.list()]
            if kind == "document"
            else list(index.documents.all_tags())
        )


def _harmless(name: str) -> bool:
    return one_line(name) == name and not name.startswith("-") and not _RISKY.search(name)


def _in_bare_bash() -> bool:
    """Bash takes a word as it is given; zsh and fish escape it, and so does a quote that is open."""
    if os.environ.get("_CTX_COMPLETE") != "complete_bash":
        return False
    words = os.environ.get("COMP_WORDS", "").split("\n")
    return not words[-1].startswith(("'", '"'))


AnswerOption = Annotated[
    bool | None,
    typer.Option(
        "--answer/--no-answer",
        help="Let your model write an answer from the sources, each sentence checked. Default: if one is named.",
        show_default=False,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Your model, as its server calls it; local: the one of the extra."),
]
ModelUrlOption = Annotated[
    str | None,
    typer.Option("--model-url", metavar="URL", help="Where it is: any OpenAI-compatible address."),
]
AnswerTokensOption = Annotated[
    int | None,
    typer.Option("--max-answer-tokens", metavar="N", help="How much it may write. Default: 600."),
]
ShowPromptOption = Annotated[
    bool, typer.Option("--show-prompt", help="Print what the model would get, and send nothing.")
]
ImageOption = Annotated[
    bool, typer.Option("--image", help="Send pictures of the first pages, too, to a model that takes them.")
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a model. `answer` None: what the settings say."""

    answer: bool | None = None
    show_prompt: bool = False
    pictures: bool = False
    alone: str = ""  # an option that has no room for an answer

    def check(self, model: str | None) -> None:
        """Raise UsageError for options that exclude each other; `model` is the one of this call."""
        asked = next(
            (name for name, given in (("--show-prompt", self.show_prompt), ("--answer", self.answer)) if given),
            "--model" if model and self.answer is None else "",
        )
        if self.alone and asked:
            raise UsageError(
                f"{self.alone} has no written answers, and {asked} asks for one", hint="leave one of them out"
            )
        if self.answer is False and self.show_prompt:
            raise UsageError("--no-answer and --show-prompt exclude each other", hint="leave one of them out")

    def written(self, settings: Settings) -> bool:
        """Whether a model is asked: by the flag, or because the user has named one."""
        if self.show_prompt or self.alone:
            return False
        return bool(settings.model) if self.answer is None else self.answer


class LogLevel(StrEnum):
    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


IndexOption = Annotated[
    str | None,
    typer.Option("--index", metavar="DIR", help="The index folder (also CTX_INDEX). Default: the nearest .ctx upward."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]
LogFileOption = Annotated[
    str | None,
    typer.Option("--log-file", metavar="FILE", help="Add to this log, readable by you alone (also CTX_LOG)."),
]
LogLevelOption = Annotated[
    LogLevel | None,
    typer.Option("--log-level", help="How much is logged (also CTX_LOG_LEVEL). Default: info.", show_default=False),
]
AsOption = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME[@TENANT]", help="Try what somebody else may see, under your policy.", show_default=False
    ),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show a traceback when something goes wrong.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document.")]
ModeOption = Annotated[
    Mode | None, typer.Option("--mode", help="Which legs answer. Default: hybrid.", show_default=False)
]
RerankerOption = Annotated[
    str | None,
    typer.Option("--reranker", metavar="MODEL|URL", help="Let this model order the first pages found; off: none."),
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Show how every score arose.")]
PassagesOption = Annotated[
    bool, typer.Option("--passages", help="Nothing but the passages that fit the question, marked […] between.")
]
FullOption = Annotated[
    bool, typer.Option("--full", help="Whole pages, until the budget is full; on a terminal through a pager.")
]
WaitOption = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="[SECONDS]",
        help="Wait for another writer to end, for ever or this long.",
        show_default=False,
    ),
]
QuestionArgument = Annotated[
    list[str], typer.Argument(metavar="QUESTION...", help="The question, or - to read it from stdin.")
]


MaybeQuestionArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="QUESTION...", help="The question, or - to read it from stdin.", show_default=False),
]
BatchOption = Annotated[
    str | None,
    typer.Option("--batch", metavar="FILE|-", help="Answer a question a line, with a JSON document a line."),
]


_KEPT = "ctx."  # before the names of options in Click's own store

ACTING = frozenset({
    "ask", "chat", "context", "graph", "list", "open", "outline", "package", "premortem", "recall", "search",
    "sessions", "show", "turn",
})  # fmt: skip
"""Commands that show what is in the index, and can show it as somebody else would see it."""

_acting: ContextVar[Principal | None] = ContextVar("ctx_acting", default=None)


@dataclass(frozen=True, slots=True)
class Common:
    """What may stand before or after the command's name."""

    index: str | None = None
    quiet: bool = False
    as_json: bool = False


def common(ctx: typer.Context) -> Common:
    """The options after the command's name over those before it. Every command asks once, so this is also where a
    variable is told that is probably misspelt."""
    before = ctx.obj if isinstance(ctx.obj, Common) else Common()
    index, quiet, as_json = (ctx.meta.get(f"{_KEPT}{name}") for name in ("index", "quiet", "as_json"))
    given = Common(index if index is not None else before.index, bool(quiet) or before.quiet, bool(as_json))
    _acting.set(_principal(ctx.meta.get(f"{_KEPT}acting")))
    for name, meant in ({} if given.quiet else misspelt_variables()).items():
        say(f"ctx: note: {name} is no setting; did you mean {meant}?")
    return given


def everywhere(
    *,
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
    log_file: LogFileOption = None,
    log_level: LogLevelOption = None,
    acting: AsOption = None,
) -> None:
    """Options that every command has without naming them. `common` gives the values of the first three; `cli.app` and
    `cli.log` read the others before anything is parsed. `--as` is for those of `ACTING`."""


def keep(ctx: Any, parameter: Any, value: Any) -> Any:
    """Put an option of `everywhere` where `common` finds it."""
    ctx.meta[f"{_KEPT}{parameter.name}"] = value
    return value


def request_options(door: str) -> Callable[..., None]:
    """A function whose parameters are the options of a command that asks: what `DOORS` has for it. None of them reaches
    the command itself: `asked_for` gives what was typed."""
    from inspect import Parameter, Signature

    from research.request import parameters_of

    def typed(**_: Any) -> None: ...

    known = {each.name: each for each in parameters_of(door)}
    typed.__annotations__ = {name: _hint(each) for name, each in known.items()}
    defaults = {name: False if each.kind == "boolean" else None for name, each in known.items()}
    signature = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=hint)
        for name, hint in typed.__annotations__.items()
    ]
    typed.__signature__ = Signature(signature)  # type: ignore[attr-defined]
    return typed


def _hint(each: Described) -> Any:
    if each.kind == "boolean":
        return Annotated[bool, typer.Option(each.spelling, help=each.words)]
    names = {"DOC": complete_document, "TAG": complete_tag}
    several = each.kind == "texts" and not each.separator
    more = " Repeatable." if several else f" Of {', '.join(each.choices)}." if each.separator else ""
    option = typer.Option(
        each.spelling,
        metavar=f"[{'|'.join(each.choices)}]" if each.metavar == "MODE" else each.metavar,
        help=f"{each.words}{more}",
        show_default=False,
        autocompletion=names.get(
            each.metavar, lambda incomplete: [name for name in each.choices if name.startswith(incomplete)]
        ),
    )
    return Annotated[(list[str] if several else str) | None, option]


def asked_for(ctx: typer.Context, door: str, question: str) -> AskRequest:
    """The question with what the options of `request_options` say."""
    from research.request import parameters_of, read_request

    typed = {each.name: ctx.meta.get(f"{_KEPT}{each.name}") for each in parameters_of(door)}
    return read_request(door, {name: value for name, value in typed.items() if value != ()}, question=question)


def settings_for(given: Common, **flags: Any) -> Settings:
    """All layers of settings under the flags of this call."""
    if given.index is not None and not given.index.strip():
        raise UsageError("--index needs a folder", hint="ctx status tells which index is used without it")
    return load_settings({"index": given.index, **flags})


def index_of(settings: Settings) -> Index:
    """The index these settings mean, whether it exists yet or not. Nothing is opened."""
    from research.index import Index

    root = index_folder(settings)
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file, not an index folder", hint="ctx status tells which index is used")
    index = Index(root, settings, relative_to=os.getcwd())  # noqa: PTH109  as files were stored
    principal = _acting.get()
    return index if principal is None else index.acting_as(principal)


def _principal(named: str | None) -> Principal | None:
    """Who `--as` names; nobody's tenant is the owner's."""
    if named is None:
        return None
    name, at, tenant = named.partition("@")
    if not name.strip() or (at and not tenant.strip()):
        raise UsageError("--as needs a name, as a token has it", hint="--as anna, or with a tenant: --as anna@lab")
    from research.governance import Principal

    return Principal(name.strip(), tenant.strip() or name.strip())


def index_for(given: Common) -> Index:
    """The index of a call, which is told why nothing of it may be seen, if a policy cannot be used."""
    index = index_of(settings_for(given))
    if not given.quiet and (problem := index.access.problem):
        say(f"ctx: note: nothing is released: {problem}")
    return index


# Collections are let go with the process: to take a large one apart takes longer than to search it.
_held: list[Index] = []


def read_question(given: Sequence[str], *, quiet: bool = False) -> str:
    """The words of the command line joined, or stdin for a single `-`. Bytes that are no text are replaced."""
    if not given:
        raise UsageError("missing argument 'QUESTION...'", hint='ask something: ctx ask "What caused the crisis?"')
    if list(given) == ["-"]:
        if sys.stdin.isatty() and not quiet:
            say("ctx: type the question, then Ctrl-D")
        stream = getattr(sys.stdin, "buffer", None)
        text = stream.read().decode("utf-8", "replace") if stream is not None else sys.stdin.read()
    else:
        # Arguments that are no valid text arrive as lone surrogates, which no database or tokenizer takes.
        text = " ".join(given).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not text.strip():
        raise UsageError("the question is empty", hint='ask something: ctx ask "What caused the crisis?"')
    return text.strip()


@contextmanager
def opened(settings: Settings) -> Iterator[Index]:
    """The index of these settings, to be asked: its collections stay open until the process ends."""
    index = index_of(settings)
    _held.append(index)
    try:
        yield index
    finally:
        index.close(collections=False)


def close_held() -> None:
    """Close the collections that `opened` has left open, where the process goes on after the command."""
    while _held:
        _held.pop().close()


def tell(published: bool, given: Common) -> None:
    """Say why a question took so long, if it had the collections to publish first."""
    if published and not given.quiet:
        say("ctx: the collections were behind and have been brought up to date")


def make_ready(index: Index, given: Common, types: Sequence[str] | None = None) -> None:
    """Bring documents up to date before they are asked. Where sources are named, an index without documents is no
    error: the others answer."""
    if types is None:
        tell(index.prepare(), given)
    elif "documents" in types and index.exists:
        with suppress(NothingFoundError):
            tell(index.prepare(), given)


def check_legs(coverage: Coverage) -> None:
    """Raise if no leg could search at all: that is a failure, not an empty answer."""
    if coverage.legs and all(leg.status == "failed" for leg in coverage.legs):
        reasons = "; ".join(f"{leg.name}: {leg.reason}" for leg in coverage.legs)
        raise CtxError(f"the search failed: {reasons}", hint="check the index with: ctx doctor")


def notes_on(coverage: Coverage) -> list[str]:
    """What the answer could not see, a line each, with what to do about it."""
    failed: dict[str, list[str]] = {}
    for leg in coverage.legs:
        if leg.status == "failed":
            failed.setdefault(leg.reason, []).append(leg.name)
    notes = [
        f"the {' and '.join(names)} {'legs' if len(names) > 1 else 'leg'} failed ({reason}); the answer rests on the"
        " others; see: ctx doctor"
        for reason, names in failed.items()
    ]
    notes += coverage.notes
    for source in coverage.sources:
        if source.status == "down" and len(coverage.sources) > 1:
            notes.append(f"{source.name} could not be asked ({source.reason}); the others answer")
        elif source.status == "degraded" and source.name != "documents":
            notes.append(source.reason)
    if coverage.pages_without_vectors:
        notes.append(
            f"{coverage.pages_without_vectors} of {coverage.pages} pages are searched by their words only, until"
            " they are embedded; finish with: ctx ingest PATH"
        )
    if coverage.pages_without_visual:
        notes.append(
            f"{coverage.pages_without_visual} of {coverage.pages} pages have not been seen by the visual model;"
            " finish with: ctx ingest PATH"
        )
    return notes
