"""README and docs/ tell the truth: their examples run, their settings are the ones there are."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from research.settings import Settings
from tests.in_process import Ran, run_in_process

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [block for page in PAGES for block in re.findall(r"```(\w+)\n(.*?)```", page.read_text(), re.DOTALL)]
LINES = [line[2:] for kind, body in BLOCKS if kind == "console" for line in body.splitlines() if line.startswith("$ ")]
SHELL = [part for line in LINES if not line.startswith("make ") for part in line.split(" && ")]
PIPES = [line for line in SHELL if "|" in line]


@pytest.fixture(scope="module")
def place(sample_index: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader would stand in: the samples beside it, an index that may be written."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "data").mkdir()
    shutil.copytree(ROOT / "data" / "samples", folder / "data" / "samples")
    shutil.copy(ROOT / "data" / "questions.jsonl", folder / "data")
    shutil.copytree(sample_index, folder / ".ctx")
    return folder


def run(command: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=pytest.mark.slow if line in PIPES[1:] else ()) for line in SHELL]
)
def test_shell_examples_run(line: str, place: Path) -> None:
    if line not in PIPES:
        ran = run_in_process(*shlex.split(line)[1:], cwd=place)
    else:
        done = run(["bash", "-o", "pipefail", "-c", line], place)
        ran = Ran(0 if done.returncode == 141 else done.returncode, done.stdout, done.stderr)  # `head` closed the pipe
    assert ran.code == 0, ran.err
    assert "Traceback" not in ran.err
    assert ran.out.strip()


def test_the_library_example_runs(place: Path) -> None:
    for code in dict.fromkeys(body for kind, body in BLOCKS if kind == "python"):
        done = run([sys.executable, "-c", code], place)
        assert done.returncode == 0, done.stderr
        assert re.search(r"^\[1\] saltmarsh-handbook-\d{4}\.pdf, page 7$", done.stdout, re.MULTILINE)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^\$ make (\w+)", README, re.MULTILINE)
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_it_is_short_and_links_to_what_there_is() -> None:
    assert (ROOT / "README.md").stat().st_size <= 8_000
    for page in PAGES:
        for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
    assert {f"docs/{page.name}" for page in PAGES[1:]} <= set(re.findall(r"\((docs/[\w-]+\.md)\)", README))


def test_all_settings_are_named() -> None:
    told = (ROOT / "docs" / "settings.md").read_text()
    for field in dataclasses.fields(Settings):
        assert f"`{field.name}`" in told
