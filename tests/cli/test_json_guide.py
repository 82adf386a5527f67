"""cli/JSON.md says what is so: every schema in its version, every key of a batch, and no field that there is not."""

from __future__ import annotations

import re
from pathlib import Path

import cli
from cli.app import COMMANDS
from cli.schemas import load, names
from research.request import parameters_of

GUIDE = (Path(cli.__file__).parent / "JSON.md").read_text(encoding="utf-8")


def test_every_schema_is_named_in_its_version() -> None:
    assert set(re.findall(r"ctx\.[a-z]+/\d+", GUIDE)) == {load(name)["title"] for name in names()}
    for name in (name for group in COMMANDS.values() for name in group):
        assert f"`{name}`" in GUIDE or f"`{name} " in GUIDE, name


def test_every_key_of_a_line_is_told() -> None:
    assert [each.name for each in parameters_of("batch") if f"`{each.name}`" not in GUIDE] == []


def test_the_names_in_its_table_are_fields() -> None:
    table = GUIDE.partition("## Names")[2].partition("## Written")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    known = {field for name in names() for field in re.findall(r'"(\w+)": \{', str(load(name)).replace("'", '"'))}
    assert len(named) > 12
    assert named <= known
