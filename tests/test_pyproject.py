"""What pyproject.toml says is so: every package that the code imports is asked for by name."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


# Modules that do not bear the name of their distribution.
OTHER_NAMES = {
    "PIL": "pillow",
    "Stemmer": "PyStemmer",
    "chromadb_rust_bindings": "chromadb",
    "mcp_types": "mcp",  # of exactly its version
    "opentelemetry": "opentelemetry-sdk",
    "sklearn": "scikit-learn",
}


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~ ;]", requirement)[0]).lower()


def _imported() -> Iterator[tuple[str, str]]:
    """Each top-level package that a file of ours imports, and that file."""
    for path in (path for package in (*PACKAGES, "tools") for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                top = name.partition(".")[0]
                if top not in {*PACKAGES, *sys.stdlib_module_names}:
                    yield top, str(path.relative_to(ROOT))


def test_every_import_is_declared() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    everything = [*PROJECT["project"]["dependencies"], *(each for extra in extras.values() for each in extra)]
    declared = {_name(requirement) for requirement in everything}
    assert {(top, path) for top, path in _imported() if _name(OTHER_NAMES.get(top, top)) not in declared} == set()


def test_what_the_checks_read_is_in_the_source_distribution() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    for name in (*PACKAGES, "tests", "tools", "Makefile", ".pre-commit-config.yaml", "CONTRIBUTING.md", "README.md"):
        assert name in included
        assert (ROOT / name).exists()
