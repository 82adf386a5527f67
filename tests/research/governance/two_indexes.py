"""Two real indexes from the same files: one of all there is, one in which what is secret was never ingested. Whatever
is secret lies below a folder of that name, has the tag of that name, or is named here."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

from ingest import Observer, ingest, ingest_code, ingest_commits
from research.governance.access import Principal, owner_principal
from research.index import Index
from research.settings import Settings
from research.store import IndexPaths, NewItem
from research.units import Structure
from tests.conftest import write_pdf
from tests.ingest.commits import git_making

NAME = "two-indexes"
WHOLE, WITHOUT = "whole", "without"
THEN = "2026-01-02T03:04:05+00:00"
TENANT = "lab"
OWNER, ANNA = owner_principal(), Principal("anna", TENANT)

OPEN_WORDS = ("office", "herring", "walrus", "budget", "upload", "pool", "supplier", "contract", "handbook")
SECRET_WORDS = ("quokkaprice", "vorontsova", "acquisition", "negotiator", "severance", "xanthippe", "layoff")

_FILLER = "The gates were shut before noon and the office was quiet. " * 6
_DOCUMENTS: Mapping[str, Sequence[str]] = {
    "open/handbook.pdf": [
        f"Office handbook\n\nThe office opens at nine. A budget for herring is kept by the walrus pool. {_FILLER}",
        f"Suppliers\n\nThe supplier of herring has a contract until May. Uploads of figures go to Ms Lind. {_FILLER}",
    ],
    "secret/acquisition.pdf": [
        f"Acquisition offer\n\nThe quokkaprice is 47 million; the negotiator is Xanthippe Vorontsova. {_FILLER}",
        f"Fallback\n\nThe office is sold with the walrus pool if the acquisition fails. Severance is paid. {_FILLER}",
    ],
    "open/minutes-2024.pdf": [f"Minutes of 2024\n\nThe budget of the pool was 4,000; the herring was late. {_FILLER}"],
    "secret/minutes-2025.pdf": [f"Minutes of 2025\n\nThe layoff of the pool is decided; herring stops. {_FILLER}"],
    "open/minutes-2023.pdf": [
        f"Minutes of 2023\n\nThe walrus budget and the supplier's contract were signed. {_FILLER}"
    ],
}
_MEMORIES = (
    ("", "open-1", "The walrus pool has a budget of 4,000 for herring", ()),
    ("", "secret-1", "The quokkaprice of the office is known to Vorontsova alone", ("secret",)),
    ("", "open-2", "Ask the supplier about the contract before the upload", ()),
    (TENANT, "open-3", "Anna keeps the upload of herring figures", ()),
    (TENANT, "secret-3", "Anna heard of the acquisition and the layoff of the pool", ("secret",)),
)
SECRET_REFS = ("experience:secret-e1", "experience:secret-e2", "value:secret-v")
"""What no path and no tag tells of."""


def fill(root: Path) -> None:
    """Both, in folders of their names."""
    files = root / "files"
    for name, pages in _DOCUMENTS.items():
        write_pdf(files / name, pages)
    for folder, word in (("open", "herring"), ("secret", "quokkaprice")):
        (files / folder / "app").mkdir()
        (files / folder / "app" / f"{word}.py").write_text(
            f'def count_{word}(upload: int) -> int:\n    """Count the {word} of an upload for the office budget."""\n'
            "    return upload + 1\n"
        )
        repository = git_making.Made(files / folder / "repository")
        repository.commit(f"Count the {word} of an upload for the budget", {f"{word}.txt": word})
    for name in (WHOLE, WITHOUT):
        _fill(root / name, files, whole=name == WHOLE)


def _fill(root: Path, files: Path, *, whole: bool) -> None:
    paths, kinds = IndexPaths(root), ("open", "secret") if whole else ("open",)
    settings, observer = Settings(ocr="off", images=False), Observer()
    for name in _DOCUMENTS:
        if name.split("/")[0] in kinds:  # one run each: in the order of the whole
            assert not ingest(paths, [files / name], settings=settings, observer=observer).failed
    for kind in kinds:
        ingest_code(paths, files / kind / "app")
        ingest_commits(paths, files / kind / "repository")
    with Index.open(root) as index:
        for tenant, name, text, tags in _MEMORIES:
            if name.split("-")[0] in kinds:
                index.memories.remember(text, tenant=tenant, id=name, tags=tags, created_at=THEN)
        told = [_experience(f"{kind}-e{number}", kind) for number in (1, 2) for kind in kinds]
        index.experiences.put(told)
        for kind in kinds:
            members = {"experience": f"{kind}-e1", "members": [f"{kind}-e1", f"{kind}-e2"], "axis": "full"}
            value = NewItem(f"{kind}-v", "", f"Look at the {kind} upload first", metadata=members)
            index.catalog.items.put("value", f"full-{kind}", "1", [value], short=True)
        index.documents.tag("minutes-2024.pdf", "minutes")
        if whole:
            index.documents.tag("minutes-2025.pdf", "minutes", "secret")
        index.memories.maintain()
        index.experiences.embed()
        index.experiences.search_values("upload")
        index.graph.update()
    with closing(sqlite3.connect(root / "catalog.sqlite3")) as catalog, catalog:
        for statement in (
            "UPDATE documents SET timestamp = :then",
            "UPDATE items SET created_at = :then",
            "UPDATE item_parents SET read_at = :then",
            "UPDATE memories SET created_at = :then, told_at = :then, used_at = ''",
        ):
            catalog.execute(statement, {"then": THEN})


def _experience(name: str, kind: str) -> dict[str, str]:
    word = "herring" if kind == "open" else "quokkaprice"
    return {
        "id": name, "goal": f"Find why the upload of {word} stops", "hypothesis": f"The {word} pool is at fault",
        "action": f"Logged every {word}", "prediction": f"The log shows a refused {word} upload",
        "domain": "debugging", "strategy": "read-the-error", "outcome": "falsified",
        "outcome_result": f"The {word} was not the reason", "surprise": f"The {word} office had closed it",
        "root_cause": f"An idle limit of {word}", "lesson": f"Read the {word} log first",
        "started_at": THEN, "updated_at": THEN, "closed_at": THEN,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rules:
    """A way to deny what is secret, and nothing else, to a principal. `labels`: target → classification."""

    name: str
    principal: Principal
    policy: str
    labels: Mapping[str, str]


_ALL_BUT_RESTRICTED = 'permit (principal, action, resource) unless { resource.classification == "Restricted" };'
_NAMED = " || ".join(f'resource.ref == "{ref}"' for ref in SECRET_REFS)
RULES = (
    Rules(
        "labels", OWNER, _ALL_BUT_RESTRICTED,
        dict.fromkeys(("path:*/files/secret", "memory:secret-1", *SECRET_REFS, "tag:secret"), "Restricted"),
    ),
    Rules(
        "attributes", OWNER,
        "permit (principal, action, resource);"
        ' forbid (principal, action, resource) when { resource.path like "*/files/secret*" };'
        ' forbid (principal, action, resource) when { resource.tags.contains("secret") };'
        f" forbid (principal, action, resource) when {{ {_NAMED} }};",
        {},
    ),
    Rules(
        "another tenant", ANNA,
        f"{_ALL_BUT_RESTRICTED}\nforbid (principal, action, resource)"
        ' when { resource.kind == "memory" && resource.tags.contains("secret") };',
        dict.fromkeys(("path:*/files/secret", *SECRET_REFS), "Restricted"),
    ),
)  # fmt: skip


class Both:
    """The two, each in turn at the same place, under the same rules."""

    def __init__(self, made: Path, folder: Path) -> None:
        self._made, self._folder = made, folder
        self.policy = folder / "policy.cedar"

    @contextmanager
    def at(self, name: str, rules: Rules) -> Iterator[Path]:
        root = self._folder / "index"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self._made / name, root)
        self.policy.write_text(rules.policy)
        self.policy.chmod(0o600)
        with closing(sqlite3.connect(root / "catalog.sqlite3")) as catalog, catalog:
            catalog.executemany(
                "INSERT INTO labels VALUES ('', ?, 'classification', ?, 'user', ?)",
                [(target, level, THEN) for target, level in rules.labels.items()],
            )
        yield root


# What is random by design, or tells the time.
_LEFT_OUT = frozenset({
    "timings", "seconds", "trace_id", "traceId", "contextPackageId", "context_package_id", "contextBuildRequestId",
    "context_build_request_id", "policyDecisionId", "policy_decision_id", "graphProjectionId", "graph_projection_id",
    "createdAt", "created_at", "expiresAt", "expires_at", "used_at", "asked_at", "began_at", "last_at",
    "last_used_at", "structure", "page_id",
})  # fmt: skip


def plain(given: Any) -> Any:
    """All of an answer that is no time and no random id, as JSON has it."""
    if hasattr(given, "model_dump"):
        given = given.model_dump(mode="json", by_alias=True)
    elif is_dataclass(given) and not isinstance(given, type):
        given = asdict(given)
    if isinstance(given, Mapping):
        kept = {str(key): plain(value) for key, value in given.items() if key not in _LEFT_OUT}
        # How recent something is depends on when it is asked, and the score of a package's source on that.
        aged = {"recency", "relevance"} & {*kept, *(kept.get("parts") or ())}
        return {key: round(each, 4) if aged and isinstance(each, float) else each for key, each in kept.items()}
    if isinstance(given, list | tuple):
        return [plain(each) for each in given]
    if isinstance(given, Structure):
        return given.text
    return given if isinstance(given, str | int | float | bool | None) else repr(given)


def said(given: Any) -> str:
    return json.dumps(plain(given), ensure_ascii=False, indent=1, sort_keys=True)
