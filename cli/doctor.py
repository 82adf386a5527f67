"""ctx doctor: checks, each with its remedy."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import common

if TYPE_CHECKING:
    from rich.text import Text

    from research.reports import Check

DETAILS = """
With --fix it repairs first what can be repaired (damaged or lost collections, full-text search, the ledger, what
stopped runs left behind), tells what it did and what it could not do, and then checks. Documents are never touched.
Exit code 1 if any check fails; warnings do not count.
"""

EPILOG = """
\b
Examples:
  ctx doctor
  ctx doctor --fix
  ctx doctor --json | jq '.checks[] | select(.severity != "ok")'
"""

# The words of ctx.doctor/1, which scripts know.
_WORDS = {"ok": "ok", "warning": "warn", "error": "fail"}
_STYLES = {"ok": "green", "fixed": "green", "warn": "yellow", "fail": "bold red", "unfixed": "bold red"}


def command(
    ctx: typer.Context,
    *,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired, then check.")] = False,
) -> int:
    from cli.output import on_terminal, paint, write_line
    from cli.running import locate, orderly_end

    given = common(ctx)
    index_ = locate(given).index
    with orderly_end():
        repairs = index_.admin.repair() if fix else []
    checks = index_.admin.check()
    lines = [("fixed" if done.severity == "ok" else "unfixed", done) for done in repairs]
    lines += [(_WORDS[check.severity], check) for check in checks]
    if given.as_json:
        _write_document(repairs if fix else None, checks)
    elif on_terminal():
        paint(_line(word, check) for word, check in lines)
    else:
        for word, check in lines:
            write_line(word, check.name, check.message, *([check.remedy] if check.remedy else []))
    return 1 if any(check.severity == "error" for check in (*repairs, *checks)) else 0


def _write_document(repairs: list[Check] | None, checks: list[Check]) -> None:
    from cli.output import write_document

    counts = Counter(_WORDS[check.severity] for check in checks)
    document: dict[str, Any] = {"summary": {word: counts[word] for word in _WORDS.values()}}
    if repairs is not None:
        document["repairs"] = [
            {"name": done.name, "message": done.message, "fixed": done.severity == "ok", "remedy": done.remedy}
            for done in repairs
        ]
    document["checks"] = [{**asdict(check), "severity": _WORDS[check.severity]} for check in checks]
    write_document("ctx.doctor/1", document)


def _line(word: str, check: Check) -> Text:
    from rich.text import Text

    from research.text import one_line

    return Text.assemble(
        (f"{word:<4} ", _STYLES[word]),
        (f"{check.name:<13}", "bold"),
        one_line(check.message),
        (f"\n{'':<18}→ {one_line(check.remedy)}" if check.remedy else "", "dim"),
    )
