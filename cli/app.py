"""The app: the table of commands, each loaded when it is called, and the one place where errors become words.

A command is a function `(call: Call, …) -> int` whose docstring is its help: text, then `Examples:`. A command with
verbs is a `Verbs` of such functions.
"""

from __future__ import annotations

import os
import re
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import partial
from importlib import import_module
from inspect import Parameter, Signature, cleandoc, signature
from itertools import takewhile
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from cli.call import Call, Offers, Verbs, principal_of, request_options
from cli.options import (
    AsOption,
    DebugOption,
    IndexOption,
    JsonOption,
    LogFileOption,
    LogLevelOption,
    QuietOption,
)
from cli.output import complain, say, version_line, write
from research.errors import CtxError, StoppedError, UsageError
from research.settings import misspelt_variables

if TYPE_CHECKING:
    from cli.log import Log

# Where each command is and its short help, so that `ctx --help` and `ctx ask` need not load every command.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Ask": {
        "ask": ("ask.ask", "Quote what answers a question, cite its pages, within a budget."),
        "chat": ("chat.chat", "Ask one question after the other; a follow-up is understood."),
        "search": ("ask.search", "Rank pages for a question, with snippets."),
        "show": ("show.show", "Print pages of a document, or its table of contents."),
        "open": ("open.open_page", "Open a cited page in your PDF viewer."),
    },
    "Documents": {
        "ingest": ("ingest.ingest", "Add PDF files or folders of them to the index."),
        "watch": ("ingest.watch", "Keep the index in step with folders as their files change."),
        "list": ("documents.list_documents", "List the documents in the index."),
        "tag": ("documents.TAG", "Give documents tags, to ask only those."),
        "remove": ("documents.remove", "Take documents, code or commits out of the index."),
    },
    "Memory": {
        "remember": ("memories.remember", "Tell the index something to be recalled later."),
        "recall": ("memories.recall", "Find what was told before, or list it."),
        "forget": ("memories.forget", "Let memories go, from everywhere."),
        "session": ("session.SESSION", "List conversations, show or remove one."),
    },
    "Agents": {
        "mcp": ("serve.mcp", "Offer the index to an agent as tools, over stdin and stdout."),
        "serve": ("serve.serve", "Open the index to programs, agents and browsers of this machine."),
        "context": ("context.context", "Gather what code, history, memories and documents say."),
        "turn": ("context.turn", "Build the messages of an agent's turn from what is remembered."),
        "package": ("context.PACKAGE", "Build governed context packages for an agent's tasks."),
        "experience": ("experience.EXPERIENCE", "Record what was tried and what came of it; find it again."),
    },
    "Access": {
        "policy": ("access.POLICY", "Check who may see what, try it, or begin with an example."),
        "label": ("access.LABEL", "Say how confidential things are, and what they belong to."),
        "audit": ("access.AUDIT", "Show who was shown what, and whether that record is whole."),
        "token": ("serve.TOKEN", "Make tokens for others to ask a server, list and revoke them."),
    },
    "Index": {
        "init": ("upkeep.init", "Give this project an index of its own."),
        "status": ("upkeep.status", "Show where the index is and what is in it."),
        "doctor": ("upkeep.doctor", "Check the installation and the index, and repair what can be."),
        "backup": ("upkeep.backup", "Write the index into one file, even while it is in use."),
        "restore": ("upkeep.restore", "Bring an index back from a backup."),
        "eval": ("eval.evaluate", "Measure the search on questions with known pages."),
        "graph": ("graph.graph", "Show what refers to what: pages, documents, code, commits."),
    },
}
HIDDEN = {"schema": ("schemas.schema", "Print the JSON schema of a command's output.")}
_LEAVES = {name: leaf for group in (*COMMANDS.values(), HIDDEN) for name, leaf in group.items()}

HELP = "Ask a folder of documents a question and get the right pages back: cited, numbered, within a token budget."

EPILOG = """
\b
Examples:
  ctx ingest ./docs
  ctx ask "What caused the 2008 crisis?"
  ctx ask "What caused the 2008 crisis?" --json | jq -r '.sources[].filename'

\b
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing found, 4 some files failed, 130 interrupted.
"""

_HELP_NAMES = {"help_option_names": ["-h", "--help"]}
_NUMBER = re.compile(r"-?\d+(\.\d*)?")
FOR_EVER = -1.0  # what --wait alone means

# Typer carries its own copy of Click, older ones the package; both have this class above BadParameter.
_WrongUsage: type[Exception] = typer.BadParameter.__mro__[1]


