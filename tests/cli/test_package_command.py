"""ctx package: packages at a prompt, held to their schema."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cli.schemas import load
from research.packages import published
from tests.in_process import Ran, run_in_process

Package = Callable[..., Ran]


@pytest.fixture
def package(of_everything: Path, tmp_path: Path) -> Package:
    root = Path(shutil.copytree(of_everything, tmp_path / "index"))

    def run(*args: str) -> Ran:
        return run_in_process("package", *args, "--index", str(root), cwd=tmp_path)

    return run


@pytest.fixture
def asked(tmp_path: Path) -> str:
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"intent": "why do uploads stop and are parts sent again", "tokenBudget": 600}))
    return str(file)


def document(ran: Ran) -> dict[str, Any]:
    problems = list(Draft202012Validator(load("package")).iter_errors(ran.document))
    assert problems == [], problems[0].message
    return ran.document


def test_a_package_is_built_shown_listed_and_rebuilt(package: Package, asked: str) -> None:
    built = package("build", asked)
    assert (built.code, built.out[:1]) == (0, "["), built.err
    assert "tokens" in built.err
    made = document(package("build", asked, "--json"))["package"]
    assert made["tokensUsed"] <= 600
    shown = package("show", made["contextPackageId"])
    assert shown.out == made["content"] + "\n"
    assert document(package("show", made["contextPackageId"], "--json"))["package"] == made
    listed = document(package("list", "--json"))["packages"]
    assert listed[0]["contextPackageId"] == made["contextPackageId"]
    assert {each["content"] for each in listed} == {""}
    assert len(package("list", "--limit", "1").out.splitlines()) == 1
    again = document(package("rebuild", made["contextPackageId"], "--json"))["package"]
    assert again["policyDecisionId"] != made["policyDecisionId"]
    ref = made["sources"][0]["ref"]
    told = document(package("feedback", made["contextPackageId"], ref, "--json"))["told"]
    assert told == {"useful": True, "refs": [ref]}
    assert package("feedback", made["contextPackageId"], "--not-useful").code == 0


def test_a_request_may_come_by_stdin(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    body = io.TextIOWrapper(io.BytesIO(b'{"intent": "retry of uploads", "tokenBudget": 300}'))
    monkeypatch.setattr(sys, "stdin", body)
    assert package("build", "-").code == 0


@pytest.mark.parametrize(
    ("request_body", "code", "told"),
    [
        ("{}", 2, "intent is missing"),
        ('{"intent": "x", "tenant": "eva"}', 2, "leave principal and tenant out"),
        ("nonsense", 2, "no JSON"),
        ('{"intent": "uploads", "tokenBudget": 2}', 3, "raise tokenBudget"),
        ('{"intent": "uploads", "scope": {"documents": ["no.pdf"]}}', 3, "nothing found"),
    ],
)
def test_it_ends_as_it_went(package: Package, tmp_path: Path, request_body: str, code: int, told: str) -> None:
    (tmp_path / "r.json").write_text(request_body)
    ran = package("build", "r.json")
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err


@pytest.mark.parametrize(
    "args",
    [("build",), ("show",), ("list", "x"), ("build", "no-such-file"), ("show", "a", "b"), ("list", "--limit", "0"),
     ("list", "--not-useful"), ("schema", "nothing")],
)  # fmt: skip
def test_what_is_no_call_says_what_to_do(package: Package, args: tuple[str, ...]) -> None:
    ran = package(*args)
    assert ran.code == 2
    assert "hint:" in ran.err


def test_what_is_not_there_ends_with_3_and_names_its_trace(package: Package) -> None:
    missing = package("show", "0" * 32, "--json")
    assert missing.code == 3
    assert list(Draft202012Validator(load("error")).iter_errors(missing.document)) == []
    assert f"trace: {missing.document['trace_id']}" in missing.err
    listed = package("list")
    assert (listed.code, listed.out) == (0, "")


def test_the_published_schemas_are_printed(package: Package) -> None:
    assert json.loads(package("schema").out) == json.loads(json.dumps(published("request")))
    assert json.loads(package("schema", "package").out) == json.loads(json.dumps(published("package")))
    ours, theirs = load("package")["$defs"]["ContextPackage"], published("package")
    assert set(ours["properties"]) == set(theirs["properties"])
    assert ours["required"] == theirs["required"]


def test_somebody_else_may_be_tried(package: Package, asked: str) -> None:
    ran = package("build", asked, "--as", "eva", "--json")
    made = document(ran)["package"]
    assert {source["kind"] for source in made["sources"]} <= {"memory"}
    assert package("show", made["contextPackageId"]).code == 3, "it is theirs"
    nobody = package("build", asked, "--as", "nobody")
    assert (nobody.code, nobody.out) == (3, "")
    assert "nothing of this index may be seen" in nobody.err
