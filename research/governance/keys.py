"""Keys and tokens by the marks their makers give them, private keys, long strings that can be nothing else, and secrets
by what is written before them: `password=…`, `"client_secret": "…"`, `Authorization: Bearer …`, the user and password
in an address, and "the password is …".

In the spirit of detect-secrets, whose rules these were held against (tests/research/governance/test_keys.py). It is not
used itself: it names a type where a place is needed, takes four milliseconds for a thousand characters and loads an
HTTP client to try out what it finds at the maker's.

A name that means a password takes any value behind `=`. Names that often mean something else (token, key, secret) take
only what looks like no word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import log2
from typing import NamedTuple

from research.governance.patterns import TABLES, Finding, Labels, labels

_RUN = re.compile(r"(?<!\S)\S{16,}+")  # every mark below is at least that long with its token
_MARKED = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(TABLES['tokens'].values())})")
_JWT = re.compile(r"(?<![\w.-])eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3}")
_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d")
_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,48}-----|Private-MAC: ?[0-9a-f]{0,128}")
_BODY = re.compile(r"(?:[\s>#*|\"'+\\n-]{0,16}[A-Za-z0-9+/=]{8,128}+)*+")  # of a block whose end is cut off
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{32,}+={0,2}")
_WORDY = re.compile(r"[a-z]{9}|[A-Z]{9}")
_SYLLABLES = re.compile(r"[a-z]{4,}+")
_UNBROKEN = re.compile(r"[A-Za-z0-9]{12,}+")

_RANDOM = 4.2  # bits a character; a random string of 32 in this alphabet has 4.6, a row of words 3.9


def find_keys(text: str) -> Iterator[Finding]:
    if "PRIVATE KEY" in text or "PuTTY" in text:
        yield from _blocks(text)
    for run in _RUN.finditer(text):
        start, end = run.span()
        for marked in _MARKED.finditer(text, start, end):
            if looks_random(marked.group()):
                yield Finding(*marked.span(), "key")
        for token in _JWT.finditer(text, start, end):
            yield Finding(*token.span(), "key")
        if "://" not in run.group() and not run.group().startswith(("www.", "/", "./")):
            for blob in _BLOB.finditer(text, start, end):
                if is_blob(blob.group()):
                    yield Finding(*blob.span(), "key")


def looks_random(token: str) -> bool:
    """Return whether there is a figure, or capitals among small letters: words joined by dashes have neither."""
    return any(sign.isdigit() for sign in token) or (token.lower() != token != token.upper())


def is_blob(token: str) -> bool:
    """Letters of both cases and figures in such a mix that nobody typed it. Checksums have one case only, and paths and
    names are made of short parts."""
    core = max(_UNBROKEN.findall(token), key=len, default="")
    if not any(sign.isdigit() for sign in core) or core.lower() == core or core.upper() == core:
        return False
    if _WORDY.search(token) or sum(map(len, _SYLLABLES.findall(token))) > 0.4 * len(token):
        return False  # words, joined or with capitals inside
    return entropy(token[:512]) >= _RANDOM


def entropy(text: str) -> float:
    """Return Shannon's entropy, in bits a character."""
    total = len(text)
    return -sum(count / total * log2(count / total) for count in Counter(text).values()) if total else 0.0


def _blocks(text: str) -> Iterator[Finding]:
    """Each to its end; one that is cut off, as far as its lines go."""
    begins = [match.span() for match in _BLOCK.finditer(text)]
    ends = [*(start for start, _ in begins[1:]), len(text)]
    for (start, after), following in zip(begins, ends, strict=False):  # the words alone begin no block
        end = _BLOCK_END.search(text, after, following) or _BODY.match(text, after, following)
        yield Finding(start, end.end() if end else after, "private_key")


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
_SECRET = "(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key)"


def assigned(text: str) -> Iterator[Finding]:
    words, lowered = labels(), text.lower()
    spoken = any(word in lowered for word in words.password_words)
    for sign in _SIGN.finditer(text):
        found = _assigned(text, sign, words if spoken else None)
        if found is not None:
            yield found
    for shape in _SHAPES:
        if shape.needed in lowered:
            for match in shape.pattern.finditer(text):
                if not _NO_VALUE.match(match["value"]) and shape.fits(match["value"]):
                    yield Finding(*match.span("value"), shape.kind)
    if spoken:
        yield from _spoken(text, words)


