"""Keys and tokens by the marks their makers give them, private keys, and long strings that can be nothing else.

In the spirit of detect-secrets, whose rules these were held against (tests/research/governance/test_keys.py). It is not
used itself: it names a type where a place is needed, takes four milliseconds for a thousand characters and loads an
HTTP client to try out what it finds at the maker's.

Secrets by what is written before them: `password=…`, `"client_secret": "…"`, `Authorization: Bearer …`, the user and
password in an address, and "the password is …".

A name that means a password takes any value behind `=`. Names that often mean something else (token, key, secret) take
only what looks like no word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import log2
from typing import NamedTuple

from research.governance.findings import Finding, Labels

_RUN = re.compile(r"(?<!\S)\S{16,}+")  # every mark below is at least that long with its token

# Possessive, and each begins where no letter or figure stands before: a text made of beginnings is read once.
_MARKED = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Z0-9])"  # Amazon
    r"|AIza[\w-]{35}|ya29\.[\w-]{20,}+|GOCSPX-[\w-]{28}"  # Google
    r"|gh[pousr]_[A-Za-z0-9]{36,255}+|github_pat_\w{22,255}+"
    r"|(?:glpat|gldt|glft|glsoat|glrt|glcbt|glimt|glptt|glagent|gloas|glffct)-[\w.-]{20,}+|GR1348941[\w-]{20,}+"
    r"|xox[abeoprs]-[\w-]{10,}+|xapp-\d-[\w-]{20,}+|xwfp-[\w-]{20,}+"  # Slack
    r"|hooks\.slack\.com/(?:services|workflows)/[\w/-]{20,}+|discord(?:app)?\.com/api/webhooks/\d{16,20}/[\w-]{40,}+"
    r"|(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/=]{24,}+"  # Stripe
    r"|sk-[\w-]{20,}+|hf_[A-Za-z0-9]{30,}+|api_org_[A-Za-z]{30,}+|gsk_[A-Za-z0-9]{40,}+|xai-[\w-]{40,}+"  # models
    r"|r8_[A-Za-z0-9]{37}|pplx-[A-Za-z0-9]{40,}+|nvapi-[\w-]{40,}+"
    r"|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,}+|rubygems_[a-f0-9]{48}|dckr_pat_[\w-]{20,}+|oy2[a-z0-9]{43}"  # packages
    r"|do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}(?:-\d)?|hv[sbr]\.[\w-]{24,}+|dp\.(?:pt|st|ct|sa)\.\w{40,}+"
    r"|SG\.[\w-]{16,32}+\.[\w-]{16,64}+|key-[0-9a-f]{32}|[0-9a-f]{32}-us\d{1,2}|(?:AC|SK)[0-9a-f]{32}"  # mail, calls
    r"|\d{8,10}:AA[\w-]{33}|[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38}"  # Telegram, Discord
    r"|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|sq0[a-z]{3}-[\w-]{22,43}+|EAAA[\w-]{60}"  # Shopify, Square
    r"|ATATT3[\w=-]{100,}+|ATCTT3[\w=-]{100,}+|lin_api_\w{32,}+|ntn_\w{40,}+|secret_[A-Za-z0-9]{43}|figd_[\w-]{36,}+"
    r"|glsa_\w{32,}+|sntry[su]_[\w=+/-]{40,}+|PMAK-[a-f0-9-]{50,}+|NRAK-[A-Z0-9]{27}|AGE-SECRET-KEY-1[A-Z0-9]{50,}+"
    r"|EAACEdEose0cBA\w{10,}+|tskey-[\w-]{20,}+|pul-[a-f0-9]{40}|CFPAT-[\w-]{40,}+|AKC[A-Za-z0-9]{20,}+"
    r"|[\w.~-]{3}\dQ~[\w.~-]{31,34}"  # Azure
    r")"
)
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
    """A figure, or capitals among small letters: words joined by dashes have neither."""
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
    """Shannon's, in bits a character."""
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