class Group(TyperGroup):
    """A group that makes a command only to run it or to show its help."""

    sections: Mapping[str, Mapping[str, str]]
    make: Callable[[str], Any]
    others: tuple[str, ...] = ()  # that are not listed
    default = ""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for section in self.sections.values() for name in section]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = cmd_name in self.others or any(cmd_name in section for section in self.sections.values())
        return self.make(cmd_name) if known else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for title, section in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), words) for name, words in section.items()])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if self.default and (not args or args[0].startswith("-")) and not {"-h", "--help"}.intersection(args):
            args = [self.default, *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and not ctx.resilient_parsing and not self.get_command(ctx, args[0]):
            raise _no_such_command(args[0], [*self.list_commands(ctx)], ctx.command_path)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        # Caught here because Typer would turn it into a silent exit.
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, typer.Abort) as error:
            raise StoppedError("interrupted; nothing more was done") from error


def _group(root: Callable[..., None], *, default: str = "", help: str, epilog: str = "", **more: Any) -> Group:
    made = typer.Typer(cls=Group, rich_markup_mode=None, add_completion=not default, pretty_exceptions_enable=False)
    made.callback(invoke_without_command=not default, help=help, epilog=epilog, context_settings=_HELP_NAMES)(root)
    group: Any = typer.main.get_command(made)
    group.default, group.sections = default, more["sections"]
    group.make, group.others = more["make"], more.get("others", ())
    _convert_lightly(group, root)
    found: Group = group
    return found


def load_command(name: str) -> Any:
    """Typer's command object of one row of the table."""
    target, short = _LEAVES[name]
    module, _, attribute = target.partition(".")
    found = getattr(import_module(f"cli.{module}"), attribute)
    if not isinstance(found, Verbs):
        return _leaf(name, found, short)
    firsts = {verb: _first_sentence(function.__doc__ or "") for verb, function in found.verbs.items()}
    return _group(
        _no_options,
        default=next(iter(found.verbs)),
        help=f"{short}\n\n{cleandoc(found.help)}",
        sections={"Commands": firsts},
        make=lambda verb: _leaf(verb, found.verbs[verb]),
    )


def _no_options() -> None: ...


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(":")


def _leaf(name: str, function: Callable[..., int], short: str = "") -> Any:
    """The command of a function: its parameters, the options that it offers besides, and those that all have."""
    offers: Offers = function.__dict__.get("offers", Offers())
    own = dict(list(signature(function).parameters.items())[1:])  # without the call
    hints = get_type_hints(function, include_extras=True)
    arguments = {name: each for name, each in own.items() if _is_argument(hints[name])}
    typed = {**(request_options(offers.door) if offers.door else {}), **offers.more}
    every = {name: hint for name, hint in _EVERYWHERE.items() if name not in offers.without}
    if not offers.acting:
        del every["acting"]
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False if get_args(hint)[0] is bool else None, annotation=hint)
        for name, hint in {**typed, **every}.items()
    ]
    options = [each.replace(annotation=hints[name]) for name, each in own.items() if name not in arguments]
    parameters = [
        *(each.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY) for name, each in arguments.items()),
        *added[: len(typed)],
        *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in options),
        *added[len(typed) :],
    ]

    def command(ctx: typer.Context, **values: Any) -> int:
        return function(
            _call(ctx, values, {name: values[name] for name in typed}), **{name: values[name] for name in own}
        )

    context = Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    command.__signature__ = Signature([context, *parameters])  # type: ignore[attr-defined]
    command.__annotations__ = {"ctx": typer.Context, **{each.name: each.annotation for each in parameters}}
    text, _, examples = cleandoc(function.__doc__ or "").partition("Examples:\n")
    made = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    made.command(
        name,
        help=f"{short}\n\n{text}".strip(),
        epilog=f"\b\nExamples:\n{examples}" if examples else None,
        context_settings=_HELP_NAMES,
    )(command)
    loaded = typer.main.get_command(made)
    for parameter in loaded.params:
        if parameter.param_type_name == "argument":
            _name_plainly(parameter)
    _convert_lightly(loaded, command)
    return loaded


_EVERYWHERE = {
    "as_json": JsonOption,
    "index": IndexOption,
    "quiet": QuietOption,
    "debug": DebugOption,
    "log_file": LogFileOption,
    "log_level": LogLevelOption,
    "acting": AsOption,
}


