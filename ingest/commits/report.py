"""What became of the repositories whose commits were read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Result = Literal["read", "failed", "removed"]


@dataclass(frozen=True, slots=True)
class RepositoryOutcome:
    """What became of one repository. `commits` are those it has in the index now."""

    path: str
    result: Result
    repository: str = ""  # the folder in which git keeps it
    commits: int = 0
    added: int = 0
    removed: int = 0  # no longer reachable, or the repository is gone
    elsewhere: int = 0  # in the index already, from another copy of the repository
    damaged: int = 0  # taken without their changes, which git cannot show
    unreadable: int = 0  # left out
    reason: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()


@dataclass
class CommitsSummary:
    """The account of a run."""

    repositories: list[RepositoryOutcome] = field(default_factory=list)
    embedded: int = 0  # in this run
    pending: int = 0  # still without a vector
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def failed(self) -> list[RepositoryOutcome]:
        return [each for each in self.repositories if each.result == "failed"]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}
