"""What is known by its shape and its check digits: mail addresses, cards, accounts, and addresses of machines.

All patterns are bounded: quantifiers are possessive or end soon, and a rule begins only where a word does, so a hostile
text costs no more time than its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address

from research.governance.check_digits import luhn, mod_97
from research.governance.findings import Finding

_EMAIL = re.compile(
    r"(?<![\w.+%-])(?!(?:git|hg|svn)@)\w[\w.+%'&/=-]{0,63}+@(?:[^\W_][\w-]{0,61}+\.){1,6}[^\W\d_]{2,24}+(?![\w@])"
)
_AT = re.compile(r"[(\[{] ?(?:at|@|AT) ?[)\]}]")
_SPELT_EMAIL = re.compile(
    rf"(?<![\w.+%-])\w[\w.+-]{{0,63}}+ ?{_AT.pattern} ?\w[\w-]{{0,62}}+"
    r"(?: ?(?:\.|[(\[{] ?(?:dot|DOT|punkt) ?[)\]}]) ?[\w-]{2,63}+){1,5}+"
)
_FIGURES = re.compile(r"(?<![\w+])(?<!\d[.,])\d(?:[ \n-]?\d){11,}+(?!\w)")
_CARD_WORD = re.compile(r"(?i)(?:card|karte|carte|tarjeta|carta|kaart|cartão|kort)[^\d\n]{0,24}$")
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?=[ \n-]?[A-Za-z0-9]{2})")
_IBAN_WORD = re.compile(r"(?i)iban[^A-Za-z0-9]{0,6}$")
_IP = re.compile(
    r"(?<![\w.:])(?:(?:\d{1,3}\.){3}\d{1,3}(?![\w.]|\.\d)|(?:[0-9A-Fa-f]{0,4}:){2,7}(?:[0-9A-Fa-f]{1,4}|:)(?![\w:.]))"
)
_MAC = re.compile(
    r"(?<![\w:.-])(?:[0-9A-Fa-f]{2}(?P<sep>[:-])(?:[0-9A-Fa-f]{2}(?P=sep)){4}[0-9A-Fa-f]{2}"
    r"|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4})(?![\w:-])"
)

# Beginnings of issuers, and the lengths of their numbers.
_ISSUERS: tuple[tuple[re.Pattern[str], tuple[int, ...]], ...] = tuple(
    (re.compile(begin), lengths)
    for begin, lengths in (
        (r"4", (13, 16, 19)),  # Visa
        (r"5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)", (16,)),  # Mastercard
        (r"3[47]", (15,)),  # American Express
        (r"3(?:0[0-5]|095|[689])", (14, 16, 17, 18, 19)),  # Diners
        (r"35", (16, 17, 18, 19)),  # JCB
        (r"6(?:011|4[4-9]|5|2)", (16, 17, 18, 19)),  # Discover, UnionPay, RuPay
        (r"5[06-8]|6\d", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
        (r"220[0-4]|8[12]", (16,)),  # Mir, RuPay
    )
)
_CARD_GROUPS = {
    (4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3), (4, 5, 6), (6, 13), (4, 4, 5), (4, 4, 4), (4, 4, 4, 1), (8, 8),
    (4, 4, 4, 4, 2), (4, 4, 4, 4, 1), (4, 4, 4, 2), (4, 4, 4, 3), (5, 5, 5), (6, 10),
}  # fmt: skip

# The registry of the IBAN: how long each country's is.
IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20,
    "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19,
    "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29,
    "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24,
    "SM": 27, "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
    "YE": 30,
}  # fmt: skip


def emails(text: str) -> Iterator[Finding]:
    for pattern in (*([_EMAIL] if "@" in text else []), *([_SPELT_EMAIL] if _AT.search(text) else [])):
        for match in pattern.finditer(text):
            yield Finding(*match.span(), "email")


def cards(text: str) -> Iterator[Finding]:
    for zone in _FIGURES.finditer(text):
        groups = [match.span() for match in re.finditer(r"\d+", zone.group())]
        at = 0
        while at < len(groups):
            count = _card_groups(text, zone.start(), groups[at : at + 5])
            if count:
                yield Finding(zone.start() + groups[at][0], zone.start() + groups[at + count - 1][1], "card")
            at += count or 1


def _card_groups(text: str, start: int, groups: list[tuple[int, int]]) -> int:
    """How many groups of figures from the first on are a card; 0 if none are."""
    for count in range(len(groups), 0, -1):
        shape = tuple(end - begin for begin, end in groups[:count])
        if (12 <= shape[0] <= 19) if count == 1 else shape in _CARD_GROUPS:
            digits = "".join(text[start + begin : start + end] for begin, end in groups[:count])
            if _is_card(digits, text, start + groups[0][0]):
                return count
    return 0


def _is_card(digits: str, text: str, at: int) -> bool:
    if not any(begin.match(digits) and len(digits) in lengths for begin, lengths in _ISSUERS):
        return False
    # One that calls itself a card may be mistyped and is still somebody's.
    return luhn(digits) or bool(_CARD_WORD.search(text, max(0, at - 40), at))


def ibans(text: str) -> Iterator[Finding]:
    for match in _IBAN.finditer(text):
        length = IBAN_LENGTHS.get(match.group()[:2].upper())
        if length is None:
            continue
        end, signs = _signs(text, match.start(), length)
        if len(signs) < length:
            continue
        if mod_97(signs.upper()) or _IBAN_WORD.search(text, max(0, match.start() - 12), match.start()):
            yield Finding(match.start(), end, "iban")


def _signs(text: str, start: int, count: int) -> tuple[int, str]:
    """So many letters and figures, with at most one space, dash or line break between two; and where they end."""
    found: list[str] = []
    at = start
    while at < len(text) and len(found) < count:
        sign = text[at]
        if sign.isascii() and sign.isalnum():
            found.append(sign)
        elif sign not in " -\n" or text[at - 1] in " -\n":
            break
        at += 1
    return at, "".join(found)


def addresses_of_machines(text: str) -> Iterator[Finding]:
    for match in _IP.finditer(text):
        try:
            ip_address(match.group())
        except ValueError:
            continue
        yield Finding(*match.span(), "ip")


def hardware_addresses(text: str) -> Iterator[Finding]:
    for match in _MAC.finditer(text):
        yield Finding(*match.span(), "mac")
