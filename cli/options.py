"""The arguments and options that several commands have, each described once; one command's own stand with it.

The options of a question (`--doc`, `--max-tokens`, …) are made from `research.request`. Options that set a setting have
no bounds of their own: `load_settings` holds flags, variables and files to the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.call import LogLevel, complete_document, complete_tag

# Options of every command.
IndexOption = Annotated[
    str | None,
    typer.Option("--index", metavar="DIR", help="The index folder (also CTX_INDEX). Default: the nearest .ctx upward."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print exactly one JSON document.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show a traceback when something goes wrong.")]
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

# Arguments.
QuestionArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="QUESTION...", help="The question, or - to read it from stdin.", show_default=False),
]
DocArgument = Annotated[
    str, typer.Argument(metavar="DOC", help="A document's name, path, title or id.", autocompletion=complete_document)
]
DocsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DOC...",
        help="Names, paths, patterns or ids of documents.",
        autocompletion=complete_document,
        show_default=False,
    ),
]
TagsArgument = Annotated[list[str], typer.Argument(metavar="TAG...", help="Tags.", autocompletion=complete_tag)]
TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A document, a ref, path:PATTERN or tag:TAG.", autocompletion=complete_document
    ),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of a session.")]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="An id, or its beginning.")]
IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids.", show_default=False)]
RefsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="REF...", help="Refs, as page:ID#7.", show_default=False)
]
FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A file; - is stdin.")]
PathArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The file of the backup.")]

# Options that several commands share.
AllowIngestOption = Annotated[
    bool, typer.Option("--allow-ingest", help="Let documents be added: files and folders below --root.")
]
AnswerOption = Annotated[
    bool | None,
    typer.Option(
        "--answer/--no-answer",
        help="Let your model write an answer from the sources, each sentence checked. Default: if one is named.",
        show_default=False,
    ),
]
AxisOption = Annotated[
    str | None, typer.Option("--axis", metavar="A", help="full, strategy, surprise or root_cause. Default: full.")
]
CodeOption = Annotated[bool, typer.Option("--code", help="PATH is source code: functions, classes and methods.")]
CommitsOption = Annotated[
    list[str] | None,
    typer.Option("--commits", metavar="REPO", help="The history of a git repository.", show_default=False),
]
DomainOption = Annotated[
    str | None, typer.Option("--domain", metavar="D", help="debugging, feature, testing, security, … or other.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")]
ExpiresOption = Annotated[
    str, typer.Option("--expires", metavar="TIME", help="When it ends: 30d, 12h, or 2027-01-31. Default: never.")
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Show how every score arose.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
LimitOption = Annotated[int | None, typer.Option("--limit", metavar="N", help="At most so many.", min=1, max=1_000_000)]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Your model, as its server calls it; local: the one of the extra."),
]
NamespaceOption = Annotated[str, typer.Option("--namespace", metavar="NAME", help="A part of your memories.")]
NoImagesOption = Annotated[bool, typer.Option("--no-images", help="Without page images; saves disk.")]
OutcomeOption = Annotated[
    str | None,
    typer.Option("--outcome", metavar="O", help="confirmed, falsified or abandoned; to find some: also open."),
]
PrincipalOption = Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Who asks.")]
RootOption = Annotated[
    list[Path] | None,
    typer.Option("--root", metavar="DIR", help="A folder that may be added; with --allow-ingest. Repeatable."),
]
SessionOption = Annotated[
    str | None, typer.Option("--session", metavar="NAME", help="The conversation that they belong to.")
]
StrategyOption = Annotated[
    str | None, typer.Option("--strategy", metavar="S", help="root-cause-analysis, trial-and-error, … or other.")
]
TagOption = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag. Repeatable.")]
TenantOption = Annotated[
    str, typer.Option("--tenant", metavar="T", help="Whose memories, sessions and things. Default: your own.")
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
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
