"""CONTRIBUTING tells the truth: its map names the folders there are, its commands and its hooks exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGES = ("cli", "ingest", "research")


def mapped(block: str) -> set[str]:
    """The folders a tree names: two spaces more stand for one folder deeper."""
    above: list[str] = []
    found = set()
    for line in block.splitlines():
        match = re.match(r"(?P<indent> *)(?P<name>\w+)/ ", line)
        assert match, f"no folder: {line!r}"
        assert len(match["indent"]) % 2 == 0, line
        assert len(match["indent"]) <= 2 * len(above), line
        above = [*above[: len(match["indent"]) // 2], match["name"]]
        found.add("/".join(above))
    return found


def there() -> set[str]:
    """The folders of our packages, and what else lies at the top."""
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    return {str(folder.relative_to(ROOT)) for folder in folders} | {"data", "tests", "tools"}


def test_the_map_names_the_folders_there_are() -> None:
    [block] = [body for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE) if not kind]
    assert mapped(block) == there()


def test_a_tree_is_read_by_its_indents() -> None:
    assert mapped("a/   x\n  b/   y\n    c/   z\n  d/   x\ne/   x") == {"a", "a/b", "a/b/c", "a/d", "e"}


def test_its_commands_and_files_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^\$ make (\w+)", TEXT, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    named = set(re.findall(r"`((?:[\w.]+/)+[\w.]+\.(?:py|md))`", TEXT)) | {"CHANGELOG.md"}
    places = (ROOT, *(ROOT / package for package in PACKAGES))
    for name in named:
        assert any((place / name).exists() for place in places), name


def test_the_hooks_are_what_make_test_runs() -> None:
    """What the Makefile runs before the tests, a hook runs, too; and nothing is fetched for it."""
    config = (ROOT / ".pre-commit-config.yaml").read_text()
    hooks = re.findall(r"^ +entry: (.+)$", config, re.MULTILINE)
    assert re.findall(r"repo: (\S+)", config) == ["local"]
    assert config.count("language: system") == len(hooks)
    makefile = (ROOT / "Makefile").read_text()
    [recipe] = re.findall(r"^test:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    linted = {line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines() if "/ruff " in line}
    assert linted <= set(hooks)
    for hook in hooks:
        if hook.startswith("make "):
            assert re.search(rf"^{hook.removeprefix('make ')}:", makefile, re.MULTILINE), hook
