"""What a run of `ctx ingest` or `ctx watch` came to, in words."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.report import IngestSummary, PageOutcome

_KINDS = 6  # of files that were passed over, named in a line


def counts_line(summary: IngestSummary, *, without: Collection[str] = ()) -> str:
    """`added 2, unchanged 7`: what became of the files, empty if there is nothing to tell."""
    counts = {
        "added": summary.count("added"),
        "replaced": summary.count("replaced"),
        "renamed": summary.count("renamed"),
        "unchanged": summary.count("unchanged"),
        "copies": summary.count("copy"),
        "failed": summary.count("failed"),
        "removed": len(summary.removed) + (len(summary.code.removed) if summary.code else 0),
    }
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count and name not in without)


def notes_of(summary: IngestSummary, *, told: bool, prune: bool) -> Iterator[str]:
    """What else there is to say, once: where warnings and failures were `told` as they came, only the rest."""
    from research.reports import page_line

    if not told:
        for outcome in summary.files:
            yield from (f"warning: {outcome.path}: {warning}" for warning in outcome.warnings)
        yield from (f"given up: {page_line(page)}" for page in summary.failed_pages)
        yield from (f"failed: {outcome.path}: {outcome.reason}" for outcome in summary.failed)
    if summary.passed_over:
        yield _passed_over(summary.passed_over)
    if summary.links_not_followed:
        links = _first_of(summary.links_not_followed)
        yield f"warning: links out of the folder were not followed ({links}); --follow-links takes them"
    if summary.dangling_links:
        yield f"warning: links lead nowhere ({_first_of(summary.dangling_links)})"
    for folder in summary.empty_folders:
        yield (
            f"note: {folder} is empty, as it is when a drive is not mounted; what was read from it is kept"
            f" (to remove it: ctx remove {shlex.quote(f'{folder}/*')})"
        )
    if summary.gone and not prune:
        are, they = ("file is", "it") if len(summary.gone) == 1 else ("files are", "they")
        remedy = f"{they} will be found until you remove {'it' if they == 'it' else 'them'}: --prune"
        yield f"note: {len(summary.gone)} {are} gone ({_first_of(summary.gone)}); {remedy}"
    if summary.waiting_pages:
        yield f"note: {_waiting(summary.waiting_pages)}"


def _passed_over(kinds: dict[str, int]) -> str:
    """`passed over 12: .docx 9, .md 3`: files of other kinds, of which a few are named."""
    named = [f"{kind or 'without ending'} {count}" for kind, count in list(kinds.items())[:_KINDS]]
    other = sum(list(kinds.values())[_KINDS:])
    return f"passed over {sum(kinds.values())}: {', '.join(named + [f'other {other}'] * bool(other))}"


def _first_of(names: list[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _waiting(pages: list[PageOutcome]) -> str:
    from research.reports import places

    return f"{places(pages)} given up earlier, not tried in this run; --retry tries again"
