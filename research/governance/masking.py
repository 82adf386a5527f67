"""Known secrets in what leaves: `§§secret(KEY)` stands for the value.

A value is masked as it is and as programs write it: JSON-escaped (once, and again inside a JSON text), URL-encoded
(each way of quoting spaces, slashes and hex digits), HTML-escaped, in hex, and in base64, alone or inside something
longer, as in `Authorization: Basic`. Text that was cut in the middle of a value, at either end, loses the part that is
left.

The setting `secrets` names them. A name is an environment variable (`STRIPE_KEY`), an entry of the system's keyring
(`keyring:STRIPE_KEY`, service `ctx`), or a file of lines KEY=value that only its owner can read and that lies in no
folder that is ingested (`file:PATH`).
"""

from __future__ import annotations

import json
import os
import re
import stat
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn
from unicodedata import normalize
from urllib.parse import quote, quote_plus

from research.errors import UsageError
from research.files import read_checked, user_config
from research.governance.access import ingested_places
from research.governance.keys import find_keys as looks_like_keys
from research.secret import Secret, keyring_entry

if TYPE_CHECKING:
    from research.store import Reader

_PART = 8  # characters of a value in a row that give it away


class _Form(NamedTuple):
    text: str
    key: str


_Span = tuple[int, int, str]
"""Start, end, and the key of what stands there."""


class SecretMasker:
    """Masks the values it is given. Safe to share by threads."""

    __slots__ = ("_forms", "_keys")

    def __init__(self, known: Mapping[str, str | Secret]) -> None:
        """Values by key. Raises `UsageError` for what cannot be masked without harm; no value stands in it."""
        secrets = {key: value if isinstance(value, Secret) else Secret(value) for key, value in known.items()}
        made: dict[str, str] = {}
        for key, secret in secrets.items():
            _check(key, secret.reveal(), secrets)
            for form in _forms(secret.reveal()):
                made.setdefault(form, key)
        forms = tuple(_Form(text, key) for text, key in sorted(made.items(), key=lambda each: -len(each[0])))
        self._keys = tuple(secrets)
        self._forms: Callable[[], tuple[_Form, ...]] = lambda: forms  # no attribute holds a value

    def mask(self, text: str) -> str:
        """Return the text with a placeholder for each value; overlapping ones of the same key have one together."""
        forms = self._forms()
        spans = [span for form in forms for span in _occurrences(text, form)]
        spans += [*_beginning(text, forms), *_ending(text, forms)]
        shown, reach, before = [], 0, ""
        for start, end, key in sorted(spans, key=lambda span: (span[0], -span[1])):
            if end <= reach:
                continue
            shown.append(text[reach:start])
            if start >= reach or key != before:
                shown.append(placeholder(key))
            reach, before = end, key
        return "".join([*shown, text[reach:]])

    redact = mask

    def __repr__(self) -> str:
        return f"SecretMasker({', '.join(self._keys)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("secrets are not pickled")


def _occurrences(text: str, form: _Form) -> Iterator[_Span]:
    """Yield all of them, overlapping ones too."""
    at = text.find(form.text)
    while at >= 0:
        yield at, at + len(form.text), form.key
        at = text.find(form.text, at + 1)


def _beginning(text: str, forms: tuple[_Form, ...]) -> Iterator[_Span]:
    """Yield the rest of a value that was cut off before: at least half of it, because common endings are no secret."""
    for form in forms:
        if text[:_PART] not in form.text:
            continue
        for size in range(min(len(form.text) - 1, len(text)), max(_PART, len(form.text) // 2) - 1, -1):
            if form.text.endswith(text[:size]) or (size == len(text) and text in form.text):
                yield 0, size, form.key
                break


def _ending(text: str, forms: tuple[_Form, ...]) -> Iterator[_Span]:
    """Yield the beginning of a value whose rest was cut off."""
    for form in forms:
        at = max(0, len(text) - len(form.text) + 1)
        while (at := text.find(form.text[0], at)) >= 0 and not form.text.startswith(text[at:]):
            at += 1
        if at >= 0 and len(text) - at >= min(_PART, len(form.text) // 2 + 1):
            yield at, len(text), form.key


def _forms(value: str) -> Iterator[str]:
    """A value and the ways in which programs write it."""
    for plain in dict.fromkeys((value, normalize("NFC", value), normalize("NFD", value), value.replace("\n", "\r\n"))):
        for text in dict.fromkeys((plain, *_escaped(plain), *_encoded(plain.encode("utf-8", "surrogatepass")))):
            if len(text) >= SHORTEST:
                yield text


def _escaped(value: str) -> Iterator[str]:
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield once.replace("/", "\\/")
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    data = value.encode("utf-8", "surrogatepass")
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data), quote(data, safe="/:@!$&'()*+,;=~")):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)
    yield escape(value)
    yield escape(value, quote=False)


def _encoded(data: bytes) -> Iterator[str]:
    yield data.hex()
    yield data.hex().upper()
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(data).decode()
        yield encode(data).decode().rstrip("=")
        for before in range(3):  # inside something longer, it begins at one of three places in a group
            inside = encode(b"\0" * before + data).decode()
            core = inside[-(-8 * before // 6) : 8 * (before + len(data)) // 6]
            if len(core) >= _PART:
                yield core


SHORTEST = 6  # characters; anything shorter stands in ordinary words
_LARGEST = 65_536  # bytes of a file
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_KEYRING, _FILE = "keyring:", "file:"


def known_secrets(
    names: Iterable[str],
    *,
    environment: Mapping[str, str] | None = None,
    reader: Reader | None = None,
) -> dict[str, Secret]:
    """Return what the setting `secrets` names, as far as it has a value. `reader`: of the catalog that knows which
    places were ingested. Raises `UsageError`, in which no value stands."""
    variables = os.environ if environment is None else environment
    values: dict[str, Secret] = {}
    for name in names:
        if name.startswith(_FILE):
            found = _from_file(Path(name.removeprefix(_FILE)).expanduser(), reader)
        elif name.startswith(_KEYRING):
            key = name.removeprefix(_KEYRING)
            _check_name(key)
            found = {key: _from_keyring(key)}
        else:
            _check_name(name)
            found = {name: variables.get(name, "")}
        for key, value in found.items():
            if value.strip():
                values.setdefault(key, Secret(value.strip()))
    return values


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
    value, problem = keyring_entry(key)
    if problem == "missing":
        raise UsageError(
            f"the secret {key} is to come from the keyring, and the package keyring is not installed",
            hint="pip install 'ctx-research[keyring]'",
        )
    if problem:
        raise UsageError(
            f"the secret {key} cannot be read from the keyring", hint="unlock it, or name a variable instead"
        )
    return value


def _from_file(path: Path, reader: Reader | None) -> dict[str, str]:
    if places := ingested_places(path.absolute(), reader, user_config().parent):
        raise UsageError(
            f"{path} holds secrets and lies in {places[0]}, whose files are ingested",
            hint="move it elsewhere; what is ingested can be asked for",
        )

    def check(status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077 or status.st_uid != os.geteuid():
            raise UsageError(f"{path} can be read by others, and holds secrets", hint=f"chmod 600 {path}")

    try:
        content = read_checked(path, check, most=_LARGEST + 1)
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
