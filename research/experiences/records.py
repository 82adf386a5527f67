"""The records of experiences and of values, and what an experience is found by. Plain data.

An experience begins with a goal, a hypothesis, an action and a prediction, and is closed with an outcome. Until then it
is kept and shown, but not searched: nothing is learnt from it yet.

It is found by an item of the catalog for each axis that it has something to say on. Four items and not one with four
texts: so an axis has words, a length and vectors of its own, and to search it is to search items whose `axis` it is.
All four belong to the experience as their parent, come with it and go with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from research.store import NewItem

KIND = "experience"
"""Of the items that an experience has in the catalog."""

DOMAINS = (
    "debugging", "refactoring", "feature", "testing", "configuration", "documentation", "performance", "security",
    "integration", "other",
)  # fmt: skip
STRATEGIES = (
    "systematic-elimination", "trial-and-error", "research-first", "divide-and-conquer", "root-cause-analysis",
    "copy-from-similar", "check-assumptions", "read-the-error", "ask-user", "other",
)  # fmt: skip
OUTCOMES = ("confirmed", "falsified", "abandoned")
OPEN = "open"
"""What is said in lists of an experience without an outcome."""

TIERS = ("gold", "silver", "bronze", "abandoned")
"""How much an experience is worth, best first: the first iterations say more than the tenth."""

AXES = ("full", "strategy", "surprise", "root_cause")
"""What an experience is searched by, each for itself: all of it, how it was gone about, what nobody expected, why."""

_SOON = 3  # iterations that are still a clear test of a hypothesis


@dataclass(frozen=True, slots=True)
class Experience:
    """One of them as it is stored. Times are ISO 8601 in UTC, empty where there is none."""

    id: str
    goal: str
    hypothesis: str
    action: str
    prediction: str
    domain: str = "other"
    strategy: str = "other"
    outcome: str = ""  # one of OUTCOMES; empty: it is still open
    outcome_result: str = ""
    surprise: str = ""
    root_cause: str = ""
    lesson: str = ""
    confidence_tier: str = ""  # one of TIERS; empty while it is open
    iteration_count: int = 1
    started_at: str = ""
    updated_at: str = ""
    closed_at: str = ""

    @property
    def is_open(self) -> bool:
        return not self.outcome

    @property
    def state(self) -> str:
        return self.outcome or OPEN

    def metadata(self) -> dict[str, Any]:
        """Exactly what seed 002 has."""
        return {
            "id": self.id,
            "domain": self.domain,
            "strategy": self.strategy,
            "outcome_status": self.outcome,
            "confidence_tier": self.confidence_tier,
            "iteration_count": self.iteration_count,
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: what `ctx experience export` writes and `import` reads."""
        return asdict(self)

    @classmethod
    def of_stored(cls, id: str, stored: Mapping[str, Any]) -> Experience:
        """From the catalog, which may have come from anywhere: what is no text there is none."""
        texts = {name: stored[name] for name in _TEXTS if isinstance(stored.get(name), str)}
        count = stored.get("iteration_count")
        return cls(**{**dict.fromkeys(("goal", "hypothesis", "action", "prediction"), ""), **texts, "id": id},
                   iteration_count=count if type(count) is int and count > 0 else 1)  # fmt: skip


_TEXTS = tuple(name for name in Experience.__slots__ if name != "iteration_count")


def tier_of(outcome: str, iterations: int) -> str:
    """What an experience is worth if nobody says: gold is a hypothesis that held at once, silver a clear result within
    a few iterations, bronze one that took more."""
    if outcome == "abandoned":
        return "abandoned"
    if outcome == "confirmed" and iterations == 1:
        return "gold"
    return "silver" if iterations <= _SOON else "bronze"


@dataclass(frozen=True, slots=True)
class FoundExperience:
    """An experience that fits a question. `score` says how likely it is that it answers, 0 to 1."""

    experience: Experience
    axis: str
    text: str  # what it says on this axis
    score: float
    raw_score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)  # words, vectors


