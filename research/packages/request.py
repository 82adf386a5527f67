"""What a package is asked for and what it is: ContextBuildRequest and ContextPackage, JSON in camelCase as seed 003.

Who asks, and whose things they see, is never in a request: a body that names a principal or a tenant is refused. A
record of a package is the same without text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from research.errors import PackageRequestError
from research.models import Ref
from research.sources import CONTEXT_TYPES

if TYPE_CHECKING:
    from research.settings import Settings

MOST_INTENT = 10_000
MOST_TOKENS = 1_000_000
MOST_PINNED = 1_000
MOST_SECONDS = 86_400 * 30
MOST_ITEMS = 1_000
TTL_SECONDS = 1_800
_LONGEST_REF = 8_192
_SHOWN_ERRORS = 3

Type = Literal["memories", "code", "experiences", "values", "commits", "documents"]
Origin = Literal["vector", "metadata", "graph"]
ORIGINS: tuple[Origin, ...] = ("vector", "metadata", "graph")


def _is_ref(text: str) -> str:
    try:
        ref = Ref.parse(text)
    except ValueError:
        raise ValueError("is no reference; one reads like page:<doc>#7 or memory:<id>") from None
    if str(ref) != text or not text.isprintable():
        raise ValueError("is no reference as ctx writes them")
    return text


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be one line that says something")
    return text


def _says_something(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


Id = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$")]
Name = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_one_line)]
PinnedRef = Annotated[str, Field(min_length=3, max_length=_LONGEST_REF), AfterValidator(_is_ref)]
Weight = Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)]
Limit = Annotated[int, Field(ge=0, le=MOST_ITEMS, strict=True)]
Value = str | int | bool


class Model(BaseModel):
    """What is not known is refused, so that nothing is believed that nobody looks at."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True
    )


class Scope(Model):
    """Where is looked. All of it restricts everything but pinned sources."""

    project: Name | None = None
    module: Name | None = None
    documents: Annotated[list[Name], Field(max_length=100)] = Field(
        default_factory=list, description="Names, paths, patterns, titles or ids."
    )
    types: Annotated[list[Type], Field(max_length=20)] = Field(
        default_factory=list, description=f"Of {', '.join(CONTEXT_TYPES)}; empty: all."
    )

    @property
    def wanted_types(self) -> tuple[str, ...]:
        return tuple(name for name in CONTEXT_TYPES if not self.types or name in self.types)


class Limits(Model):
    """How many candidates each retrieval may bring, and how many sources a package may have."""

    vector: Limit = Field(default=12, description="Of each type.")
    metadata: Limit = 12
    graph: Limit = 12
    hops: Annotated[int, Field(ge=1, le=3, strict=True)] = 2
    sources: Annotated[int, Field(ge=1, le=MOST_ITEMS, strict=True)] = 100


class MetadataFilters(Model):
    """What the metadata retrieval brings, whatever the words of the intent: all that is named must hold."""

    status: Name | None = None
    module: Name | None = None
    project: Name | None = None
    tags: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list)
    since: Name | None = Field(default=None, description="A day, a month, a year or a time.")
    until: Name | None = None
    exact: Name | None = Field(default=None, description="A title, file name, qualified name, id or sha, exactly.")
    where: dict[str, Value | list[Value]] = Field(
        default_factory=dict, max_length=20, description="Metadata of code, commits, experiences and values."
    )

    @property
    def given(self) -> bool:
        return any(getattr(self, name) for name in type(self).model_fields)


class Weights(Model):
    """What each part of the score counts; what is left out is as the settings have it."""

    semantic: Weight | None = None
    graph: Weight | None = None
    recency: Weight | None = None
    quality: Weight | None = None
    reuse: Weight | None = None

    def over(self, settings: Settings) -> dict[str, float]:
        given = {name: getattr(self, name) for name in PARTS}
        return {
            name: float(getattr(settings, f"weight_{name}")) if value is None else float(value)
            for name, value in given.items()
        }


PARTS = ("semantic", "graph", "recency", "quality", "reuse")


class Retrieval(Model):
    """How candidates are found."""

    sources: Annotated[list[Origin], Field(max_length=10)] = Field(default_factory=lambda: list(ORIGINS))
    limits: Limits = Field(default_factory=Limits)
    filters: MetadataFilters = Field(default_factory=MetadataFilters)
    weights: Weights = Field(default_factory=Weights)


