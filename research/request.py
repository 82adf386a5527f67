"""AskRequest: one question and how it is to be answered, the same for a prompt, a batch, HTTP and an agent.

What a field is, what it may be and how it is spelt as an option stands with the field; which door has which of them,
and by which name, stands in `DOORS`. The options of commands, the keys of a batch's lines, the bodies of HTTP and the
parameters of tools are made from these, and `read_request` checks what comes through any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from research.parameters import Kind, Parameter, read_values, setting_parameter

if TYPE_CHECKING:
    from research.filters import Filters
    from research.models import Extent

LONGEST_QUESTION = 20_000  # characters; more than a page is no question
MOST_ITEMS = 1000  # of each source of a context
_LONGEST_NAME = 4096

SOURCE_TYPES = ("memories", "code", "experiences", "values", "commits", "documents")
"""What can be asked, in the order of the sections of a context."""

_FILTERS: tuple[tuple[str, Kind, str, int, str, str], ...] = (
    ("documents", "texts", "Only these documents: by name, path, pattern, words of title, or id.", 4096, "doc", "DOC"),
    ("not_documents", "texts", "Without these documents.", 4096, "not-doc", "DOC"),
    ("under", "texts", "Only files below these folders.", 4096, "under", "FOLDER"),
    ("pages", "pages", "Only these pages, counted from 1: 3-5,8,10-", 1000, "pages", "PAGES"),
    ("since", "text", "Only what was added or changed then or later (UTC).", 40, "since", "DATE"),
    ("until", "text", "The same, then or earlier.", 40, "until", "DATE"),
    ("tags", "texts", "Only documents with all of these tags.", 4096, "tag", "TAG"),
)
FILTERS = tuple(
    Parameter(name, kind, words, most=most, option=f"--{option}", metavar=metavar)
    for name, kind, words, most, option, metavar in _FILTERS
)


# Each gives a `field`, which Ruff cannot see.
# ruff: noqa: RUF009
def _of(default: Any, kind: Any, words: str, **more: Any) -> Any:
    return field(default=default, metadata={"parameter": Parameter("", kind, words, **more)})


def _setting(name: str, words: str, metavar: str) -> Any:
    return field(default=None, metadata={"parameter": setting_parameter(name, words, metavar=metavar)})


@dataclass(frozen=True, slots=True)
class AskRequest:
    """What is asked. Fields that are None are as the settings have them; those without a description are nobody's to
    send."""

    question: str = field(
        metadata={
            "parameter": Parameter(
                "", "text", "What is asked, as a whole sentence.", required=True, most=LONGEST_QUESTION
            )
        }
    )
    types: Sequence[str] | None = _of(
        None,
        "texts",
        "Which sources. Default: documents; for context: all.",
        choices=SOURCE_TYPES,
        least=1,
        metavar="A,B",
        separator=",",
    )
    max_tokens: int | None = _setting("max_tokens", "The token budget. Default: 10000; for context: 2000.", "N")
    max_sources: int | None = _setting("max_sources", "Pages to cite at most. Default: 10.", "N")
    num_results: int | None = _setting("num_results", "Pages to find. Default: 10.", "N")
    limit: int | None = _of(
        None, "integer", "Items of each source to look at. Default: 20.", least=1, most=MOST_ITEMS, metavar="N"
    )
    mode: str | None = _setting(
        "mode", "How to search: lexical is by words, dense by meaning. Default: hybrid.", "MODE"
    )
    documents: Sequence[str] | None = _of(
        None, "texts", "Only these documents: names, patterns, titles or ids.", most=_LONGEST_NAME
    )
    filters: Filters | None = _of(None, "object", "What the question is restricted to.", parts=FILTERS)
    extent: Extent = _of(
        "fit",
        "text",
        "How much of each page: fit begins with passages and grows while there is room.",
        choices=("fit", "passages", "pages"),
    )
    highlights: bool = False  # also find the places on the pages
    min_score: float | None = _setting("min_score", "Leave sources of a lower score out. Default: 0.", "0..1")
    min_confidence: str | float | None = _setting(
        "min_confidence",
        "Answer with nothing (exit 3) if less sure: low, medium, high, or a number.",
        "LEVEL|0..1",
    )
    session: str | None = _of(
        None,
        "text",
        "Go on with this conversation: “and in 2024?” is understood.",
        most=_LONGEST_NAME,
        metavar="NAME",
    )
    turn: int = _of(0, "integer", "Ask again what was this turn of the session: nothing is kept.", least=1)
    before: Sequence[str] = ()  # questions of a conversation that is kept elsewhere, oldest first
    tenant: str = ""  # whose memories and sessions
    same_file: bool = _of(False, "boolean", "Of code and a commit of one file show the better one alone.")
    write: bool | None = _of(
        None, "boolean", "Whether the configured model writes an answer; by default it does, if there is one."
    )
    stream: bool = _of(False, "boolean", "Answer with server-sent events: context, piece, answer.")


_FLAT = (
    "doc=filters.documents not_doc=filters.not_documents under=filters.under pages=filters.pages since=filters.since"
    " until=filters.until tag=filters.tags"
)
_AGENTS = "documents=filters.documents pages=filters.pages tags=filters.tags"
_LEAST = "min_score min_confidence"
DOORS = {
    "ctx ask": f"{_FLAT} types mode max_tokens min_confidence session",
    "ctx chat": f"session {_FLAT} mode",
    "ctx search": f"num_results mode {_FLAT} {_LEAST}",
    "ctx context": "types limit max_tokens min_score same_file",
    "batch": f"question max_tokens max_sources num_results mode {_LEAST} {_FLAT}",
    "POST ask": (
        f"query=question max_tokens max_sources num_results mode documents filters extent {_LEAST} types session turn"
        " write stream"
    ),
    "POST search": f"query=question num_results mode documents filters {_LEAST}",
    "GET search": f"q=question num_results mode {_FLAT} {_LEAST}",
    "GET ask": "q=question doc=filters.documents tag=filters.tags under=filters.under pages=filters.pages"
    " since=filters.since until=filters.until sources=max_sources",
    "POST context": "query=question context_types=types limit max_tokens min_score same_file",
    "tool ask": f"question {_AGENTS} types",
    "tool search": f"question num_results {_AGENTS} mode",
    "tool context": "question types",
}
"""What each door takes, in its order; `name=field` where it has another name for a field."""


@cache
def parameters_of(door: str) -> tuple[Parameter, ...]:
    """What a door takes."""
    known = {each.name: each.metadata["parameter"] for each in fields(AskRequest) if each.metadata}
    known |= {f"filters.{each.name}": each for each in FILTERS}
    named = (each.rpartition("=") for each in DOORS[door].split())
    return tuple(replace(known[target], name=name or target, field=target) for name, _, target in named)


def read_request(door: str, given: Mapping[str, Any], base: AskRequest | None = None, **more: Any) -> AskRequest:
    """What came through a door, checked; it wins over the fields of `base`. `more` is what the door says itself.
    Raises UsageError."""
    parameters = parameters_of(door)
    return request_of(parameters, read_values(parameters, given, options=door.startswith("ctx ")), base, **more)


def request_of(
    parameters: Sequence[Parameter], values: Mapping[str, Any], base: AskRequest | None = None, **more: Any
) -> AskRequest:
    """The request that these values make. Raises UsageError for pages and times that nobody can read."""
    said = {each.field: values[each.name] for each in parameters if values.get(each.name) is not None} | more
    restricted = said.pop("filters", {}) | {
        each.name: said.pop(f"filters.{each.name}") for each in FILTERS if f"filters.{each.name}" in said
    }
    restricted = {name: value for name, value in restricted.items() if value is not None}
    if restricted:
        from research.filters import Filters

        filters = base.filters if base is not None else None
        said["filters"] = (Filters(**restricted) if filters is None else replace(filters, **restricted)) or None
    return AskRequest(**said) if base is None else replace(base, **said)
