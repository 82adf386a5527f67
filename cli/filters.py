"""The options that restrict a question to some documents and pages, and what they amount to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.completion import complete_document, complete_tag

if TYPE_CHECKING:
    from research.filters import Filters

DocOption = Annotated[
    list[str] | None,
    typer.Option(
        "--doc",
        metavar="DOC",
        help="Only these documents: by name, path, pattern, title or words of it, id or its beginning. Repeatable.",
        autocompletion=complete_document,
    ),
]
NotDocOption = Annotated[
    list[str] | None,
    typer.Option(
        "--not-doc", metavar="DOC", help="Without these documents. Repeatable.", autocompletion=complete_document
    ),
]
UnderOption = Annotated[
    list[str] | None, typer.Option("--under", metavar="FOLDER", help="Only files below this folder. Repeatable.")
]
PagesOption = Annotated[
    str | None, typer.Option("--pages", metavar="PAGES", help="Only these pages, counted from 1: 3-5,8,10-")
]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="DATE", help="Only what was added or changed in the index then or later (UTC)."),
]
UntilOption = Annotated[str | None, typer.Option("--until", metavar="DATE", help="The same, then or earlier.")]
TagOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        help="Only documents with this tag (ctx tag). Repeatable: with all of them.",
        autocompletion=complete_tag,
    ),
]


def given_filters(
    *,
    doc: Sequence[str] | None,
    not_doc: Sequence[str] | None,
    under: Sequence[str] | None,
    pages: str | None,
    since: str | None,
    until: str | None,
    tag: Sequence[str] | None,
) -> dict[str, str | list[str]]:
    """Those that were given, by the keys that a line of a batch has for them."""
    texts = {"pages": pages, "since": since, "until": until}
    lists = {"doc": doc, "not_doc": not_doc, "under": under, "tag": tag}
    given: dict[str, str | list[str]] = {key: text for key, text in texts.items() if text is not None}
    return given | {key: list(values) for key, values in lists.items() if values}


def filters_from(given: Mapping[str, Any]) -> Filters | None:
    """None if there are none, so that a plain question loads nothing for them."""
    if not given:
        return None
    from research.filters import Filters

    return Filters.parse(given)
