"""ctx doctor: checks, each with its remedy."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import DebugOption, IndexOption, JsonOption, QuietOption, common, settings_for

if TYPE_CHECKING:
    from rich.text import Text

    from cli.checks import Check
    from research.store.files.paths import IndexPaths
    from research.store.upkeep.repair import Repair

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

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def command(
    ctx: typer.Context,
    *,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired, then check.")] = False,
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.checks import run_checks
    from cli.location import locate
    from cli.output import on_terminal, paint, write_document

    given = common(ctx, index, quiet)
    paths = locate(given).paths
    repairs = _mend(paths) if fix else []
    checks = run_checks(paths, settings_for(given).named_encoders)
    if as_json:
        counts = Counter(check.severity for check in checks)
        summary = {severity: counts[severity] for severity in ("ok", "warn", "fail")}
        told = {"repairs": [asdict(repair) for repair in repairs]} if fix else {}
        write_document("ctx.doctor/1", {"summary": summary, **told, "checks": [asdict(check) for check in checks]})
    elif on_terminal():
        paint([*(_repair_line(repair) for repair in repairs), *(_line(check) for check in checks)])
    else:
        _write_plain(repairs, checks)
    unmended = any(not repair.fixed for repair in repairs)
    return 1 if unmended or any(check.severity == "fail" for check in checks) else 0


def _mend(paths: IndexPaths) -> list[Repair]:
    from cli.signals import orderly_end
    from research.store.upkeep.repair import mend

    with orderly_end():
        return mend(paths) if paths.exists else []


def _write_plain(repairs: list[Repair], checks: list[Check]) -> None:
    from cli.output import write_line

    for repair in repairs:
        said = "fixed" if repair.fixed else "unfixed"
        write_line(said, repair.name, repair.message, *([repair.remedy] if repair.remedy else []))
    for check in checks:
        write_line(check.severity, check.name, check.message, *([check.remedy] if check.remedy else []))


def _repair_line(repair: Repair) -> Text:
    from rich.text import Text

    from cli.terminal import one_line

    return Text.assemble(
        ("fixed " if repair.fixed else "unfixed ", "green" if repair.fixed else "bold red"),
        (f"{repair.name:<13}", "bold"),
        one_line(repair.message),
        (f"\n{'':<18}→ {one_line(repair.remedy)}" if repair.remedy else "", "dim"),
    )


def _line(check: Check) -> Text:
    from rich.text import Text

    from cli.terminal import one_line

    return Text.assemble(
        (f"{check.severity:<5}", _STYLES[check.severity]),
        (f"{check.name:<13}", "bold"),
        one_line(check.message),
        (f"\n{'':<18}→ {one_line(check.remedy)}" if check.remedy else "", "dim"),
    )
