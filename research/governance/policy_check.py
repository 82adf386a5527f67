"""Whether the policy can be used, for `ctx doctor` and `ctx policy check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.errors import PolicyError
from research.governance.cedar import Loaded, load_policies
from research.governance.policy_files import PolicyText, check_place, find_policies, read_policy
from research.reports import Check

if TYPE_CHECKING:
    from pathlib import Path

    from research.settings import Settings
    from research.store.catalog.reader import Reader


def read_policies(setting: str, reader: Reader | None = None, index: Path | None = None) -> Loaded | None:
    """The policies that a setting names, or those of the user's config folder; None: there are none. Raises
    `PolicyError` with what is wrong."""
    paths = find_policies(setting)
    for path in paths:
        check_place(path, reader, index=index)
    return load_policies([read_policy(path) for path in paths]) if paths else None


def check_file(name: str, reader: Reader | None, index: Path) -> tuple[Loaded, list[str]]:
    """The policies of a file or folder, wherever it lies; and why they would not be used from there. Raises
    `PolicyError` where they are not well written."""
    texts, notes = [], []
    for path in find_policies(name):
        try:
            check_place(path, reader, index=index)
            texts.append(read_policy(path))
        except PolicyError as error:
            notes.append(error.message)
            texts.append(PolicyText(path, path.name, _text(path, error)))
    return load_policies(texts), notes


def _text(path: Path, refused: PolicyError) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise refused from None


def check_policy(settings: Settings, reader: Reader | None, index: Path) -> list[Check]:
    """Nothing is told where there is no policy."""
    try:
        loaded = read_policies(settings.policy, reader, index)
    except PolicyError as error:
        return [Check("policy", "error", f"everything is denied: {error.message}", error.hint)]
    if loaded is None:
        return []
    files = ", ".join(str(path) for path in loaded.paths)
    return [Check("policy", "ok", f"{len(loaded.names)} policies in {files}")]