def _is_argument(hint: Any) -> bool:
    return any(type(each).__name__ == "ArgumentInfo" for each in getattr(hint, "__metadata__", ()))


def _call(ctx: Any, values: Mapping[str, Any], typed: Mapping[str, Any]) -> Call:
    """The options after the command's name over those before it."""
    before = ctx.find_object(Call) or Call()
    index, quiet = values.get("index"), values.get("quiet") or before.quiet
    for name, meant in ({} if quiet else misspelt_variables()).items():
        say(f"ctx: note: {name} is no setting; did you mean {meant}?")
    return Call(
        before.folder if index is None else index,
        bool(quiet),
        bool(values.get("as_json")),
        principal_of(values.get("acting")),
        typed,
    )


def _name_plainly(argument: Any) -> None:
    """In the help as we call it: `PATH...`, where Typer writes `{PATH...}...` and `PATH... <list[str]>`."""
    name, usage = argument.metavar, argument.metavar if argument.required else f"[{argument.metavar}]"
    argument.get_usage_pieces = lambda ctx: [usage]
    argument.get_help_record = lambda ctx: (name, argument.help)


def _convert_lightly(command: Any, function: Callable[..., Any]) -> None:
    """Give each parameter of a command a converter for its annotated type; other types keep Typer's.

    Typer builds a pydantic adapter for every parameter it parses, used or not: 0.1 s of CPU before `ctx ask` has done
    anything. The handful of types we use need none of that.
    """
    hints = get_type_hints(function)
    all_parameters = command.get_params  # the help option, too, which is made late

    def get_params(ctx: Any) -> Any:
        parameters = all_parameters(ctx)
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                wanted = _bare(hints.get(parameter.name))
                parameter.process_value = partial(_process, parameter, parameter.process_value, wanted)
        return parameters

    command.get_params = get_params


def _bare(hint: Any) -> Any:
    """`str` of `str`, `str | None` and `list[str]`."""
    if get_origin(hint) is list:
        return get_args(hint)[0]
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return _bare(kinds[0]) if len(kinds) == 1 else hint


def _process(parameter: Any, thorough: Callable[[Any, Any], Any], wanted: Any, ctx: Any, value: Any) -> Any:
    several = getattr(parameter, "multiple", False) or parameter.nargs != 1
    known = wanted in (str, int, float, Path) or (isinstance(wanted, type) and issubclass(wanted, Enum))
    absent = value is None or (several and not value)
    if (absent and parameter.required) or not (absent or known):
        return thorough(ctx, value)
    try:
        if absent:
            value = () if several else None
        elif several:
            value = tuple(_converted(item, wanted, parameter) for item in value)
        else:
            value = _converted(value, wanted, parameter)
    except ValueError as error:
        raise typer.BadParameter(str(error), ctx=ctx, param=parameter) from error
    return value if parameter.callback is None else parameter.callback(ctx, parameter, value)


