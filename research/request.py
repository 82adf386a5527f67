"""AskRequest: one question and how it is to be answered, the same for a prompt, a batch, HTTP and an agent.

What a field is, what it may be and how it is spelt as an option stands with the field; which door has which of them,
and by which name, stands in `DOORS`. The options of commands, the keys of a batch's lines, the bodies of HTTP and the
parameters of tools are made from these, and `read_request` checks what comes through any of them.

Callers write numbers as texts, one text where a list belongs, and null for what they leave out; what can only mean one
thing is taken for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from research.errors import UsageError
from research.models import CONFIDENCE_LEVELS
from research.settings import Rule, Settings, check, closest, read_number

if TYPE_CHECKING:
    from research.filters import Filters
    from research.models import Extent

Kind = Literal["text", "integer", "share", "confidence", "boolean", "texts", "pages", "messages", "object"]

_MOST_TEXTS = 1000
_MOST_MESSAGES = 10_000
_SHOWN = 60  # characters of a wrong value
_WORDS = {
    "text": "a text",
    "boolean": "true or false",
    "texts": "a list of texts",
    "pages": "a text, a number or a list of these",
    "messages": "a list of messages",
    "object": "an object",
}
_SETTINGS = {each.name: each for each in fields(Settings)}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that may be said; None as its default means that it is left out."""

    name: str
    kind: Kind
    words: str
    default: Any = None
    required: bool = False
    least: int | None = None
    most: int | None = None  # of a number; of a text, its characters
    choices: tuple[str, ...] = ()
    parts: tuple[Parameter, ...] = ()  # of an object
    setting: str = ""  # the setting it stands for, in this call
    option: str = ""  # on the command line, if not --name
    metavar: str = ""
    separator: str = ""  # between several in one text
    field: str = ""  # of the request, if it is not called so here

    @property
    def spelling(self) -> str:
        """Of its option on the command line."""
        return self.option or f"--{self.name.replace('_', '-')}"

    @property
    def hint(self) -> str:
        """What would be right: one of these, or the first sentence of what it is."""
        return f"choose from: {', '.join(self.choices)}" if self.choices else self.words.partition(". ")[0].rstrip(".")

    def schema(self, *, brief: bool = False) -> dict[str, Any]:
        """JSON Schema of its value; a brief one has no bounds and no default that is nothing."""
        text: dict[str, Any] = {"type": "string"}
        if self.choices:
            text["enum"] = list(self.choices)
        elif self.most is not None and not brief:
            text |= {"minLength": 1, "maxLength": self.most}
        found: dict[str, Any] = {"description": self.words} if self.words else {}
        if self.kind == "texts":
            found |= {"type": "array", "items": text} | ({} if brief else {"maxItems": _MOST_TEXTS})
            found |= {} if self.least is None or brief else {"minItems": self.least}
        elif self.kind == "messages":
            found |= {"type": "array", "items": {"type": "object"}}
        elif self.kind == "object":
            found |= input_schema(self.parts)
        elif self.kind == "share":
            found |= {"type": "number", "minimum": 0, "maximum": 1}
        elif self.kind == "confidence":
            found["anyOf"] = [text, {"type": "number", "minimum": 0, "maximum": 1}]
        elif self.kind in ("integer", "boolean"):
            found["type"] = self.kind
            bounds = {"minimum": self.least, "maximum": self.most}
            found |= {name: bound for name, bound in bounds.items() if bound is not None and not brief}
        else:
            found |= text
        if self.default or (self.default not in (None, ()) and not brief):
            found["default"] = self.default
        return found

    def read(self, value: Any, where: str) -> Any:
        """What was given, as what it should be. Raises UsageError with what would be right."""
        if self.setting:
            return check(self.setting, value, where)
        if self.kind == "integer":
            return read_number(self.name, value, where, Rule(self.least or 0, self.most))
        if self.kind in ("text", "texts", "pages"):
            return self._texts(value, where)
        known = {True: True, False: False, "true": True, "false": False}
        if self.kind == "boolean" and isinstance(value, bool | str) and value in known:
            return known[value]
        if self.kind == "messages" and isinstance(value, list) and len(value) <= _MOST_MESSAGES:
            return tuple(value)  # what is in them is looked at where they are used
        if self.kind == "object" and isinstance(value, Mapping):
            return read_values(self.parts, value)
        raise self._wrong(value, where)

    def _texts(self, value: Any, where: str) -> Any:
        if self.kind == "text":
            return self._text(value, where)
        if self.kind == "pages":
            pages = value if isinstance(value, list | tuple) else [value]
            return ",".join(self._text(str(each) if type(each) is int else each, where) for each in pages)
        texts = self._several(value) if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or len(texts) > _MOST_TEXTS:
            raise self._wrong(value, where)
        if len(texts) < (self.least or 0):
            raise UsageError(f"{where} is empty", hint=self.hint)
        return tuple(self._text(text, where) for text in texts)

    def _several(self, text: str) -> list[str]:
        if not self.separator:
            return [text]
        return [each for each in map(str.strip, text.split(self.separator)) if each]

    def _text(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise self._wrong(value, where)
        # Halves of characters, which JSON can spell and nothing can store.
        text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
        if self.choices and text not in self.choices:
            raise UsageError(f"{where} cannot be {shown(text)}", hint=self.hint)
        if not text or "\0" in text:
            raise UsageError(f"{where} {'has a NUL' if text else 'is empty'}", hint=self.hint)
        if self.most is not None and len(text) > self.most:
            raise UsageError(f"{where} has {len(text):,} characters", hint=f"the most is {self.most:,}")
        return text

    def _wrong(self, value: Any, where: str) -> UsageError:
        return UsageError(f"{where} must be {_WORDS[self.kind]}, not {shown(value)}", hint=self.hint)


def setting_parameter(setting: str, words: str, **more: Any) -> Parameter:
    """What stands for a setting in one call: its kind and its bounds are the setting's."""
    default, rule = _SETTINGS[setting].default, _SETTINGS[setting].metadata["rule"]
    number = isinstance(default, int)
    kind: Kind = "integer" if number else "share" if isinstance(default, float) else "text"
    if rule.share:
        kind = "confidence"
    least, most = (rule.minimum, rule.maximum) if number else (None, None)
    choices = tuple(CONFIDENCE_LEVELS) if rule.share else tuple(map(str, rule.choices))
    return Parameter(setting, kind, words, least=least, most=most, choices=choices, setting=setting, **more)


def input_schema(parameters: Iterable[Parameter], *, brief: bool = False) -> dict[str, Any]:
    """JSON Schema of all of them, as an object; a brief one says what to write and nothing else."""
    known = tuple(parameters)
    required = [parameter.name for parameter in known if parameter.required]
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema(brief=brief) for parameter in known},
        **({"required": required} if required else {}),
        **({} if brief else {"additionalProperties": False}),
    }


def read_values(parameters: Sequence[Parameter], given: Mapping[str, Any], *, options: bool = False) -> dict[str, Any]:
    """A value for each parameter, its default where none was given. `options`: errors name those of the command line.
    Raises UsageError for what is wrong, missing or unknown, with the nearest name that there is."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            close = closest(str(name), known)
            hint = f"did you mean {close}?" if close else f"it takes: {', '.join(known)}"
            raise UsageError(f"there is no {shown(name)} here", hint=hint)
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        value = given.get(name)
        if value is None and parameter.required:
            raise UsageError(f"{name} is missing", hint=parameter.hint)
        where = parameter.spelling if options else name
        values[name] = parameter.default if value is None else parameter.read(value, where)
    return values


def shown(value: object) -> str:
    """A value somebody sent, in a message."""
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
