"""Secrets by what is written before them: `password=…`, `"client_secret": "…"`, `Authorization: Bearer …`, the user and
password in an address, and "the password is …".

A name that means a password takes any value behind `=`. Names that often mean something else (token, key, secret) take
only what looks like no word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from research.governance.findings import Finding
from research.governance.keys import entropy, looks_random
from research.governance.words import Labels

_SIGN = re.compile(r"(?<![:=])(?::=|={1,3}>?|:(?!//)|%3D)(?![:=])")
_NAME = re.compile(r"(?:([A-Za-z][\w.-]{0,40}+)[ \t])?([\w.$@-]{1,64}+)[\"'`\])\\]{0,4}[ \t]{0,4}$")
# Of a name without signs and capitals. A password is one anywhere in it; the others only at its end.
_PASSWORD = re.compile(
    r"password|passwd|passwort|kennwort|passphrase|passcode|pwd|contrasena|wachtwoord|senha|mdp|motdepasse"
)
_SHORT = re.compile(r"(?:^|db|my|user|root|admin|sql|smtp|ftp)(?:pass|pw|pword)$")
_TOKEN = re.compile(
    r"(?:secret|token|apikey|accesskey|accountkey|privatekey|authkey|servicekey|clientkey|encryptionkey|signingkey"
    r"|masterkey|sharedaccesskey|sharedkey|secretkey|licensekey|dbkey|sshkey|credentials?|accesskeyid|secretaccesskey"
    r"|authtoken|bearer|authorization|xauth|cookie|sessionid|sig|signature|webhook|connectionstring|dsn|sas)"
    r"(?:id|value|prod|production|dev|live|test|staging|base64|b64|v?\d{1,2})?$"
)
_QUOTED = re.compile(r"[ \t]{0,4}[bru@$]?(?P<quote>\\?[\"'`])(?P<value>(?:(?!(?P=quote))[^\n]){1,512}+)")
_BARE = re.compile(r"[ \t]{0,4}(?P<value>[^\s\"'`<>]{1,512}+)")
_SCHEME = re.compile(r"(?i)[ \t]{0,4}[\"']?(?:bearer|basic|token|apikey|digest|negotiate|key)[ \t]{1,4}")
_NEXT = re.compile(r"[;&,](?=\s?[\w.-]{1,40}\s?[=:])|\\n|&amp;")
_NO_VALUE = re.compile(
    r"(?i)\$[A-Z_{(]|<[^<>]{0,40}>$|\{\{|\{\w{0,64}\}|%[({s]|\*{3}|§§|\[(?:redact|hidden|filter|mask|remov)|\(|#(?:\s|$)|x{3}|\.{2}"
    r"|os\.|process\.|env\b|env\[|settings\.|config\.|self\.|args\.|get_?\w{0,40}\(|your[_-]|--?[a-z-]{2,64}$"
    r"|(?:none|null|nil|undefined|true|false|yes|no|required|optional|string|str|text|hidden|redacted|changeme|n/a)"
    r"[.,;:!)]?$"
)
_CODE = re.compile(r"[A-Za-z_][\w.]{0,128}+\(|[a-z_]{1,64}+(?:\.[a-z_]{1,64}+){1,8}+$")

_SECRET_WORDS = "(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key)"


class _Assignment(NamedTuple):
    kind: str  # password, token or short
    sign: str
    name: int  # where the name begins
    after: int  # where the value may begin
    scheme: bool  # whether a scheme (Bearer, Basic) stands before the value


def assigned(text: str, labels: Labels) -> Iterator[Finding]:
    lowered = text.lower()
    told = any(word in lowered for word in labels.password_words)
    for sign in _SIGN.finditer(text):
        before = max(0, sign.start() - 80)
        named = _NAME.search(text, before, sign.start())
        if named is None:
            continue
        name = _plain(named[2])
        kind = _kind(name) or _kind(_plain(named[1] or "") + name)
        if not kind and told and labels.password_name.search(text, before, sign.start()):
            kind = "password"
        if not kind:
            continue
        scheme = _SCHEME.match(text, sign.end())
        after = scheme.end() if scheme else sign.end()
        span = _value(text, _Assignment(kind, sign.group(), named.start(2), after, bool(scheme)))
        if span and _plain(text[slice(*span)]) != name:
            yield Finding(*span, "password" if kind == "password" else "key")
    for shape in _SHAPES:
        if shape.needed in lowered:
            for match in shape.pattern.finditer(text):
                if not _NO_VALUE.match(match["value"]) and shape.fits(match["value"]):
                    yield Finding(*match.span("value"), shape.kind)
    if told:
        yield from _told(text, labels)


def _plain(name: str) -> str:
    return re.sub(r"[^a-zñ0-9]", "", name.lower()).replace("ñ", "n")


def _kind(name: str) -> str:
    if _PASSWORD.search(name):
        return "password"
    if _TOKEN.search(name):
        return "token"
    return "short" if _SHORT.search(name) else ""


def _value(text: str, given: _Assignment) -> tuple[int, int] | None:
    """Where the value stands, or None for what is none: a variable, a call, a word of prose."""
    quoted = _QUOTED.match(text, given.after)
    found = quoted or _BARE.match(text, given.after)
    if found is None:
        return None
    start, end = found.span("value")
    if not quoted:
        cut = _NEXT.search(text, start, end)
        start, end = _trimmed(text, start, cut.start() if cut else end)
    value = text[start:end]
    if len(value) < 3 or _NO_VALUE.match(value) or (not quoted and _CODE.match(value)):
        return None
    if given.kind == "password":
        fits = value.count(" ") <= 5 if quoted else "=" in given.sign or given.sign == "%3D"
        fits = fits or _is_mixed(value) or (not quoted and _alone(text, given.name, end))
    else:
        least = 4 if given.kind == "short" else 8
        fits = len(value) >= least and " " not in value and (looks_random(value) if given.scheme else _is_mixed(value))
    return (start, end) if fits else None


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without what belongs to the sentence around. A ! or ? may belong to the password."""
    while end > start and text[end - 1] in ".,;:)]}\\":
        end -= 1
    return start, end


