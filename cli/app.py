"""The app: the table of commands, each loaded when it is called, and the one place where errors become words."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.options import Common, DebugOption, IndexOption, QuietOption
from cli.output import complain, write
from cli.values import convert_lightly
from research.errors import CtxError, UsageError

# The short help stands here so that `ctx --help` and `ctx ask` need not load every command.
COMMANDS = {
    "ask": "Answer a question with cited pages, within a token budget.",
    "ingest": "Add PDF files or folders of them to the index.",
    "search": "Rank pages for a question, with snippets.",
    "eval": "Measure the search on questions with known pages.",
    "show": "Print one page of a document.",
    "list": "List the documents in the index.",
    "remove": "Take documents out of the index.",
    "status": "Tell where the index is and what is in it.",
    "init": "Give this project an index of its own.",
    "doctor": "Check the installation and the index, and repair what can be.",
    "reindex": "Rebuild every derived index from the catalog.",
    "backup": "Write the index into one file, even while it is in use.",
    "restore": "Bring an index back from a backup.",
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


class StoppedError(CtxError):
    exit_code = 130


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
    convert_lightly(loaded, module.command)
    return loaded


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
        from cli.version import version_line

        write(version_line())
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,  # `run` reads it from the arguments, to have it even when they are wrong
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    ctx.obj = Common(index, quiet)
    if ctx.invoked_subcommand is None:
        write(ctx.get_help() + "\n")


def run(args: Sequence[str]) -> int:
    """Parse, call, and turn whatever goes wrong into one line and an exit code."""
    before_dashes = list(takewhile(lambda arg: arg != "--", args))
    as_json, debug = "--json" in before_dashes, "--debug" in before_dashes
    try:
        group = typer.main.get_command(app)
        convert_lightly(group, root)
        result = group.main(list(args), prog_name="ctx", standalone_mode=False)
    except CtxError as error:
        return _fail(error, as_json=as_json, debug=debug)
    except _WrongUsage as error:
        return _fail(_usage_error(error), as_json=as_json, debug=debug)
    except MemoryError:
        return _fail(CtxError("out of memory"), as_json=as_json, debug=debug)
    except Exception as error:  # noqa: BLE001  the outermost handler: a person gets a sentence, not a traceback
        return _fail(_unforeseen(error), as_json=as_json, debug=debug)
    return result if isinstance(result, int) else 0


def _fail(error: CtxError, *, as_json: bool, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exc(file=sys.stderr)
    complain(error, as_json=as_json)
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


def _unforeseen(error: Exception) -> CtxError:
    hint = "run again with --debug to see where"
    if type(error).__module__ == "sqlite3":  # by name, because not every command has loaded it
        from research.store.error_hints import CHECK, FREE_SPACE

        step = FREE_SPACE if "full" in str(error) else CHECK
        return CtxError(f"the index cannot be read: {error}", hint=step)
    if isinstance(error, OSError) and error.strerror:
        from research.store.error_hints import next_step

        hint = next_step(error) or hint
        return CtxError(f"{error.strerror}: {error.filename}" if error.filename else error.strerror, hint=hint)
    return CtxError(f"unexpected error: {type(error).__name__}: {error}", hint=hint)


def _no_such_command(name: str) -> UsageError:
    from difflib import get_close_matches

    close = get_close_matches(name, list(COMMANDS), n=1)
    hint = f"did you mean: ctx {close[0]}" if close else "commands: " + ", ".join(COMMANDS)
    return UsageError(f"there is no command {name!r}", hint=hint)
