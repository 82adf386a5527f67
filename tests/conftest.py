"""What every test stands on: no network, no settings of the person running it, one index of the samples."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pymupdf
import pytest
from filelock import FileLock

from ingest import Observer, ingest
from research.index import checks
from research.lazy import switch_off
from research.settings import Settings
from research.store import ChromaClient, IndexPaths
from tests.research.encoders.tiny_text import make_tiny_cross, make_tiny_text
from tests.research.encoders.visual.tiny import make_tiny, make_tiny_adapter
from tests.serving import allow_loopback, start_llama

pytest_plugins = ["tests.loopback", "tests.pace"]

switch_off()

SAMPLES = Path(__file__).parent.parent / "data" / "samples"

MakePdf = Callable[..., Path]
Tiny = Callable[[str], Path]


def _leave_home(patch: pytest.MonkeyPatch, factory: pytest.TempPathFactory) -> None:
    home = factory.getbasetemp() / "home"
    home.mkdir(exist_ok=True)
    for name in [name for name in os.environ if name.startswith(("CTX_", "XDG_"))]:
        patch.delenv(name)
    patch.setenv("HOME", str(home))


@pytest.fixture(autouse=True, scope="session")
def _fixtures_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fixtures of a module or session are made before those of its first test, and must not see the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        _leave_home(patch, tmp_path_factory)
        yield


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    _leave_home(monkeypatch, tmp_path_factory)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """For Python code in this process. The commands that tests start are watched by the kernel (network_guard)."""

    def refuse(*address: object) -> None:
        raise AssertionError(f"a test tried to reach the network: {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def loopback(_no_network: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers on this machine may be reached; nothing else may."""
    allow_loopback(monkeypatch)


@pytest.fixture(scope="session")
def _llama() -> Iterator[str]:
    server, address = start_llama()
    yield address
    del server


@pytest.fixture
def llama(_llama: str, loopback: None) -> str:
    """The address of a real server of vectors; its key is serving.KEY."""
    return _llama


# The variables that make a process measure its coverage.
MEASURE = {name: value for name, value in os.environ.items() if name == "COVERAGE_PROCESS_CONFIG"}


@pytest.fixture(scope="session", autouse=True)
def _unmeasured_children() -> Iterator[None]:
    """Processes that tests start are not measured, for it doubles their time, and nearly all they do is also done in
    the process of the tests. `spawn` and `on_terminal` of tests/cli measure theirs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in MEASURE:
            patch.delenv(name)
        yield


@pytest.fixture(scope="session", autouse=True)
def _looked_once() -> Iterator[None]:
    """What `doctor` sees when it tries out telemetry is the same for all tests of a process, and takes two seconds.
    tests/test_nothing_leaves.py looks by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "look", cache(checks.look))
        yield


@contextmanager
def _own_time() -> Iterator[None]:
    """What is built for all tests, and waiting for it, is not counted as the time of the test that needs it first."""
    from tests.pace import SLOW_SECONDS  # a plugin, which must be loaded first

    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)  # pytest-timeout's clock
    if left:
        signal.setitimer(signal.ITIMER_REAL, SLOW_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)


def built_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that all processes of a test run share; the first that needs it makes it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    done = folder.with_name(f"{name}.done")
    with _own_time(), FileLock(f"{folder}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def sample_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of data/samples, made once by a real run. Tests only read it."""

    def make(root: Path) -> None:
        summary = ingest(IndexPaths(root), [SAMPLES], settings=Settings(), observer=Observer())
        assert not summary.failed

    return built_once(tmp_path_factory, "sample-index", make)


@pytest.fixture(scope="session")
def of_everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with something of every kind, made once. Tests only read it."""
    from tests.research.sources.everything import fill  # which makes its PDFs with this file

    return built_once(tmp_path_factory, "everything", fill)


@pytest.fixture(scope="session")
def tiny_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny sentence-transformers model. Tests that change it take a copy."""

    def make(folder: Path) -> None:
        make_tiny_text(folder, dense=True)

    return built_once(tmp_path_factory, "tiny-text", make)


@pytest.fixture(scope="session")
def tiny_cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny cross-encoder. Tests that change it take a copy."""

    def make(folder: Path) -> None:
        make_tiny_cross(folder)

    return built_once(tmp_path_factory, "tiny-cross", make)


@pytest.fixture
def samples(sample_index: Path) -> Iterator[ChromaClient]:
    with ChromaClient(sample_index) as client:
        yield client


def write_pdf(path: Path, pages: Sequence[str]) -> Path:
    """A PDF with the given text on each page."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pymupdf.open() as document:
        for text in pages:
            page = document.new_page()
            page.insert_textbox(pymupdf.Rect(72, 72, 520, 760), text, fontsize=11)
        document.save(path)
    return path


@pytest.fixture
def make_pdf(tmp_path: Path) -> MakePdf:
    """Writes a PDF with the given text on each page."""

    def make(name: str, pages: Sequence[str], folder: Path | None = None) -> Path:
        return write_pdf((folder or tmp_path) / name, pages)

    return make


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """The folder of a tiny checkpoint: one of tiny.FAMILIES, the first two also with "+adapter"."""

    def folder(name: str) -> Path:
        family, _, adapter = name.partition("+")

        def make(made: Path) -> None:
            if adapter:
                make_tiny_adapter(made, folder(family))
            else:
                make_tiny(made, family)

        return built_once(tmp_path_factory, f"tiny-{name}", make)

    return folder
