"""One browser a module, and a server on an index of the samples."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser import known, launch
from tests.research.service.web.browsing import ROOT, Served, Visit, served, visit

Visiting = Callable[..., Visit]

expect.set_options(timeout=30_000)  # a machine that tests much at once is slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of a module, not of the run: while it is driven, this thread has an event loop that others could not have."""
    found = known(ROOT / ".venv" / "browser")
    assert found, "there is no browser: make .venv/browser/path finds or brings one"
    with sync_playwright() as driver:
        opened = launch(driver, found[0])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def own_index(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the samples' index, to be served."""
    copy = tmp_path_factory.mktemp("web") / "index"
    shutil.copytree(sample_index, copy)
    return copy


@pytest.fixture(scope="module")
def server(own_index: Path) -> Iterator[Served]:
    with served(own_index, "--allow-ingest") as running:
        yield running


@pytest.fixture
def visiting(browser: Browser, server: Served) -> Iterator[Visiting]:
    """Somebody who is signed in, unless it is said otherwise. What the browser did is checked when the test is over."""
    visits: list[Visit] = []

    def begin(**options: object) -> Visit:
        visits.append(visit(browser, server, **options))  # type: ignore[arg-type]
        return visits[-1]

    yield begin
    for each in visits:
        each.close()
