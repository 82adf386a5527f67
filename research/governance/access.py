"""The records of access: who asks, what a thing is to a policy, and what was decided about it.

    Principal, Resource → MemoryAccessPolicy → MemoryAccessDecision, of Rulings → MemoryAccessAudit

Who asks comes from the token or the user who runs the program, never from what a request says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from research.models import Question, ResearchContext

T = TypeVar("T")

Effect = Literal["allow", "redact", "deny"]
Action = Literal["read", "read_redacted", "read_text", "send"]
"""`read`: the thing as it is. `read_redacted`: with what a redactor finds masked, and where it finds nothing as its
reference alone, unless `read_text` is permitted, too. `send`: also to a model that runs elsewhere."""

CLASSIFICATIONS = ("Public", "Internal", "Confidential", "Restricted")
"""The strictest last; those that the catalog takes (`store.catalog.labels`)."""

UNKNOWN = "unknown"
"""The kind of a resource that there is not; no policy is asked about it."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, and whose things they see. The owner is whoever runs the program; tenant "" is theirs."""

    name: str
    tenant: str = ""
    owner: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """A thing as a policy sees it."""

    ref: str
    kind: str  # page, document, memory, code, commit, experience, value, session
    path: str = ""  # of the file it was read from
    tags: frozenset[str] = frozenset()
    classification: str = "Internal"
    status: str = ""
    module: str = ""
    project: str = ""
    tenant: str = ""  # whose it is; "" is the index's owner


@dataclass(frozen=True, slots=True)
class Ruling:
    """What was decided about one thing, and by which policies. `text`: a redacted thing in which nothing was found to
    mask still comes with its text."""

    resource: Resource
    effect: Effect
    policies: tuple[str, ...] = ()
    text: bool = False

    @property
    def ref(self) -> str:
        return self.resource.ref


@dataclass(frozen=True, slots=True)
class MemoryAccessDecision:
    """One decision about a set of things. With a `problem` (a policy that does not parse, an engine that fails) all of
    it is denied."""

    id: str
    principal: Principal
    action: Action
    rulings: tuple[Ruling, ...] = ()
    policy: str = ""  # the revision that decided
    decided_at: str = ""
    problem: str = ""
    policies: tuple[str, ...] = field(default=(), kw_only=True)  # the names of all that decided something

    def counts(self) -> dict[str, int]:
        found = {"allow": 0, "redact": 0, "deny": 0}
        for ruling in self.rulings:
            found[ruling.effect] += 1
        return found


@dataclass(frozen=True, slots=True)
class MemoryAccessAudit:
    """One entry: who, what for, by which decision, and what it said of each ref. `kind` is "access"; others are marks
    of the chain itself, with `note`."""

    seq: int
    at: str
    principal: str = ""
    tenant: str = ""
    owner: bool = False
    purpose: str = ""
    decision: str = ""
    action: str = ""
    policy: str = ""
    policies: tuple[str, ...] = ()
    allowed: int = 0
    redacted: int = 0
    denied: int = 0
    refs: tuple[tuple[str, str], ...] = ()
    more_refs: int = 0  # that were decided about, too, and are not listed
    trace_id: str = ""
    problem: str = ""
    kind: str = "access"
    note: str = ""
    hash: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as `ctx audit --json` and the HTTP route show it."""
        return {**asdict(self), "refs": [{"ref": ref, "effect": effect} for ref, effect in self.refs]}


class AllowAll:
    """What the owner may see without a policy: all of it, and nothing is on record. `enforce.PolicyAccess` is what
    anybody else may."""

    problem = ""

    def shown(self, things: Sequence[T], purpose: str, ref: Callable[[T], str] = str) -> Sequence[T]:
        return things

    def each_shown(self, things: Iterator[T], purpose: str, ref: Callable[[T], str]) -> Iterator[T]:
        return things

    def asking(self, question: Question) -> Question:
        return question

    def without_unsendable(self, context: ResearchContext) -> ResearchContext:
        return context


def owner_principal() -> Principal:
    """Return the user who runs the program."""
    import pwd

    user = os.geteuid()
    try:
        name = pwd.getpwuid(user).pw_name
    except KeyError:  # a container may run as a user that nobody entered
        name = ""
    return Principal(name or str(user), owner=True)