def _converted(value: Any, wanted: Any, parameter: Any) -> Any:
    if issubclass(wanted, Enum):
        choices = [str(choice.value) for choice in wanted]
        if str(value) not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
        return wanted(str(value))
    if wanted not in (int, float):
        return wanted(value)
    try:
        number = wanted(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a {'whole number' if wanted is int else 'number'}") from None
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if least is not None and not number >= least:
        raise ValueError(f"{number} is too small; the least is {least}")
    if most is not None and not number <= most:
        raise ValueError(f"{number} is too large; the most is {most}")
    return number


def _print_version(wanted: bool) -> None:
    if wanted:
        write(version_line())
        raise typer.Exit


def _root(
    ctx: typer.Context,
    *,
    index: IndexOption = None,
    quiet: QuietOption = False,
    # `run` reads these from the arguments, to have them even when they are wrong
    debug: DebugOption = False,
    log_file: LogFileOption = None,
    log_level: LogLevelOption = None,
    version: Annotated[
        bool, typer.Option("--version", "-V", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    if ctx.obj is not None:
        ctx.obj.begins(ctx.invoked_subcommand or "no command")
    ctx.obj = Call(index, quiet)
    if ctx.invoked_subcommand is None:
        write(ctx.get_help() + "\n")


def make_app() -> Group:
    listed = {title: {name: short for name, (_, short) in group.items()} for title, group in COMMANDS.items()}
    return _group(_root, help=HELP, epilog=EPILOG, sections=listed, make=load_command, others=tuple(HIDDEN))


def run(args: Sequence[str]) -> int:
    """Parse, call, and turn whatever goes wrong into one line and an exit code."""
    args = _expanded(args)
    options = list(takewhile(lambda arg: arg != "--", args))
    try:
        with _log(options) as log:
            try:
                result = make_app().main(args, prog_name="ctx", standalone_mode=False, obj=log)
                code = result if isinstance(result, int) else 0
            except CtxError as error:
                code = _fail(error, options, log)
            except _WrongUsage as error:
                code = _fail(_usage_error(error), options, log)
            except MemoryError:
                code = _fail(CtxError("out of memory"), options, log)
            except Exception as error:  # noqa: BLE001  the outermost handler: a person gets a sentence, no traceback
                if log is not None:
                    log.unexpected(error)
                code = _fail(_unforeseen(error, log.file if log is not None else None), options)
            if log is not None:
                log.ends(code)
            return code
    except CtxError as error:  # of the log itself
        return _fail(error, options)


def _expanded(args: Sequence[str]) -> list[str]:
    """`ctx help ask` is `ctx ask --help`; `--wait` without a number, which Typer's options cannot be, is for ever."""
    if args and args[0] == "help":
        return [*args[1:], "--help"]
    expanded = list(args)
    for position, arg in enumerate(args):
        if arg == "--":
            break
        if arg == "--wait" and not _NUMBER.fullmatch((*args, "")[position + 1]):
            expanded[position] = f"--wait={FOR_EVER}"
    return expanded


def _log(options: Sequence[str]) -> AbstractContextManager[Log | None]:
    """The log, if anybody asks for one: a call that does not never loads `logging`."""
    if not os.environ.get("CTX_LOG") and not any(word.startswith(("--log-", "--debug")) for word in options):
        return nullcontext()
    from cli.log import started

    return started(options, os.environ)


def _fail(error: CtxError, options: Sequence[str], log: Log | None = None) -> int:
    if log is not None:
        log.fails(error)
    if "--debug" in options:
        import traceback

        traceback.print_exc(file=sys.stderr)
    complain(error, as_json="--json" in options)
    return error.exit_code


def _usage_error(error: Any) -> UsageError:
    """Typer's message on one line, in our form; of an option that is no more, what to type instead."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "ctx"
    option = getattr(error, "option_name", "")
    if moved := _words("moved").get(f"{path.removeprefix('ctx ')} {option}"):
        return UsageError(f"{path} has no {option} any more", hint=f"it is now: {moved}")
    hint = f"see: {path} --help"
    if option:
        hint += "; put -- before words that begin with a dash"
    return UsageError(message[:1].lower() + message[1:], hint=hint)


def _unforeseen(error: Exception, log: Path | None) -> CtxError:
    hint = f"where it happened stands in {log}" if log else "run again with --debug, or --log-file FILE, to see where"
    if type(error).__module__ == "sqlite3":  # by name, because not every command has loaded it
        from research.errors import CHECK, FREE_SPACE

        step = FREE_SPACE if "full" in str(error) else CHECK
        return CtxError(f"the index cannot be read: {error}", hint=step)
    if isinstance(error, OSError) and error.strerror:
        from research.errors import next_step

        hint = next_step(error) or hint
        return CtxError(f"{error.strerror}: {error.filename}" if error.filename else error.strerror, hint=hint)
    return CtxError(f"unexpected error: {type(error).__name__}: {error}", hint=hint)


def _no_such_command(name: str, known: Sequence[str], path: str) -> UsageError:
    from difflib import get_close_matches

    moved = _words("moved")
    if path == "ctx" and name in moved:
        return UsageError(f"ctx {name} is now: {moved[name]}")
    now = next((now for old, now in moved.items() if f"ctx {old.rstrip(string.ascii_uppercase)}" == f"{path} "), "")
    meant = [each for each, words in _words("meant").items() if name.lower() in words.split()] if path == "ctx" else []
    close = meant or get_close_matches(name.lower(), known, n=1)
    if close:
        hint = "did you mean: " + " or ".join(f"{path} {each}" for each in close)
    else:
        hint = f"it is now: {now}" if now else f"commands: {', '.join(known)}"
    return UsageError(f"there is no command {name!r}" + ("" if path == "ctx" else f" of {path}"), hint=hint)


def _words(table: str) -> dict[str, str]:
    """A table of commands.toml, which only a mistake loads."""
    import tomllib
    from importlib.resources import files

    words: dict[str, str] = tomllib.loads(files("cli").joinpath("commands.toml").read_text(encoding="utf-8"))[table]
    return words
