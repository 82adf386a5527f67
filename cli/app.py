"""The app: the table of commands, each loaded when it is called, and the one place where errors become words.

Words of the command line as values, without Typer's help.

Typer builds a pydantic adapter for every parameter it parses, used or not: 0.1 s of CPU before `ctx ask` has done
anything. The handful of types we use need none of that, so `convert_lightly` turns words into values, in words of ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from cli.options import (
    ACTING,
    Common,
    DebugOption,
    IndexOption,
    LogFileOption,
    LogLevelOption,
    QuietOption,
    everywhere,
    keep,
    request_options,
)
from cli.output import complain, write
from research.errors import CtxError, StoppedError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from cli.log import Log


def convert_lightly(command: Any, *functions: Callable[..., Any]) -> None:
    """Give each parameter of a command a converter for its annotated type; other types keep Typer's."""
    hints = {name: hint for function in functions for name, hint in get_type_hints(function).items()}
    all_parameters = command.get_params  # the help option, too, which is made late

    def get_params(ctx: Any) -> Any:
        parameters = all_parameters(ctx)
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = _processor(parameter, _bare(hints.get(parameter.name)))
        return parameters

    command.get_params = get_params


def _bare(hint: Any) -> Any:
    """`str` of `str`, `str | None` and `list[str]`."""
    if get_origin(hint) is list:
        return get_args(hint)[0]
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return _bare(kinds[0]) if len(kinds) == 1 else hint


def _processor(parameter: Any, wanted: Any) -> Callable[[Any, Any], Any]:
    thorough = parameter.process_value
    several = getattr(parameter, "multiple", False) or parameter.nargs != 1
    known = wanted in (str, int, float, Path) or (isinstance(wanted, type) and issubclass(wanted, Enum))

    def process(ctx: Any, value: Any) -> Any:
        absent = value is None or (several and not value)
        if (absent and parameter.required) or not (absent or known):
            return thorough(ctx, value)
        try:
            value = _converted(value, wanted, parameter, several=several, absent=absent)
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx=ctx, param=parameter) from error
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

    return process


def _converted(value: Any, wanted: Any, parameter: Any, *, several: bool, absent: bool) -> Any:
    if absent:
        return () if several else None
    if several:
        return tuple(_one(item, wanted, parameter) for item in value)
    return _one(value, wanted, parameter)


def _one(value: Any, wanted: Any, parameter: Any) -> Any:
    if issubclass(wanted, Enum):
        choices = [str(choice.value) for choice in wanted]
        if str(value) not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
        return wanted(str(value))
    if wanted in (int, float):
        return _number(value, wanted, parameter)
    return wanted(value)


def _number(value: Any, wanted: Any, parameter: Any) -> Any:
    try:
        number = wanted(value)
    except ValueError:
        kind = "whole number" if wanted is int else "number"
        raise ValueError(f"{value!r} is not a {kind}") from None
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if least is not None and not number >= least:
        raise ValueError(f"{number} is too small; the least is {least}")
    if most is not None and not number <= most:
        raise ValueError(f"{number} is too large; the most is {most}")
    return number


# The short help stands here so that `ctx --help` and `ctx ask` need not load every command.
COMMANDS = {
    "ask": "Quote what answers a question, cite its pages, within a budget.",
    "chat": "Ask one question after the other; a follow-up is understood.",
    "ingest": "Add PDF files or folders of them to the index.",
    "watch": "Keep the index in step with folders as their files change.",
    "search": "Rank pages for a question, with snippets.",
    "context": "Gather what code, history, memories and documents say.",
    "premortem": "Tell what went wrong before in a domain.",
    "package": "Build governed context packages for an agent's tasks.",
    "eval": "Measure the search on questions with known pages.",
    "outline": "Print a document's table of contents.",
    "graph": "Show what refers to what: pages, documents, code, commits.",
    "show": "Print pages of a document.",
    "open": "Open a cited page in your PDF viewer.",
    "serve": "Open the index to programs, agents and browsers of this machine.",
    "mcp": "Offer the index to an agent as tools, over stdin and stdout.",
    "token": "Make tokens for others to ask a server, list and revoke them.",
    "sessions": "List conversations, show or remove one.",
    "turn": "Build the messages of an agent's turn from what is remembered.",
    "metrics": "Print the times and counts of a running server.",
    "remember": "Tell the index something to be recalled later.",
    "recall": "Find what was told before, or list it.",
    "forget": "Let memories go, from everywhere.",
    "experience": "Tell what was tried and what came of it, and find it again.",
    "list": "List the documents in the index.",
    "tag": "Give documents tags, to ask only those, and list them.",
    "classify": "Say how confidential things are, for policies.",
    "label": "Give things a status, a module, a project, for policies.",
    "policy": "Check who may see what, try it, or begin with an example.",
    "remove": "Take documents out of the index.",
    "audit": "Tell who was shown what, and whether that record is whole.",
    "status": "Tell where the index is and what is in it.",
    "init": "Give this project an index of its own.",
    "doctor": "Check the installation and the index, and repair what can be.",
    "reindex": "Rebuild every derived index from the catalog.",
    "backup": "Write the index into one file, even while it is in use.",
    "restore": "Bring an index back from a backup.",
    "schema": "Print the JSON schema of a command's output.",
    "version": "Print the version.",
    "help": "Show this help, or that of a command.",
}

