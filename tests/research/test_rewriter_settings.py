"""Which rewriters and boosters work is a setting, and so are the user's own tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from research.errors import UsageError
from research.settings import REWRITERS as KNOWN
from research.settings import load_settings, user_config


@pytest.fixture
def config() -> Iterator[Path]:
    path = user_config()
    path.parent.mkdir(parents=True, exist_ok=True)
    yield path
    path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("variable", "chosen"),
    [("names", ("names",)), ("finance, names", ("finance", "names")), ("off", ()), ("", KNOWN)],
)
def test_a_variable_chooses(tmp_path: Path, variable: str, chosen: tuple[str, ...]) -> None:
    assert load_settings(folder=tmp_path, environment={"CTX_REWRITERS": variable}).rewriters == chosen


@pytest.mark.parametrize("line", ["[]", "['off']"])
def test_a_file_switches_them_off(tmp_path: Path, line: str) -> None:
    (tmp_path / "ctx.toml").write_text(f"rewriters = {line}\nboosters = {line}\n")
    settings = load_settings(folder=tmp_path, environment={})
    assert settings.rewriters == settings.boosters == ()


@pytest.mark.parametrize("wrong", ["wording", "off, names", "Finance"])
def test_unknown_names_are_told_with_those_there_are(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UsageError, match="rewriters cannot be") as caught:
        load_settings(folder=tmp_path, environment={"CTX_REWRITERS": wrong})
    assert "answer-form, collection, names, finance" in caught.value.hint


def test_tables_are_named_beside_the_file_that_names_them(tmp_path: Path, config: Path) -> None:
    (tmp_path / "ctx.toml").write_text("vocabulary = ['terms/own.toml']\n")
    inside = tmp_path / "inside"
    inside.mkdir()
    assert load_settings(folder=inside, environment={}).vocabulary == (str(tmp_path / "terms/own.toml"),)
    (tmp_path / "ctx.toml").unlink()
    config.write_text("vocabulary = ['own.toml', '/elsewhere/more.toml']\n")
    named = load_settings(folder=inside, environment={}).vocabulary
    assert named == (str(config.parent / "own.toml"), "/elsewhere/more.toml")


@pytest.mark.parametrize("table", ["/etc/passwd", "../own.toml", "link/own.toml"])
def test_a_found_file_may_name_tables_only_inside_its_folder(tmp_path: Path, table: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "link").symlink_to(tmp_path)
    (tmp_path / "project" / "ctx.toml").write_text(f"vocabulary = ['{table}']\n")
    with pytest.raises(UsageError, match="vocabulary leads out of that folder") as caught:
        load_settings(folder=tmp_path / "project", environment={})
    assert "CTX_VOCABULARY" in caught.value.hint
