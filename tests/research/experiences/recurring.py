"""Our own experiences, of many kinds; and some that say the same things again and again, each in other words: what
values are found in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[3] / "data"

THEMES: dict[str, tuple[str, ...]] = {
    "cache": (
        "The page was served from a stale cache entry.",
        "An outdated cache entry was served long after the data had changed.",
        "The cache was never invalidated when the record changed.",
        "Old content came out of the cache because nothing had cleared it.",
        "A cached copy was returned although the source was newer.",
        "Nobody invalidates the cache after an update, so stale data is shown.",
        "The response cache kept serving stale content.",
    ),
    "zone": (
        "Times were compared in different time zones.",
        "Local time and UTC were mixed up in one comparison.",
        "A timestamp in UTC was read as if it were local time.",
        "The time zone of the server differs from that of the users.",
        "Dates were cut at midnight UTC and not at local midnight.",
        "The time zone was missing, so local time was assumed.",
        "Summer time shifted the local time by an hour against UTC.",
    ),
    "lock": (
        "Two workers updated the same row at the same time without a lock.",
        "A race between two threads: both read the counter before either wrote it.",
        "Concurrent writers overwrote each other because nothing was locked.",
        "Reading and writing the row were two steps, and another process came between.",
        "Without a lock two processes changed the same record at once.",
        "A race condition between two requests that update one row.",
        "Threads shared the counter without any lock around it.",
    ),
    "rights": (
        "The service account lacked permission to read the file.",
        "The file belongs to root, and the service user may not read it.",
        "Permission was denied because the directory is readable by its owner only.",
        "The process runs as a user without the right to write there.",
        "File permissions were too strict for the web server's user.",
        "The user that runs the job has no permission on the directory.",
        "Ownership of the files had changed, so access was denied.",
    ),
    "timeout": (
        "The HTTP call had no timeout and waited for ever.",
        "No timeout was set on the request, so one slow server blocked all.",
        "The client waits without a time limit for an answer that never comes.",
        "A request without a timeout hung until the process was killed.",
        "The default of the HTTP library is no timeout at all.",
        "Waiting for a dead server without any timeout blocked the worker.",
        "The connection hung because nobody had set a timeout.",
    ),
}


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "experiences.jsonl").read_text().splitlines()]


def recurring() -> list[dict[str, Any]]:
    """Thirty-five, of five themes, all of one day."""
    return [
        {
            "id": f"{theme}-{number}",
            "goal": f"Find out why case {number} of {theme} fails",
            "hypothesis": "Something else is broken",
            "action": f"Look into case {number}",
            "prediction": "The something else is found",
            "outcome": "falsified",
            "outcome_result": "It was not that",
            "root_cause": text,
            "domain": "debugging",
            "strategy": "root-cause-analysis",
            "closed_at": f"2026-03-01T00:00:{number:02}Z",
        }
        for theme, texts in THEMES.items()
        for number, text in enumerate(texts)
    ]
