"""An index with something of every kind, all of it about one small program, made by the real ways in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ingest import Observer, ingest, ingest_code, ingest_commits
from research.index import Index
from research.settings import Settings
from research.store import IndexPaths
from tests.conftest import write_pdf

MANUAL = [
    "Uploads\n\nAn upload is sent in parts. A part that fails is sent again, three times at most, with growing pauses.",
    "Limits\n\nA part has five megabytes. The server closes connections that are idle for a minute.",
]
MEMORIES = [
    ("Ana owns the upload queue and wants to be asked before it changes.", "decision", 0.9),
    ("Deploys happen on Tuesdays.", "fact", 0.4),
    ("The staging server drops every tenth part of an upload on purpose.", "fact", 0.7),
]
FUNCTIONS = {
    "send_part": "Send one part of an upload, again if the server closes the connection.",
    "pause_before": "Seconds to wait before a retry: twice as long each time.",
    "render_table": "Draw rows and columns with borders.",
}
COMMITS = {
    "src/retry.py": "Pause longer after each failed upload\n\nThe server was asked too often.",
    "src/table.py": "Draw borders of tables with box characters",
    "docs/limits.md": "Say how large a part may be",
}
EXPERIENCES = [
    {
        "goal": f"Find why uploads stop {when}",
        "hypothesis": f"The {cause} is at fault",
        "action": f"Logged every answer of the {cause}",
        "prediction": "The log shows a refused part",
        "domain": "debugging",
        "strategy": strategy,
        "outcome": outcome,
        "outcome_result": f"The {cause} {'was' if outcome == 'confirmed' else 'was not'} the reason",
        "surprise": f"The {cause} had closed the connection before the first part",
        "root_cause": f"An idle limit of the {cause} that nobody knew of",
        "lesson": "Read the log of the other side first",
    }
    for when, cause, strategy, outcome in [
        ("at night", "proxy", "read-the-error", "falsified"),
        ("after a minute", "load balancer", "read-the-error", "falsified"),
        ("on Mondays", "scheduler", "systematic-elimination", "falsified"),
        ("for large files", "disk", "read-the-error", "confirmed"),
    ]
]


def fill(root: Path) -> None:
    folder = root.with_name("of-everything")
    write_pdf(folder / "manual.pdf", MANUAL)
    assert not ingest(IndexPaths(root), [folder], settings=Settings(), observer=Observer()).failed
    ingest_commits(IndexPaths(root), repository(folder / "app"))
    with Index.open(root) as index:
        for text, category, importance in MEMORIES:
            index.memories.remember(text, category=category, importance=importance)
        index.memories.remember("Eva's secret upload key is under the mat.", tenant="eva")
        index.experiences.put(EXPERIENCES)
    ingest_code(IndexPaths(root), folder / "app" / "src" / "uploads.py")


def code() -> str:
    """A module whose first function begins on line 3."""
    made = [
        f'def {name}(part: bytes) -> None:\n    """{told}"""\n    print(part)\n' for name, told in FUNCTIONS.items()
    ]
    return "\n\n".join(['"""Uploads in parts."""\n\n' + made[0], *made[1:]])


def repository(folder: Path) -> Path:
    """A git repository with a commit a file."""
    folder.mkdir(parents=True)
    who = {
        "GIT_AUTHOR_NAME": "Ana",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "Ana",
        "GIT_COMMITTER_EMAIL": "-",
    }
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}

    def git(*args: str) -> None:
        subprocess.run(["git", *args], cwd=folder, env=environment, check=True, capture_output=True)

    git("init", "-q")
    for name, message in COMMITS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{message}\n")
        git("add", name)
        git("commit", "-q", "-m", message)
    (folder / "src" / "uploads.py").write_text(code())
    return folder
