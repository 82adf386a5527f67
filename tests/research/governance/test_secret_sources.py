"""Where known secrets come from: variables, the keyring, a file that nobody else reads; and what is refused."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import pytest

from research.errors import UsageError
from research.governance.masking import SecretMasker, known_secrets
from research.store import Catalog
from tests.research.store.index_making import Making

VALUE = "hunter2hunter2"


def _told(caught: pytest.ExceptionInfo[UsageError]) -> str:
    return "".join(traceback.format_exception(caught.value)) + caught.value.hint


def test_named_variables() -> None:
    known = known_secrets(["A_KEY", "B_KEY", "EMPTY"], environment={"A_KEY": f" {VALUE}\n", "C": "no", "EMPTY": " "})
    assert list(known) == ["A_KEY"]
    assert known["A_KEY"].reveal() == VALUE
    assert VALUE not in repr(known)
    assert SecretMasker(known).mask(f"it is {VALUE}") == "it is §§secret(A_KEY)"


def test_a_file_that_nobody_else_reads(tmp_path: Path) -> None:
    path = tmp_path / "secrets.env"
    path.write_text(f"# mine\nexport A_KEY={VALUE}\nB_KEY = 'with = and #'\n\nC_KEY=\n")
    path.chmod(0o600)
    known = known_secrets([f"file:{path}", "A_KEY"], environment={"A_KEY": "another value"})
    assert {key: known[key].reveal() for key in known} == {"A_KEY": VALUE, "B_KEY": "with = and #"}


def ingested_file(root: Path, path: Path) -> Catalog:
    """The catalog of an index in which this document was ingested."""
    index = Making(root)
    index.add(path.name, ["a page"], folder=str(path.parent))
    return index.catalog


def test_files_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "docs" / "secrets.env"
    path.parent.mkdir()
    path.write_text(f"A_KEY={VALUE}")
    path.chmod(0o640)
    with pytest.raises(UsageError, match="can be read by others") as caught:
        known_secrets([f"file:{path}"])
    assert caught.value.hint == f"chmod 600 {path}"
    path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    catalog = ingested_file(tmp_path / "index", path.parent / "a.pdf")
    for way in (path, link, tmp_path / "docs" / ".." / "docs" / "secrets.env"):
        with pytest.raises(UsageError, match="whose files are ingested"):
            known_secrets([f"file:{way}"], reader=catalog)
    assert list(known_secrets([f"file:{path}"])) == ["A_KEY"]
    catalog.close()
    for content, match in ((f"A_KEY={VALUE}\n{VALUE}", "line 2: not KEY=value"), ("A=" + "x" * 70_000, "larger than")):
        path.write_text(content)
        with pytest.raises(UsageError, match=match) as caught:
            known_secrets([f"file:{path}"])
        assert VALUE not in _told(caught)
    with pytest.raises(UsageError, match="cannot read"):
        known_secrets([f"file:{tmp_path / 'nothing'}"])
    with pytest.raises(UsageError, match=r"cannot read|others"):
        known_secrets([f"file:{tmp_path}"])


def test_values_and_names_that_are_refused_are_not_repeated() -> None:
    for values, match in (
        ({"A_KEY": "short"}, "A_KEY is shorter than 6"),
        ({"A_KEY": "secret"}, "stands in what would be shown"),
        ({"hunter2hunter2": VALUE}, "stands in what would be shown"),
        ({"A_KEY": "B_KEY_X", "B_KEY_X": "xxxxxx"}, "stands in what would be shown"),
        ({"no name": VALUE}, "no name"),
    ):
        with pytest.raises(UsageError, match=match) as caught:
            SecretMasker(values)
        assert not [value for value in values.values() if value != "secret" and repr(value) in _told(caught)]
    for value in ("sk-live_hunter2 hunter2", "AKIAIOSFODNN7EXAMPLE"):
        with pytest.raises(UsageError, match="an entry that is no name") as caught:
            known_secrets([value], environment={})
        assert value not in _told(caught)


def _keyring(folder: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of that name; the real one needs a desktop behind it."""
    (folder / "keyring").mkdir()
    (folder / "keyring" / "errors.py").write_text("class KeyringError(Exception): pass")
    (folder / "keyring" / "__init__.py").write_text(body)
    monkeypatch.syspath_prepend(folder)
    for name in ("keyring", "keyring.errors"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_the_systems_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"def get_password(service, name): return {{('ctx', 'A_KEY'): {VALUE!r}}}.get((service, name))"
    _keyring(tmp_path, body, monkeypatch)
    known = known_secrets(["keyring:A_KEY", "keyring:B_KEY"], environment={})
    assert known["A_KEY"].reveal() == VALUE
    assert list(known) == ["A_KEY"]


def test_a_locked_keyring_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"from keyring.errors import KeyringError\ndef get_password(*_): raise KeyringError({VALUE!r})"
    _keyring(tmp_path, body, monkeypatch)
    with pytest.raises(UsageError, match="A_KEY cannot be read from the keyring") as caught:
        known_secrets(["keyring:A_KEY"], environment={})
    assert VALUE not in _told(caught)
    assert caught.value.__context__ is None


def test_without_the_package_the_line_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(UsageError) as caught:
        known_secrets(["keyring:A_KEY"], environment={})
    assert caught.value.hint == "pip install 'ctx-research[keyring]'"
