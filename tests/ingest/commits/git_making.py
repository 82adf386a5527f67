"""Repositories made by git for a test: in order, quick, and without the settings of whoever runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ada Lovelace",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada Lovelace",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


class Made:
    """A repository in a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.seconds = 1_700_000_000
        self.git("init", "-q", "-b", "main", *options)

    def git(self, *arguments: str, told: bytes = b"", **variables: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            input=told,
            env={**os.environ, **_SETTINGS, **variables},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode("utf-8", "replace").strip()

    def commit(self, message: str | bytes, files: dict[str, str | bytes] | None = None, **variables: str) -> str:
        """The id of a new commit with these files."""
        for name, content in (files or {}).items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        if files:
            self.git("add", "--", *files)
        self.seconds += 60
        date = f"{self.seconds} +0000"
        told = message.encode() if isinstance(message, str) else message
        self.git(
            *("commit", "-q", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-F", "-"),
            told=told,
            **{"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, **variables},
        )
        return self.git("rev-parse", "HEAD")

    def lose(self, thing: str) -> None:
        """Take an object out of it, as a disk that fails does."""
        sha = self.git("rev-parse", thing)
        path = Path(self.git("rev-parse", "--absolute-git-dir")) / "objects" / sha[:2] / sha[2:]
        path.chmod(0o600)
        path.unlink()
