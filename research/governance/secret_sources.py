"""The secrets a user has named: where their values come from, and that nothing shows them.

A name is an environment variable (`STRIPE_KEY`), an entry of the system's keyring (`keyring:STRIPE_KEY`, service
`ctx`), or a file of lines KEY=value that only its owner can read and that lies in no folder that is ingested
(`file:PATH`). What is known here is masked in everything that leaves: `research.governance.masking`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from research.errors import UsageError
from research.folders import is_inside
from research.governance.keys import keys as looks_like_keys
from research.secret import KEYRING_SERVICE, Secret

SHORTEST = 6  # characters; anything shorter stands in ordinary words
_LARGEST = 65_536  # bytes of a file
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_KEYRING, _FILE = "keyring:", "file:"


class KnownSecrets(Mapping[str, Secret]):
    """Values by key, and the keys that were named and have none (`missing`), which the caller may want to tell."""

    def __init__(self, values: Mapping[str, str | Secret], missing: Iterable[str] = ()) -> None:
        self._values = {key: value if isinstance(value, Secret) else Secret(value) for key, value in values.items()}
        self.missing = tuple(missing)
        for key, value in self._values.items():
            _check(key, value.reveal(), self._values)

    def __getitem__(self, key: str) -> Secret:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"KnownSecrets({', '.join(self)})"


def known_secrets(
    names: Iterable[str],
    *,
    environment: Mapping[str, str] | None = None,
    ingested: Iterable[Path] = (),
) -> KnownSecrets:
    """What the setting `secrets` names. `ingested` are the folders whose files anybody may ask for. Raises
    `UsageError`, in which no value stands."""
    variables = os.environ if environment is None else environment
    folders = tuple(ingested)
    values: dict[str, str] = {}
    missing: list[str] = []
    for name in names:
        if name.startswith(_FILE):
            found = _from_file(Path(name.removeprefix(_FILE)).expanduser(), folders)
        elif name.startswith(_KEYRING):
            key = name.removeprefix(_KEYRING)
            _check_name(key)
            found = {key: _from_keyring(key)}
        else:
            _check_name(name)
            found = {name: variables.get(name, "")}
        for key, value in found.items():
            if value.strip():
                values.setdefault(key, value.strip())
            else:
                missing.append(key)
    return KnownSecrets(values, missing)


def placeholder(key: str) -> str:
    return f"§§secret({key})"


def _check_name(key: str) -> None:
    """What stands where a name should may be the secret itself, so it is not repeated."""
    if not _KEY.fullmatch(key) or any(looks_like_keys(key)):
        raise UsageError(
            "secrets has an entry that is no name",
            hint="it takes names of variables, keyring:NAME and file:PATH; a value stands in no setting",
        )


def _check(key: str, value: str, keys: Iterable[str]) -> None:
    """Refuse what cannot be masked without harm; the value is not repeated."""
    _check_name(key)
    if len(value) < SHORTEST:
        raise UsageError(
            f"the secret {key} is shorter than {SHORTEST} characters: ordinary words would be masked with it",
            hint=f"give {key} a longer value, or take it out of secrets",
        )
    if any(value in placeholder(other) for other in keys):
        raise UsageError(
            f"the value of the secret {key} stands in what would be shown in its place",
            hint=f"give {key} another name or another value",
        )


def _from_keyring(key: str) -> str:
    if find_spec("keyring") is None:
        raise UsageError(
            f"the secret {key} is to come from the keyring, and the package keyring is not installed",
            hint="pip install 'ctx-research[keyring]'",
        )
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(KEYRING_SERVICE, key) or ""
    except KeyringError:
        pass  # raised below, where nothing hangs on to what the keyring said
    raise UsageError(f"the secret {key} cannot be read from the keyring", hint="unlock it, or name a variable instead")


def _from_file(path: Path, ingested: tuple[Path, ...]) -> dict[str, str]:
    for folder in ingested:
        if is_inside(path, folder):
            raise UsageError(
                f"{path} holds secrets and lies in {folder}, whose files are ingested",
                hint="move it elsewhere; what is ingested can be asked for",
            )
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())  # of what was opened, whatever lies there by now
            if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077 or status.st_uid != os.geteuid():
                raise UsageError(f"{path} can be read by others, and holds secrets", hint=f"chmod 600 {path}")
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="see that it is there, or take it out") from None
    if len(content) > _LARGEST:
        raise UsageError(f"{path} is larger than a file of secrets would be ({_LARGEST:,} bytes)")
    return _lines(content.decode("utf-8", "replace"), path)


def _lines(text: str, path: Path) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip().removeprefix("export ")
        if not entry or entry.startswith("#"):
            continue
        key, equals, value = entry.partition("=")
        if not equals or not _KEY.fullmatch(key.strip()):
            raise UsageError(f"{path}, line {number}: not KEY=value", hint="one secret a line; # begins a comment")
        value = value.strip()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        found[key.strip()] = value[1:-1] if quoted else value
    return found
