"""PDF files into an index.

from ingest import ingest
from research.store.paths import IndexPaths

summary = ingest(IndexPaths(Path(".ctx")), ["reports", "letter.pdf"])

An index is a `research.Index` or its paths. `IngestSummary` tells what became of every file; an `Observer` is told as
it happens. docs/library.md has more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from ingest.code.run import ingest_code, remove_paths
    from ingest.commits.run import ingest_commits, remove_repositories
    from ingest.report import (
        CodeCounts,
        CommitsSummary,
        FileOutcome,
        IngestSummary,
        Observer,
        PageOutcome,
        RepositoryOutcome,
        Stage,
    )
    from ingest.run import ingest
    from ingest.scan import PdfFilter, changes
    from ingest.server_job import start_job
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "code.run": "ingest_code remove_paths",
            "commits.run": "ingest_commits remove_repositories",
            "report": (
                "CodeCounts CommitsSummary FileOutcome IngestSummary Observer PageOutcome RepositoryOutcome Stage"
            ),
            "run": "ingest",
            "scan": "PdfFilter changes",
            "server_job": "start_job",
        },
    )
