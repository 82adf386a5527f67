"""Which models may be loaded because an index names them.

An index can come from anywhere: with a folder, a backup, a clone. Whoever made it chose the name in it, so the name
alone loads nothing, and contacts nobody. A model is loaded or asked if it is the embedded one, if the user names it now
(a flag, a CTX_* variable, the user's own config), if `allowed_encoders` has it, or if the user named it to an earlier
`ctx ingest` on this machine. That last is remembered in a file of the user's own, one full name a line.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path

from research.addresses import is_encoder_address, same_encoder
from research.encoders.base import is_embedded
from research.encoders.checkpoints import HUB_NAME, Name
from research.errors import EncoderNotAllowed
from research.files import user_config

_NO_MODEL = ("", "auto", "off", "regions")


def check_allowed(name: str, named: Sequence[str] = ()) -> None:
    """Raise `EncoderNotAllowed` for an encoder that an index names, unless it is ours or the user allowed it. `named`
    are the encoders the user names now. `regions` is as its text encoder is."""
    name = name.removeprefix("regions:")
    if name in _NO_MODEL or is_embedded(name):
        return
    if not _is_full(name):
        raise EncoderNotAllowed(
            f"this index names {name!r} for its encoder, which is no full name of one; it is not loaded",
            hint="embed all documents anew with one of yours: CTX_TEXT_ENCODER=MODEL ctx ingest PATH",
        )
    if not any(_matches(name, entry) for entry in named) and name not in _remembered():
        raise EncoderNotAllowed(
            f"this index asks for the encoder {name}, which you have not allowed; if you trust it, put"
            f" CTX_ALLOWED_ENCODERS={shlex.quote(name)} before the command",
            hint=f"or for good, in {user_config()}: allowed_encoders = [{json.dumps(name, ensure_ascii=False)}]",
        )


def remember(name: str) -> None:
    """Keep the permission that lies in naming an encoder to an ingest. Raises OSError where nothing can be kept."""
    from filelock import FileLock

    path = _file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):  # of two ingests at once, neither loses its line
        known = _remembered()
        if name in known:
            return
        lines = "".join(f"{line}\n" for line in [*known, name])
        new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(lines)
        new.replace(path)


def _remembered() -> list[str]:
    try:
        return _file().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _file() -> Path:
    from platformdirs import user_state_path

    return user_state_path("ctx", appauthor=False) / "allowed-encoders"


def _is_full(name: str) -> bool:
    """Whether this is how an index of ours remembers a model. A relative folder would mean another one elsewhere."""
    if is_encoder_address(name):
        return same_encoder(name, name)
    parts = Name.of(name)
    known = Path(parts.model).is_absolute() or HUB_NAME.fullmatch(parts.model)
    return bool(parts.kind and known and name.isprintable())


def _matches(name: str, entry: str) -> bool:
    """Whether what a user wrote means the model that an index names."""
    if entry in _NO_MODEL or is_embedded(entry):
        return False
    if is_encoder_address(name):  # another model, or another address, is another encoder
        return same_encoder(name, entry)
    wanted, given = Name.of(name), Name.of(entry)
    if given.kind not in ("", wanted.kind) or given.mark not in ("", wanted.mark):
        return False
    if wanted.model in (given.model, f"sentence-transformers/{given.model}"):
        return True
    # Only what is plainly a path: a folder that was planted with the name of a hub's model is not that model.
    path = Path(given.model)
    plainly = path.is_absolute() or given.model.startswith((".", "~"))
    return plainly and os.path.realpath(path.expanduser()) == wanted.model
