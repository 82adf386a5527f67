"""The order of the tests and who runs which: slow files first, a file in one process, all of torch in one process.

`tests/slow.txt` names what is slow: tests of more than half a second, and files whose shared fixtures take that long.
`make quick` leaves those out; `make slow` measures them anew.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

SLOW = Path(__file__).with_name("slow.txt")
SLOW_FROM = 0.5  # seconds
# To import torch and what stands on it takes ten seconds, once for every process that needs it.
TORCH = (
    "tests/cli/test_trust.py",
    "tests/ingest/test_visual.py",
    "tests/research/encoders/",
    "tests/research/governance/test_presidio.py",
    "tests/research/search/test_reranker.py",
    "tests/test_nothing_leaves.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what tests/slow.txt names")
    parser.addoption("--write-slow", action="store_true", help="measure, and write tests/slow.txt")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") and hasattr(os, "sched_setaffinity"):
        # One core for each process of the tests and all it starts: what takes as many threads or readers as there are
        # cores would otherwise do so in each of them at once.
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(config.workerinput["workerid"].removeprefix("gw")) % len(cores)]})
    if config.getoption("write_slow") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Clock(), "clock")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = _slow()
    if config.getoption("quick"):
        left_out = [item for item in items if item.nodeid in slow or _file(item.nodeid) in slow]
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)
    weight: dict[str, float] = defaultdict(float)
    for name, seconds in slow.items():
        weight[_scope(_file(name))] += seconds
    # Stable: what weighs the same stays as it was, so every process has the same order.
    items.sort(key=lambda item: -weight[_scope(_file(item.nodeid))])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _scope(_file(nodeid))

    config.option.loadscopereorder = False  # ours is the better one
    return ByFile(config, log)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _scope(file: str) -> str:
    """What one process runs as a whole."""
    return "torch" if file.startswith(TORCH) else file


def _slow() -> dict[str, float]:
    """Seconds by the name of a test or a file."""
    lines = SLOW.read_text(encoding="utf-8").splitlines() if SLOW.exists() else []
    pairs = (line.split(" ", 1) for line in lines)
    return {name: float(seconds) for seconds, name in pairs}


class _Clock:
    """Adds up what each test took itself, and for each file what its fixtures took."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid if report.when == "call" else _file(report.nodeid)
        self._seconds[name] += report.duration

    def pytest_sessionfinish(self) -> None:
        slow = sorted((name, seconds) for name, seconds in self._seconds.items() if seconds >= SLOW_FROM)
        SLOW.write_text("".join(f"{seconds:.1f} {name}\n" for name, seconds in slow), encoding="utf-8")
