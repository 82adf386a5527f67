"""ContextPackage: what was built for a request, in the names of seed 003. A record of it is the same without text."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from research.packages.request import ContextBuildRequest, Model, Origin

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
