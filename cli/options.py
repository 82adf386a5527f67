"""Options that several commands share, and what they amount to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from research.errors import UsageError
from research.settings import Settings, index_folder, load_settings
from research.store.files.paths import IndexPaths

# SQLite and Chroma count in 64 and 32 bits; nobody means more than this.
MOST_RESULTS = 10_000
MOST_TOKENS = 1_000_000_000


class Mode(StrEnum):
    """Which legs answer; the words the search engine knows."""

    hybrid = "hybrid"
    text = "text"
    visual = "visual"
    lexical = "lexical"
    dense = "dense"


IndexOption = Annotated[
    str | None,
    typer.Option("--index", metavar="DIR", help="The index folder (also CTX_INDEX). Default: the nearest .ctx upward."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]
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
    typer.Option("--num-results", metavar="N", min=1, max=MOST_RESULTS, help="Pages to find. Default: 10."),
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
    """The options after the command's name over those before it."""
    before = ctx.obj if isinstance(ctx.obj, Common) else Common()
    return Common(index if index is not None else before.index, quiet or before.quiet)


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
