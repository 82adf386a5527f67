"""A catalog with a little of everything that a policy decides about, and policies written for a test."""

from __future__ import annotations

import json
from pathlib import Path

from research.governance.access import Principal
from research.governance.enforce import PolicyAccess
from research.governance.labels import Labels
from research.governance.policy import MemoryAccessPolicy
from research.records import DocumentInfo
from research.settings import Settings
from research.store import NewItem
from tests.research.store.index_making import Making
from tests.research.store.memory_making import tell, told

EVERYTHING = "permit (principal, action, resource);"
EXAMPLE = (Path(__file__).parents[3] / "research/governance/example.cedar").read_text()


class GovernedIndex(Making):
    """One document of three pages, one of one, a file of code, a commit, an experience with a value, memories."""

    def __init__(self, root: Path) -> None:
        super().__init__(root / "index")
        self.config = root / "config"
        self.config.mkdir(mode=0o700)
        self.report = self.add("report.pdf", ["first page", "second page", "third page"], folder="/docs/hr")
        self.paper = self.add("paper.pdf", ["a paper"], folder="/docs/papers")
        self.catalog.labels.add_tags([self.paper.doc_id], ["open"])
        items = [NewItem("/src/a.py#swim", "swim", "def swim(): ...", metadata={"signature": "swim()"})]
        self.catalog.items.put("code", "/src/a.py", "1", items)
        commit = NewItem("c0ffee", "Mend it", "diff", metadata={"files_changed": ["keys/a.txt"]})
        self.catalog.items.put("commit", "/repo/.git", "1", [commit])
        axis = NewItem("exp#full", "a goal", "what was tried")
        self.catalog.items.put("experience", "exp", "1", [axis])
        value = NewItem("val", "", "look first", metadata={"experience": "exp", "members": ["exp"]})
        self.catalog.items.put("value", "full", "1", [value])
        tell(self.catalog, "", told("mine", id="mine"))
        tell(self.catalog, "anna", told("hers", id="hers", tags=json.dumps(["private"])))
        tell(self.catalog, "anna", told("a summary of it", id="sum", sources=("hers",)))
        self.labels = Labels(lambda: self.catalog)

    def page(self, number: int, document: DocumentInfo | None = None) -> str:
        return f"page:{(document or self.report).doc_id}#{number}"

    def write(self, policy: str, name: str = "policy.cedar") -> Path:
        path = self.config / name
        path.write_text(policy)
        path.chmod(0o600)
        return path

    def policy(self, text: str | None = None, setting: str = "") -> MemoryAccessPolicy:
        if text is not None:
            self.write(text)
        return MemoryAccessPolicy(setting, config=self.config, index=self.paths.root)

    def classify(self, target: str, level: str, **rest: str) -> None:
        self.labels.put(target, {"classification": level, **rest})

    def access(self, principal: Principal, text: str | None = None, **rest: object) -> PolicyAccess:
        return PolicyAccess(principal, self.policy(text), Settings(), lambda: self.catalog, **rest)  # type: ignore[arg-type]


def policy_of(tmp_path: Path, text: str) -> str:
    path = tmp_path / "policy.cedar"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)
