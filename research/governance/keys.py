"""Keys and tokens by the marks their makers give them, private keys, and long strings that can be nothing else.

In the spirit of detect-secrets, whose rules these were held against (tests/research/governance/test_keys.py). It is not
used itself: it names a type where a place is needed, takes four milliseconds for a thousand characters and loads an
HTTP client to try out what it finds at the maker's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from research.governance.findings import Finding

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


def keys(text: str) -> Iterator[Finding]:
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
