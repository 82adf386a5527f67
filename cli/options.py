"""Options that several commands share, and what they amount to.

Options that set a setting have no bounds of their own: `load_settings` holds flags, variables and files to the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from cli.output import say
from research.errors import UsageError
from research.folders import index_folder
from research.settings import Mode, Settings, load_settings, misspelt_variables
from research.store.files.paths import IndexPaths


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
DebugOption = Annotated[bool, typer.Option("--debug", help="Show a traceback when something goes wrong.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document.")]
ModeOption = Annotated[
    Mode | None, typer.Option("--mode", help="Which legs answer. Default: hybrid.", show_default=False)
]
DocOption = Annotated[
    list[str] | None,
    typer.Option("--doc", metavar="NAME", help="Only these documents, by name, pattern or id. Repeatable."),
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Show how every score arose.")]
ResultsOption = Annotated[
    int | None,
    typer.Option("--num-results", metavar="N", help="Pages to find. Default: 10."),
]
TokensOption = Annotated[
    int | None, typer.Option("--max-tokens", metavar="N", help="The token budget. Default: 10000.")
]
SourcesOption = Annotated[
    int | None, typer.Option("--max-sources", metavar="N", help="Pages to cite at most. Default: 10.")
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


@dataclass(frozen=True, slots=True)
class Common:
    """What may stand before or after the command's name."""

    index: str | None = None
    quiet: bool = False


def common(ctx: typer.Context, index: str | None, quiet: bool) -> Common:
    """The options after the command's name over those before it. Every command asks once, so this is also where a
    variable is told that is probably misspelt."""
    before = ctx.obj if isinstance(ctx.obj, Common) else Common()
    given = Common(index if index is not None else before.index, quiet or before.quiet)
    for name, meant in ({} if given.quiet else misspelt_variables()).items():
        say(f"ctx: note: {name} is no setting; did you mean {meant}?")
    return given


def everywhere(log_file: LogFileOption = None, log_level: LogLevelOption = None) -> None:
    """Options that every command has without naming them: `cli.log` reads them before anything is parsed."""


def settings_for(given: Common, **flags: Any) -> Settings:
    """All layers of settings under the flags of this call."""
    if given.index is not None and not given.index.strip():
        raise UsageError("--index needs a folder", hint="ctx status tells which index is used without it")
    return load_settings({"index": given.index, **flags})


def index_of(settings: Settings) -> IndexPaths:
    """The index these settings mean, whether it exists yet or not."""
    root = index_folder(settings)
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file, not an index folder", hint="ctx status tells which index is used")
    return IndexPaths(root)


def index_for(given: Common) -> IndexPaths:
    return index_of(settings_for(given))