def _is_mixed(value: str) -> bool:
    """No word and no number: letters with figures or signs, or a jumble of capitals."""
    letters = any(sign.isalpha() for sign in value)
    figures = any(sign.isdigit() for sign in value)
    signs = any(sign in "!@#$%^&*+=?~|" for sign in value)
    if letters and (figures or signs):
        return True
    return len(value) >= 20 and value.lower() != value and entropy(value) > 3.5


def _alone(text: str, name: int, end: int) -> bool:
    """Whether a line holds the name and the value and nothing else, as a settings file has it."""
    begin = text.rfind("\n", max(0, name - 80), name) + 1
    rest = text[end : end + 40].split("\n", 1)[0].strip()
    return not text[begin:name].strip(" \t-\"'*>") and not rest


def _told(text: str, labels: Labels) -> Iterator[Finding]:
    """The password is …"""
    for match in labels.password.finditer(text):
        value = _QUOTED.match(text, match.end()) or _BARE.match(text, match.end())
        if value is not None:
            start, end = _trimmed(text, *value.span("value"))
            if end - start >= 5 and _is_mixed(text[start:end]) and not _NO_VALUE.match(text[start:end]):
                yield Finding(start, end, "password")


class _Shape(NamedTuple):
    """What needs no name and sign."""

    needed: str  # a part of it, in small letters; without it the pattern need not be tried
    pattern: re.Pattern[str]
    fits: Callable[[str], bool]
    kind: str = "password"


def _no_number(value: str) -> bool:
    return not value.isdigit()


_SHAPES = (
    _Shape("bearer", re.compile(r"(?i)(?<!\w)bearer[ \t]{1,4}[\"']?(?P<value>[\w.~+/=-]{16,}+)"), looks_random, "key"),
    # scheme://user:password@host
    _Shape(
        "://",
        re.compile(r"(?<=://)[^\s:/@\"'<>]{0,128}+:(?!\d{1,5}/)(?P<value>[^\s\"'<>]{1,256})@(?=[\w\[])"),
        lambda value: True,
    ),
    # --password …
    _Shape(
        "--",
        re.compile(rf"(?<!\S)--?[\w-]{{0,40}}?{_SECRET_WORDS}[ \t]{{1,4}}[\"']?(?P<value>[^\s\"'<>]{{4,512}}+)"),
        _no_number,
    ),
    # curl -u user:password
    _Shape(
        "curl",
        re.compile(r"(?<!\w)(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"'<>]{1,64}+:(?P<value>[^\s\"'<>]{3,256}+)"),
        _no_number,
    ),
    # <password>…</password>
    _Shape(
        "</",
        re.compile(rf"(?i)<[\w.-]{{0,40}}{_SECRET_WORDS}[\w.-]{{0,20}}>(?P<value>[^<>\n]{{1,512}}+)</"),
        lambda value: True,
    ),
    # define('DB_PASSWORD', '…')
    _Shape(
        "',",
        re.compile(rf"(?i)'[\w.-]{{0,40}}{_SECRET_WORDS}[\w.-]{{0,20}}' ?, ?'(?P<value>[^'\n]{{4,256}}+)'"),
        _is_mixed,
    ),
    _Shape(
        '",',
        re.compile(rf'(?i)"[\w.-]{{0,40}}{_SECRET_WORDS}[\w.-]{{0,20}}" ?, ?"(?P<value>[^"\n]{{4,256}}+)"'),
        _is_mixed,
    ),
    # machine … login … password …
    _Shape(
        "login",
        re.compile(r"(?<!\S)login\s{1,8}\S{1,128}\s{1,8}password\s{1,8}(?P<value>\S{1,256}+)"),
        lambda value: True,
    ),
)
