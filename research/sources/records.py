"""The records of seed 002: what a searcher finds of each kind, an item of context, and a context of several sources.

`MemoryResult` … `DocumentResult` are what a `Searcher` gives. `score` is calibrated: how likely it is that this answers
the question, 0 to 1, and means the same for every kind. Times are ISO 8601.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from research.models import Coverage, Item, Ref

if TYPE_CHECKING:
    from research.experiences import Experience

T = TypeVar("T")

SOURCES: Mapping[str, str] = {
    "memories": "memory",
    "code": "code",
    "experiences": "experience",
    "values": "value",
    "commits": "commit",
    "documents": "document",
}
"""Every type of context, in the order of its sections, and what one item of it is called."""

CONTEXT_TYPES = tuple(SOURCES)


class Results(list[T], Generic[T]):
    """What a search found, best first. `notes` say what went another way than usual; `off` why it is not searched."""

    def __init__(self, found: Iterable[T] = (), notes: Iterable[str] = (), off: str = "") -> None:
        super().__init__(found)
        self.notes = tuple(notes)
        self.off = off


@dataclass(frozen=True, slots=True)
class MemoryResult:
    id: str
    content: str
    score: float
    category: str = ""
    importance: float = 0.5  # 0 to 1
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class CodeResult:
    qualified_name: str
    file_path: str
    start_line: int
    end_line: int
    score: float
    unit_type: str = "function"
    name: str = ""  # the qualified one, where it is empty
    language: str = "python"
    signature: str = ""
    docstring: str = ""
    path: str = ""  # the whole one of its file, where it is known
    ref: str = ""


@dataclass(frozen=True, slots=True)
class ExperienceResult:
    id: str
    domain: str
    strategy: str
    goal: str
    hypothesis: str
    action: str
    prediction: str
    outcome_status: str
    score: float
    outcome_result: str = ""
    surprise: str = ""
    root_cause: str = ""
    lesson: str = ""  # what worked
    confidence_tier: str = ""
    iteration_count: int = 1
    created_at: str = ""
    axis: str = "full"


@dataclass(frozen=True, slots=True)
class ValueResult:
    id: str
    text: str
    score: float
    axis: str = "full"
    cluster_id: str = ""
    cluster_size: int = 0
    similarity_to_centroid: float = 0.0
    experience: str = ""  # the id of the experience in whose words it is told


@dataclass(frozen=True, slots=True)
class CommitResult:
    sha: str
    message: str
    score: float
    author: str = ""
    timestamp: str = ""
    files_changed: tuple[str, ...] = ()
    insertions: int = 0
    deletions: int = 0
    repository: str = ""  # the folder that its files are named from, where it is known


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """A page, with the passages that fit the question."""

    item: Item

    @property
    def score(self) -> float:
        return self.item.score


Result = MemoryResult | CodeResult | ExperienceResult | ValueResult | CommitResult | DocumentResult


@dataclass
class ContextItem:
    """A single piece of context from any source."""

    source: str  # "memory", "code", "experience", "value", "commit" or "document"
    content: str  # as it is shown
    relevance: float  # 0 to 1: the score, adjusted by confidence, importance and recency
    metadata: dict[str, Any]
    score: float = 0.0  # as the source gave it: how likely it is that this answers
    ref: str = ""  # its lasting name
    truncated: bool = False
    suspicious: list[str] = field(default_factory=list)  # why its text may try to steer a model

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class FormattedContext:
    """Context of several sources, ready to be handed to a model."""

    markdown: str = ""
    items: list[ContextItem] = field(default_factory=list)  # the most relevant first
    token_count: int = 0  # of the markdown, exactly
    sources_used: dict[str, int] = field(default_factory=dict)  # type of context → items
    limit_exceeded: bool = False  # never: the limit is hard
    max_tokens: int = 0
    left_out: dict[str, int] = field(default_factory=dict)  # type of context → items found that did not fit
    duplicates: int = 0  # items that another one of a higher score says already
    coverage: Coverage = field(default_factory=Coverage)
    timings: dict[str, float] = field(default_factory=dict)  # seconds by step

    @property
    def failed(self) -> bool:
        """Whether nothing could be asked at all."""
        return bool(self.coverage.sources) and all(each.status == "down" for each in self.coverage.sources)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy."""
        fields = asdict(self)
        return fields | {"coverage": {name: fields["coverage"][name] for name in ("sources", "notes")}}


def item_of(found: Result | Item) -> Item:  # noqa: PLR0911  one for each kind
    """What a searcher found as the pipeline has it."""
    match found:
        case Item():
            return found
        case DocumentResult():
            return found.item
        case MemoryResult():
            facts = {"category": found.category, "importance": found.importance}
            return _item("memory", found.id, found.content, found.score, facts, found.created_at)
        case CodeResult():
            body = "\n".join(part for part in (found.signature, found.docstring) if part.strip())
            ref = (found.ref or f"code:{found.file_path}#{found.qualified_name}").removeprefix("code:")
            return _item("code", ref, body, found.score, _facts(found, "signature", "docstring"))
        case ExperienceResult():
            text = in_words(found, found.outcome_status)
            return _item("experience", found.id, text, found.score, _facts(found), found.created_at)
        case ValueResult():
            return _item("value", found.id, found.text, found.score, _facts(found, "text"))
        case CommitResult():
            facts = _facts(found, "message") | {"files_changed": list(found.files_changed)}
            return _item("commit", found.sha, found.message, found.score, facts, found.timestamp)


def in_words(experience: ExperienceResult | Experience, outcome: str) -> str:
    """An experience with its parts named: a hypothesis that turned out to be wrong must not read as if it were so.
    Further lines of a part are indented."""
    outcome = " - ".join(filter(None, (outcome, experience.outcome_result)))
    parts = {
        "Goal": experience.goal,
        "Hypothesis": experience.hypothesis,
        "Action": experience.action,
        "Prediction": experience.prediction,
        "Outcome": outcome,
        "Surprise": experience.surprise,
        "Lesson": experience.lesson,
        "Root cause": experience.root_cause,
    }
    shown = {name: "\n".join(text.splitlines()).strip() for name, text in parts.items() if text}
    return "\n".join(f"{name}: {text}".replace("\n", "\n  ") for name, text in shown.items() if text)


def _item(  # noqa: PLR0917  as an item has them
    kind: str, key: str, text: str, score: float, facts: dict[str, Any], created_at: str = ""
) -> Item:
    from research.context import signals_of

    # A key of another's may hold anything: it is a name and nothing that is looked up.
    return Item(Ref(kind, key), "", text, score, created_at=created_at, metadata=facts, signals=tuple(signals_of(text)))


def _facts(found: Result, *without: str) -> dict[str, Any]:
    left_out = {"id", "score", "ref", *without}
    return {each.name: getattr(found, each.name) for each in fields(found) if each.name not in left_out}