@dataclass(frozen=True, slots=True)
class Value:
    """What a cluster of experiences has in common, in the words of one of them."""

    id: str
    axis: str
    text: str  # a sentence of `experience`, as it stands there
    experience: str  # the id of the one it is quoted from
    cluster_id: str
    cluster_size: int
    similarity_to_centroid: float  # of the sentence
    members: tuple[str, ...] = ()  # ids, those nearest the centroid first; of very large clusters not all
    built_at: str = ""

    def metadata(self) -> dict[str, Any]:
        """Exactly what seed 002 has."""
        names = ("id", "axis", "cluster_id", "cluster_size", "similarity_to_centroid")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "members": list(self.members)}


@dataclass(frozen=True, slots=True)
class FoundValue:
    value: Value
    score: float
    raw_score: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExperienceResults:
    """Experiences that fit a question, best first, and what could not be seen."""

    query: str
    axis: str
    results: Sequence[FoundExperience] = ()
    searched: int = 0  # that the restrictions left
    without_vectors: int = 0  # of these, found by their words only, for now
    notes: tuple[str, ...] = ()  # what went another way than usual


@dataclass(frozen=True, slots=True)
class ValueResults:
    """Values that fit a question, best first."""

    query: str
    results: Sequence[FoundValue] = ()
    searched: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of experiences that came as JSON Lines: ids, in order."""

    added: Sequence[str] = ()
    changed: Sequence[str] = ()
    known: Sequence[str] = ()  # there already, as they are or newer


@dataclass(frozen=True, slots=True)
class LineProblem:
    line: int  # from 1
    error: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ImportedLines:
    """What became of a file's lines."""

    imported: Imported = field(default_factory=Imported)
    failed: int = 0
    problems: tuple[LineProblem, ...] = ()  # the first of those that failed
    still_open: int = 0  # of those that were read: without an outcome, so not found by any question yet


@dataclass(frozen=True, slots=True)
class Removed:
    """Experiences that were removed, and the values that quoted them or were made of little else."""

    ids: Sequence[str] = ()
    values: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AxisValues:
    """How the values of one axis were found. `note` says why there are none."""

    axis: str
    experiences: int
    values: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What came of looking for values. `done` is false where nothing was due, and `note` says why there are none."""

    done: bool
    note: str = ""
    axes: Sequence[AxisValues] = ()
    without_vectors: int = 0  # items that no encoder has seen, for want of time
    seconds: float = 0.0


def axis_items(experience: Experience) -> list[NewItem]:
    """None of one that is still open."""
    from research.store import NewItem  # a command that shows records needs no store

    if experience.is_open:
        return []
    texts = {axis: axis_text(experience, axis) for axis in AXES}
    return [
        NewItem(
            key=f"{experience.id}#{axis}",
            title=experience.goal if axis == "full" else "",
            text=text,
            created_at=experience.closed_at,
            metadata={"axis": axis, **experience.metadata()},
            words=f"{experience.domain} {experience.strategy} {experience.outcome}" if axis == "full" else "",
        )
        for axis, text in texts.items()
        if text
    ]


_FIELDS = {
    "full": "goal hypothesis action prediction outcome_result surprise root_cause lesson",
    "strategy": "action outcome_result lesson",
    "surprise": "surprise",
    "root_cause": "root_cause",
}


def axis_text(experience: Experience, axis: str) -> str:
    """What an axis says of it; empty where it says nothing."""
    return "\n".join(told for told in axis_fields(experience, axis) if told)


def axis_fields(experience: Experience, axis: str) -> tuple[str, ...]:
    """The same in parts, in the experience's own words but for the strategy's name."""
    named = f"{experience.strategy}, {experience.domain}, {experience.outcome}"
    return (
        *((named,) if axis == "strategy" else ()),
        *(getattr(experience, name) for name in _FIELDS[axis].split()),
    )
