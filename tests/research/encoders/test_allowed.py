"""An encoder that an index names is loaded by permission only, and permission is the user's to give."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from research.encoders.allowed import check_allowed, remember
from research.encoders.base import ALIASES, DEFAULT
from research.errors import EncoderNotAllowed
from research.files import user_config
from research.settings import Settings

MARK = "0123456789ab"
FOLDER = "/models/mine"
TEXT = f"sentence-transformers:{FOLDER}@{MARK}"
HUB = f"sentence-transformers:some/model@{MARK}"
BARE = f"sentence-transformers:sentence-transformers/bare-name@{MARK}"
VISUAL = f"colpali:{FOLDER}@{MARK}+int8+pool3"
VISUAL_HUB = "colpali:some/model"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "ctx" / "allowed-encoders"


def allowed(name: str, *named: str) -> bool:
    try:
        check_allowed(name, named)
    except EncoderNotAllowed:
        return False
    return True


@pytest.mark.parametrize("name", [DEFAULT, *ALIASES, f"regions:{DEFAULT}", "regions", "off"])
def test_ours_need_no_permission(name: str) -> None:
    assert allowed(name)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        (TEXT, TEXT),
        (TEXT, FOLDER),
        (TEXT, "/models/../models/mine"),
        (TEXT, f"{FOLDER}@{MARK}"),
        (TEXT, f"sentence-transformers:{FOLDER}"),
        (f"regions:{TEXT}", FOLDER),
        (HUB, "some/model"),
        (BARE, "bare-name"),
        (VISUAL, FOLDER),
        (VISUAL, f"colpali:{FOLDER}"),
        (VISUAL_HUB, "some/model"),
    ],
)
def test_what_the_user_names_is_allowed(name: str, entry: str) -> None:
    assert not allowed(name)
    assert allowed(name, entry)
    assert allowed(name, *Settings(text_encoder=entry).named_encoders)
    assert allowed(name, *Settings(visual=entry).named_encoders)
    assert allowed(name, *Settings(allowed_encoders=("other/model", entry)).named_encoders)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        (TEXT, "/models"),
        (TEXT, "mine"),
        (TEXT, f"{FOLDER}@ba9876543210"),
        (TEXT, f"colpali:{FOLDER}"),
        (TEXT, HUB),
        (HUB, "other/model"),
        (VISUAL, f"sentence-transformers:{FOLDER}"),
        # Whatever somebody writes, an index cannot mean a folder relative to where its reader stands.
        ("sentence-transformers:./model", "./model"),
        ("sentence-transformers:model", "model"),
        ("model", "model"),
        (FOLDER, FOLDER),
        ("colpali:~/model", "~/model"),
        ("colpali:../some/model", "../some/model"),
        ("colpali:/x\n/y", "/x\n/y"),
    ],
)
def test_what_the_user_did_not_name_is_not(name: str, entry: str) -> None:
    assert not allowed(name, entry)


def test_a_folder_is_meant_only_by_what_is_plainly_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who always names a hub's model is not to load a folder of that name from where they stand."""
    planted = tmp_path / "some" / "model"
    planted.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert not allowed(f"sentence-transformers:{planted}@{MARK}", "some/model")
    assert allowed(f"sentence-transformers:{planted}@{MARK}", "./some/model")
    for word in ("default", "auto", "off", "regions"):
        (tmp_path / word).mkdir()
        assert not allowed(f"colpali:{tmp_path / word}@{MARK}", word)


def test_the_refusal_says_what_to_type() -> None:
    name = f"sentence-transformers:/my models/it's@{MARK}"
    with pytest.raises(EncoderNotAllowed) as caught:
        check_allowed(name)
    quoted = f"""CTX_ALLOWED_ENCODERS='sentence-transformers:/my models/it'"'"'s@{MARK}'"""
    assert quoted in caught.value.message
    assert f'allowed_encoders = ["{name}"]' in caught.value.hint
    assert str(user_config()) in caught.value.hint


def test_what_was_named_to_an_ingest_is_remembered_privately(state: Path) -> None:
    remember(TEXT)
    remember(VISUAL)
    remember(TEXT)
    assert state.read_text().splitlines() == [TEXT, VISUAL]
    assert (state.stat().st_mode & 0o777, state.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert allowed(TEXT)
    assert allowed(VISUAL)
    assert not allowed(TEXT.replace(MARK, "ba9876543210")), "other files are another encoder"
    assert not allowed(TEXT.replace(f"@{MARK}", ""))


def test_of_many_at_once_none_is_lost(state: Path) -> None:
    names = [f"colpali:some/model{number}" for number in range(8)]
    threads = [threading.Thread(target=remember, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(state.read_text().splitlines()) == names
    assert sorted(path.name for path in state.parent.iterdir()) == ["allowed-encoders", "allowed-encoders.lock"]


def test_a_file_that_is_no_text_allows_nothing(state: Path) -> None:
    state.parent.mkdir(parents=True)
    state.write_bytes(b"\xff\xfe")
    assert not allowed(TEXT)
