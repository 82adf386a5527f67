"""ctx doctor: checks, each with its remedy."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cli.options import DebugOption, IndexOption, JsonOption, QuietOption, common

if TYPE_CHECKING:
    from rich.text import Text

    from cli.checks import Check

DETAILS = "Exit code 1 if any check fails; warnings do not count."

EPILOG = """
\b
Examples:
  ctx doctor
  ctx doctor --json | jq '.checks[] | select(.severity != "ok")'
"""

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def command(
    ctx: typer.Context,
    *,
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.checks import run_checks
    from cli.location import locate
    from cli.output import on_terminal, paint, write_document

    checks = run_checks(locate(common(ctx, index, quiet)).paths)
    if as_json:
        counts = Counter(check.severity for check in checks)
        summary = {severity: counts[severity] for severity in ("ok", "warn", "fail")}
        write_document("ctx.doctor/1", {"summary": summary, "checks": [asdict(check) for check in checks]})
    elif on_terminal():
        paint(_line(check) for check in checks)
    else:
        _write_plain(checks)
    return 1 if any(check.severity == "fail" for check in checks) else 0


def _write_plain(checks: list[Check]) -> None:
    from cli.output import write_line

    for check in checks:
        write_line(check.severity, check.name, check.message, *([check.remedy] if check.remedy else []))


def _line(check: Check) -> Text:
    from rich.text import Text

    from cli.terminal import one_line

    return Text.assemble(
        (f"{check.severity:<5}", _STYLES[check.severity]),
        (f"{check.name:<13}", "bold"),
        one_line(check.message),
        (f"\n{'':<18}→ {one_line(check.remedy)}" if check.remedy else "", "dim"),
    )