def _assigned(text: str, sign: re.Match[str], words: Labels | None) -> Finding | None:
    """Return what stands behind a sign (= or :), if a name before it says that it is a secret."""
    before = max(0, sign.start() - 80)
    named = _NAME.search(text, before, sign.start())
    if named is None:
        return None
    name = _plain(named[2])
    kind = _kind(name) or _kind(_plain(named[1] or "") + name)
    if not kind and words is not None and words.password_name.search(text, before, sign.start()):
        kind = "password"
    if not kind:
        return None
    scheme = _SCHEME.match(text, sign.end())
    found, quoted = _value(text, scheme.end() if scheme else sign.end())
    start, end = found
    value = text[start:end]
    if len(value) < 3 or _NO_VALUE.match(value) or (not quoted and _CODE.match(value)) or _plain(value) == name:
        return None
    if kind == "password":
        fits = value.count(" ") <= 5 if quoted else "=" in sign.group() or sign.group() == "%3D"
        fits = fits or is_mixed(value) or (not quoted and _alone(text, named.start(2), end))
        return Finding(start, end, "password") if fits else None
    fits = len(value) >= (4 if kind == "short" else 8) and " " not in value
    fits = fits and (looks_random(value) if scheme else is_mixed(value))
    return Finding(start, end, "key") if fits else None


def _plain(name: str) -> str:
    return re.sub(r"[^a-zñ0-9]", "", name.lower()).replace("ñ", "n")


def _kind(name: str) -> str:
    if _PASSWORD.search(name):
        return "password"
    if _TOKEN.search(name):
        return "token"
    return "short" if _SHORT.search(name) else ""


def _value(text: str, at: int) -> tuple[tuple[int, int], bool]:
    """Where the value stands that begins here, and whether in quotes. Of one without quotes not what belongs to the
    sentence around; a ! or ? may belong to a password."""
    if quoted := _QUOTED.match(text, at):
        return quoted.span("value"), True
    bare = _BARE.match(text, at)
    if bare is None:
        return (at, at), False
    start, end = bare.span("value")
    if cut := _NEXT.search(text, start, end):
        end = cut.start()
    return (start, _trimmed(text, start, end)), False


def _trimmed(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1] in ".,;:)]}\\":
        end -= 1
    return end


def is_mixed(value: str) -> bool:
    """No word and no number: letters with figures or signs, or a jumble of capitals."""
    letters = any(sign.isalpha() for sign in value)
    if letters and any(sign.isdigit() or sign in "!@#$%^&*+=?~|" for sign in value):
        return True
    return len(value) >= 20 and value.lower() != value and entropy(value) > 3.5


def _alone(text: str, name: int, end: int) -> bool:
    """Return whether a line holds the name and the value and nothing else, as a settings file has it."""
    begin = text.rfind("\n", max(0, name - 80), name) + 1
    rest = text[end : end + 40].split("\n", 1)[0].strip()
    return not text[begin:name].strip(" \t-\"'*>") and not rest


def _spoken(text: str, words: Labels) -> Iterator[Finding]:
    """The password is …"""
    for match in words.password.finditer(text):
        value = _QUOTED.match(text, match.end()) or _BARE.match(text, match.end())
        if value is not None:
            start, end = value.start("value"), _trimmed(text, *value.span("value"))
            if end - start >= 5 and is_mixed(text[start:end]) and not _NO_VALUE.match(text[start:end]):
                yield Finding(start, end, "password")


_FITS: dict[str, Callable[[str], bool]] = {
    "": bool,
    "looks_random": looks_random,
    "is_mixed": is_mixed,
    "is_no_number": lambda value: not value.isdigit(),
}


class _Shape(NamedTuple):
    """What needs no name and sign."""

    needed: str
    pattern: re.Pattern[str]
    fits: Callable[[str], bool]
    kind: str


_SHAPES = tuple(
    _Shape(
        each["needed"],
        re.compile(each["shape"].replace("SECRET", _SECRET)),
        _FITS[each.get("fits", "")],
        each.get("kind", "password"),
    )
    for each in TABLES["secret"]
)
