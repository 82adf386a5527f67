"""What a command loads, in a fresh process: heavy modules only where they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"chromadb", "onnxruntime", "numpy", "torch", "pymupdf", "tiktoken", "tokenizers", "pydantic", "rich"}

PROGRAM = """
import sys
from cli.main import main
code = main(sys.argv[1:])
sys.stderr.write("LOADED " + " ".join(sorted(sys.modules)) + "\\n")
sys.exit(code)
"""


def loaded_by(*args: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("LOADED ")[2].split())


@pytest.mark.parametrize("args", [["--help"], ["ask", "-h"], ["ingest", "-h"]])
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    assert not HEAVY & {name.partition(".")[0] for name in loaded_by(*args)}


def test_version_needs_no_parser() -> None:
    assert not {*HEAVY, "typer"} & {name.partition(".")[0] for name in loaded_by("--version")}


def test_ask_loads_only_what_a_question_needs(filled: Path) -> None:
    loaded = loaded_by("ask", "housing", "--json", "--index", str(filled))
    top = {name.partition(".")[0] for name in loaded}
    assert not top & {"chromadb", "torch", "pymupdf", "pydantic", "rich", "ingest"}
    assert not loaded & {"cli.log", "logging"}, "nobody asked for a log"
    # The embedded encoder needs nobody's permission, so none is looked up.
    assert not loaded & {"research.encoders.allowed", "research.encoders.sentence_transformers", "filelock"}
    # Nobody named a model that writes.
    assert not [name for name in loaded if name.startswith(("research.answer.answering", "research.answer.claims"))]
    assert not loaded & {"cli.answer", "research.answer.answering", "research.address", "research.secret"}
    # Nobody named a model at an address, or one that reranks.
    assert not loaded & {"research.addresses", "research.llm.endpoint", "research.search.reranker", "httpx"}
    # Nobody was told anything.
    assert not [name for name in loaded if "memor" in name and name.startswith(("research", "cli"))]
    assert not [name for name in loaded if name.startswith("research.conversation")]
    # Nobody asked for code, commits or anything else that is kept as items.
    assert not loaded & {"tree_sitter", "pathspec", "research.search.items", "research.sources.items"}
    assert not loaded & {"research.store.items"}
    assert {name for name in loaded if name.startswith("cli.")} == {
        "cli.app", "cli.ask", "cli.call", "cli.main", "cli.output", "cli.options",
    }  # fmt: skip
