"""How the tests are run: in which order and process, how long each may take, how much is drawn, what was measured.

`make test` leaves out what is marked `slow` and draws the same examples every time; `make test-all` runs all of it,
draws at random, keeps what it finds, and measures coverage.
"""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import Any

import coverage
import pytest
from hypothesis import settings

SLOW_SECONDS = 300  # that a slow test may take; the others have what pyproject.toml says
# To import torch and what stands on it takes ten seconds, once for every process that needs it.
TORCH = (
    "tests/cli/test_trust.py",
    "tests/ingest/test_visual.py",
    "tests/research/encoders/",
    "tests/research/governance/test_people.py",
    "tests/research/search/test_reranker.py",
    "tests/test_nothing_leaves.py",
)
# What starts processes comes first, so that no long file is left for the end.
FIRST = ("torch", "tests/ingest/", "tests/cli/", "tests/research/service/", "tests/research/governance/")

settings.register_profile("same", max_examples=25, deadline=None, derandomize=True, database=None)
settings.register_profile("random", max_examples=100, deadline=None, print_blob=True)
settings.load_profile("same")


def draws(number: int, **more: Any) -> settings:
    """Hypothesis settings for so many examples in `make test-all`, a quarter of them in `make test`."""
    return settings(max_examples=max(1, number * settings().max_examples // 100), **more)


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell has it for what runs in its background; the commands that tests start would hear no Ctrl-C either.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput") and hasattr(os, "sched_setaffinity"):
        # One core for each process of the tests and all it starts: what takes as many threads or readers as there are
        # cores would otherwise do so in each of them at once.
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(config.workerinput["workerid"].removeprefix("gw")) % len(cores)]})


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))
    items.sort(key=lambda item: _turn(_scope(item.nodeid)))  # stable, so every process has the same order


def pytest_collection_finish() -> None:
    gc.freeze()  # six thousand tests and all they import, which every search for garbage would go through again


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    config.option.loadscopereorder = False  # ours is the better one
    return ByFile(config, log)


def _scope(nodeid: str) -> str:
    """What one process runs as a whole."""
    return "torch" if nodeid.startswith(TORCH) else nodeid.partition("::")[0]


def _turn(scope: str) -> int:
    return next((turn for turn, start in enumerate(FIRST) if scope.startswith(start)), len(FIRST))


# xdist kills a process ten seconds after its last test, and one that has loaded torch may take longer to end. So what
# it measured is saved before it says that it is done; and one that did not save is an error, not a lower percentage.
_unmeasured: list[str] = []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    measured = coverage.Coverage.current()
    if output is not None and measured is not None:
        measured.stop()
        measured.save()
        output["measured"] = measured.get_data().data_filename()
    elif _unmeasured:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    saved = getattr(node, "workeroutput", {}).get("measured", "")
    if coverage.Coverage.current() is not None and not (saved and Path(saved).is_file()):
        _unmeasured.append(node.gateway.id)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    for process in _unmeasured:
        terminalreporter.write_line(f"ERROR: the coverage data of test process {process} is lost", red=True)