# What people type who know other tools, and what they may have meant.
MEANT = {
    "query": ("ask", "search"),
    "question": ("ask",),
    "answer": ("ask",),
    "talk": ("chat",),
    "repl": ("chat",),
    "session": ("sessions",),
    "history": ("sessions",),
    "conversations": ("sessions",),
    "find": ("search", "ask"),
    "grep": ("search",),
    "add": ("ingest",),
    "import": ("ingest",),
    "index": ("ingest", "reindex"),
    "update": ("ingest",),
    "sync": ("ingest",),
    "get": ("show",),
    "cat": ("show",),
    "view": ("show",),
    "page": ("show",),
    "toc": ("outline",),
    "edges": ("graph",),
    "links": ("graph",),
    "neighbours": ("graph",),
    "contents": ("outline",),
    "headings": ("outline",),
    "ls": ("list",),
    "documents": ("list",),
    "server": ("serve",),
    "web": ("serve",),
    "http": ("serve",),
    "tokens": ("token",),
    "login": ("token", "serve"),
    "agent": ("mcp",),
    "tools": ("mcp",),
    "classification": ("classify",),
    "labels": ("label",),
    "policies": ("policy",),
    "cedar": ("policy",),
    "rm": ("remove",),
    "delete": ("remove",),
    "memories": ("recall",),
    "memory": ("recall",),
    "memorize": ("remember",),
    "note": ("remember",),
    "info": ("status",),
    "stats": ("status",),
    "check": ("doctor",),
    "repair": ("doctor",),
    "new": ("init",),
    "rebuild": ("reindex",),
    "export": ("backup",),
    "bench": ("eval",),
    "experiences": ("experience",),
    "values": ("experience",),
    "lesson": ("experience",),
    "assemble": ("context",),
    "warnings": ("premortem",),
    "packages": ("package",),
}

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

# Typer carries its own copy of Click, older ones the package; both have this class above BadParameter.
_WrongUsage: type[Exception] = typer.BadParameter.__mro__[1]


class LazyGroup(TyperGroup):
    """A group that imports a command's module only to run it or to show its own help."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise _no_such_command(args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        # Caught here because Typer would turn it into a silent exit.
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, typer.Abort) as error:
            raise StoppedError("interrupted; nothing more was done") from error


def load_command(name: str) -> Any:
    """Typer's command object of one module of this package."""
    module = import_module(f"cli.{name}")
    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(
        name,
        cls=getattr(module, "COMMAND_CLASS", None),
        help=f"{COMMANDS[name]}\n\n{module.DETAILS}".rstrip(),
        epilog=module.EPILOG,
        context_settings=_HELP_NAMES,
    )(module.command)
    loaded = typer.main.get_command(single)
    for parameter in loaded.params:
        if parameter.param_type_name == "argument":
            _name_plainly(parameter)
    left_out = {*getattr(module, "WITHOUT", ()), *(() if name in ACTING else ("acting",))}
    typed = request_options(module.DOOR) if hasattr(module, "DOOR") else None
    asked = [] if typed is None else _kept(typed)
    arguments = sum(parameter.param_type_name == "argument" for parameter in loaded.params)
    loaded.params[arguments:arguments] = asked
    loaded.params += [option for option in _kept(everywhere) if option.name not in left_out]
    convert_lightly(loaded, module.command, everywhere, *([typed] if typed else []))
    return loaded


def _name_plainly(argument: Any) -> None:
    """In the help as we call it: `PATH...`, where Typer writes `{PATH...}...` and `PATH... <list[str]>`."""
    name, usage = argument.metavar, argument.metavar if argument.required else f"[{argument.metavar}]"
    argument.get_usage_pieces = lambda ctx: [usage]
    argument.get_help_record = lambda ctx: (name, argument.help)


def _kept(function: Callable[..., None]) -> list[Any]:
    """The options that a function's parameters describe, for their help and to be parsed. They are kept in the context,
    so that no command need name them."""
    single = typer.Typer(add_completion=False)
    single.command()(function)
    options = list(typer.main.get_command(single).params)
    for option in options:
        option.expose_value, option.callback = False, keep
    return options


app = typer.Typer(
    cls=LazyGroup,
    help=HELP,
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings=_HELP_NAMES,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from cli.output import version_line

        write(version_line())
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
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
    ctx.obj = Common(index, quiet)
    if ctx.invoked_subcommand is None:
        write(ctx.get_help() + "\n")


def run(args: Sequence[str]) -> int:
    """Parse, call, and turn whatever goes wrong into one line and an exit code."""
    options = list(takewhile(lambda arg: arg != "--", args))
    try:
        with _log(options) as log:
            try:
                group = typer.main.get_command(app)
                convert_lightly(group, root)
                result = group.main(list(args), prog_name="ctx", standalone_mode=False, obj=log)
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
    """Typer's message on one line, in our form."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "ctx"
    hint = f"see: {path} --help"
    if getattr(error, "option_name", ""):
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


def _no_such_command(name: str) -> UsageError:
    from difflib import get_close_matches

    close = MEANT.get(name.lower()) or get_close_matches(name.lower(), list(COMMANDS), n=1)
    meant = " or ".join(f"ctx {each}" for each in close)
    hint = f"did you mean: {meant}" if meant else f"commands: {', '.join(COMMANDS)}"
    return UsageError(f"there is no command {name!r}", hint=hint)