class ContextBuildRequest(Model):
    """A request for a context package. Who asks comes from the token or the user, and is no field of it."""

    id: Id | None = Field(default=None, description="Given again with the same body, it means the same package.")
    task_id: Id | None = None
    trace_id: Id | None = None
    intent: Annotated[str, Field(min_length=1, max_length=MOST_INTENT), AfterValidator(_says_something)]
    scope: Scope = Field(default_factory=Scope)
    retrieval: Retrieval = Field(default_factory=Retrieval)
    token_budget: Annotated[int, Field(ge=1, le=MOST_TOKENS, strict=True)] = 6_000
    pinned: Annotated[list[PinnedRef], Field(max_length=MOST_PINNED)] = Field(default_factory=list)
    ttl_seconds: Annotated[int, Field(ge=1, le=MOST_SECONDS, strict=True)] = TTL_SECONDS

    def canonical(self) -> str:
        """The same for requests that ask for the same, whatever they and their traces are called."""
        told = self.model_dump(mode="json", by_alias=True, exclude={"id", "trace_id"})
        return json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def read_request(given: ContextBuildRequest | Mapping[str, Any] | str | bytes) -> ContextBuildRequest:
    """A request from JSON or an object. Raises PackageRequestError that names the fields, nothing of their values."""
    if isinstance(given, ContextBuildRequest):
        return given
    try:
        if isinstance(given, str | bytes):
            return ContextBuildRequest.model_validate_json(given)
        return ContextBuildRequest.model_validate(dict(given))
    except ValidationError as error:
        raise refused(error) from None


def refused(error: ValidationError) -> PackageRequestError:
    found = [_told(entry["loc"], entry["type"], entry["msg"]) for entry in error.errors(include_input=False)]
    more = f"; and {len(found) - _SHOWN_ERRORS} more" if len(found) > _SHOWN_ERRORS else ""
    return PackageRequestError(
        f"the request cannot be understood: {'; '.join(found[:_SHOWN_ERRORS])}{more}", hint=_hint(found)
    )


def _told(place: tuple[int | str, ...], kind: str, message: str) -> str:
    where = ".".join(_name(part) for part in place) or "it"
    words = {"extra_forbidden": "is no field of a request", "missing": "is missing", "json_invalid": "is no JSON"}
    told = message.removeprefix("Value error, ")
    return f"{where} {words.get(kind) or told[:1].lower() + told[1:]}"


def _name(part: int | str) -> str:
    """A field's name, of which a body may have any."""
    return re.sub(r"[^\w-]", "?", str(part))[:60]


def _hint(found: list[str]) -> str:
    if any(told.startswith(("principal ", "tenant ")) for told in found):
        return "who asks comes from the token or the user who runs ctx: leave principal and tenant out"
    return "see what a request may hold with: ctx package schema"


Projection = Literal["full", "passages", "summary", "redacted", "reference"]
"""How much of a source is in the content: all of it, its passages, sentences of it with a link to the whole, what a
redactor left, or its name alone."""

Reason = Literal["unknown", "budget", "outside"]


class ScoreParts(Model):
    """What the score is made of, 0 to 1 each, before the weights."""

    semantic: float = 0.0
    graph: float = 0.0
    recency: float = 0.0
    quality: float = 0.0
    reuse: float = 0.0


class ContextSource(Model):
    """One thing that a package holds."""

    citation: int = Field(description="Its number in the content.")
    ref: str
    kind: str
    title: str = ""
    origins: list[Origin] = Field(description="Which retrievals brought it; none: it was pinned alone.")
    pinned: bool = False
    score: float
    parts: ScoreParts
    tokens: int = Field(description="Of the content, with its header.")
    projection: Projection
    classification: str = ""
    link: str = Field(default="", description="Opens the whole of it; empty where that may not be seen.")
    suspicious: list[str] = Field(default_factory=list, description="Why its text may try to steer a model.")


class PinnedOut(Model):
    """A pinned ref that is not in the package."""

    ref: str
    reason: Reason
    detail: str = ""


class Excluded(Model):
    """How many candidates are not in the package, and why. What is denied is none: the audit tells of it."""

    budget: int = 0
    outside: int = 0


class RetrievalCoverage(Model):
    """How a retrieval or a type of source took part."""

    name: str
    status: Literal["ok", "degraded", "down", "off"]
    reason: str = ""
    found: int = 0


class PackageCoverage(Model):
    """What the package rests on. `reduced`: something that was asked for could not be asked."""

    reduced: bool = False
    retrievals: list[RetrievalCoverage] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)


class ContextPackage(Model):
    """A governed, ranked bundle within its budget. `tokens_used` is the exact count of `content`."""

    context_package_id: str
    context_build_request_id: str
    task_id: str = ""
    trace_id: str
    policy_decision_id: str
    graph_projection_id: str = ""
    intent: str = ""
    sources: list[ContextSource] = Field(default_factory=list)
    pinned_out: list[PinnedOut] = Field(default_factory=list)
    excluded: Excluded = Field(default_factory=Excluded)
    token_budget: int
    tokens_used: int
    coverage: PackageCoverage = Field(default_factory=PackageCoverage)
    denied: bool = Field(default=False, description="Whoever asked may see nothing of the index.")
    created_at: str
    expires_at: str
    content: str = ""

    def record(self) -> ContextPackage:
        """What is kept for months: ids and numbers, no text."""
        told = [source.model_copy(update={"title": "", "link": ""}) for source in self.sources]
        return self.model_copy(update={"content": "", "intent": "", "sources": told})


def published(name: str) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a `request` or of a `package`."""
    told = (
        {"$id": "urn:ctx:context-build-request:1"} | ContextBuildRequest.model_json_schema()
        if name == "request"
        else {"$id": "urn:ctx:context-package:1"} | ContextPackage.model_json_schema(mode="serialization")
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **told}
