"""What is known by its shape and its check digits: mail addresses, cards, accounts, and addresses of machines.

All patterns are bounded: quantifiers are possessive or end soon, and a rule begins only where a word does, so a hostile
text costs no more time than its length.

Numbers that a state gives to a person, where their shape and their check digits tell them from other figures.

Those that any row of figures could be are taken only where the words before say what they are.

Check digits: what tells an account, a card or an identity number from any other row of figures.

Each function takes the bare characters, without spaces and dashes, and says whether they add up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from ipaddress import ip_address
from typing import NamedTuple

from research.governance.findings import Finding

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_FISCAL_ODD = {
    **dict(zip("0123456789", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True)),
    **dict(
        zip(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
            strict=True,
        )
    ),
}
_VERHOEFF_PRODUCT = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_PLACE = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


def luhn(digits: str) -> bool:
    """Cards, and the numbers of Canadians and Swedes."""
    doubled = [int(sign) * (2 if at % 2 else 1) for at, sign in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def mod_97(iban: str) -> bool:
    moved = iban[4:] + iban[:4]
    return int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1


def german_tax_id(digits: str) -> bool:
    """ISO 7064 MOD 11,10; and of the first ten figures exactly one stands there twice or three times."""
    if digits[0] == "0":
        return False
    times = sorted((digits[:10].count(sign) for sign in set(digits[:10])), reverse=True)
    if times[0] not in {2, 3} or (len(times) > 1 and times[1] > 1):
        return False
    product = 10
    for sign in digits[:10]:
        total = (int(sign) + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(digits[10])


def weighted(digits: str, weights: tuple[int, ...], modulus: int) -> bool:
    """Whether the weighted sum of all figures is a multiple: the Dutch eleven test, the Polish PESEL, the NHS."""
    return sum(int(sign) * weight for sign, weight in zip(digits, weights, strict=True)) % modulus == 0


def french_nir(number: str) -> bool:
    """The last two are 97 less the rest; Corsica has letters in its department."""
    body = number[:13].replace("2A", "19").replace("2B", "18")
    return int(number[13:]) == 97 - int(body) % 97


def spanish_dni(number: str) -> bool:
    figures = str("XYZ".find(number[0])) + number[1:8] if number[0] in "XYZ" else number[:8]
    return _DNI_LETTERS[int(figures) % 23] == number[8]


def italian_fiscal_code(code: str) -> bool:
    odd = sum(_FISCAL_ODD[sign] for sign in code[0:15:2])
    even = sum(int(sign) if sign.isdigit() else ord(sign) - ord("A") for sign in code[1:15:2])
    return chr(ord("A") + (odd + even) % 26) == code[15]


def belgian_number(digits: str) -> bool:
    """Whoever is born in this millennium has a 2 before it."""
    body, check = int(digits[:9]), int(digits[9:])
    return check in {97 - body % 97, 97 - int(f"2{digits[:9]}") % 97}


def brazilian_cpf(digits: str) -> bool:
    if len(set(digits)) == 1:
        return False
    for length in (9, 10):
        total = sum(int(sign) * (length + 1 - at) for at, sign in enumerate(digits[:length]))
        if total * 10 % 11 % 10 != int(digits[length]):
            return False
    return True


def verhoeff(digits: str) -> bool:
    """The Indian Aadhaar."""
    check = 0
    for at, sign in enumerate(reversed(digits)):
        check = int(_VERHOEFF_PRODUCT[check][int(_VERHOEFF_PLACE[at % 8][int(sign)])])
    return check == 0


def is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


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


_BEFORE = 32  # characters in which a word may say what the number is


class NationalId(NamedTuple):
    country: str
    shape: re.Pattern[str]
    valid: Callable[[str], bool]  # of the bare characters, in capitals
    word: re.Pattern[str] | None = None  # without which it is not taken


def _social_security(digits: str) -> bool:
    return digits[:3] not in {"000", "666"} and digits[0] != "9" and digits[3:5] != "00" and digits[5:] != "0000"


def _insurance_number(number: str) -> bool:
    return number[:2] not in {"BG", "GB", "NK", "KN", "TN", "NT", "ZZ"}


def _nhs(digits: str) -> bool:
    return weighted(digits, (10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11)


def _bsn(digits: str) -> bool:
    return int(digits) > 0 and weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1), 11)


def _pesel(digits: str) -> bool:
    century, month = divmod(int(digits[2:4]), 20)
    year = int(digits[:2]) + {0: 1900, 1: 2000, 2: 2100, 3: 2200, 4: 1800}[century]
    return is_date(year, month, int(digits[4:6])) and weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10)


def _personnummer(digits: str) -> bool:
    day = int(digits[-6:-4])
    return is_date(2000, int(digits[-8:-6]), day - 60 if day > 60 else day) and luhn(digits[-10:])


def _aadhaar(digits: str) -> bool:
    return verhoeff(digits)


def _rule(country: str, shape: str, valid: Callable[[str], bool], word: str = "") -> NationalId:
    edges = rf"(?<![\w.])(?<!\d[-,]){shape}(?![\w]|[-.]\d)"
    return NationalId(country, re.compile(edges), valid, re.compile(rf"(?i){word}") if word else None)


RULES = (
    _rule("US", r"\d{3}([- ])\d{2}\1\d{4}", _social_security),
    _rule("US", r"\d{9}", _social_security, r"\bssn\b|social security"),
    _rule("GB", r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]", _insurance_number),
    _rule("GB", r"\d{3}[ -]?\d{3}[ -]?\d{4}", _nhs, r"\bnhs\b"),
    _rule("DE", r"[1-9]\d ?\d{3} ?\d{3} ?\d{3}", german_tax_id),
    _rule("FR", r"[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}", french_nir),
    _rule("ES", r"(?:\d{8}|\d{2}\.\d{3}\.\d{3}|[XYZ][ -]?\d{7})[ -]?[A-HJ-NP-TV-Z]", spanish_dni),
    _rule("IT", r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]", italian_fiscal_code),
    _rule("NL", r"\d{9}|\d{4}[ .]\d{2}[ .]\d{3}", _bsn, r"\bbsn\b|burgerservicenummer|sofinummer"),
    _rule("PL", r"\d{11}", _pesel),
    _rule("SE", r"(?:19|20)?\d{6}[-+]\d{4}", _personnummer),
    _rule("BE", r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}", belgian_number),
    _rule("BR", r"\d{3}\.\d{3}\.\d{3}-\d{2}", brazilian_cpf),
    _rule("BR", r"\d{11}", brazilian_cpf, r"\bcpf\b"),
    _rule("IN", r"[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}", _aadhaar, r"aadh?aar"),
    _rule("CA", r"\d{3}[ -]?\d{3}[ -]?\d{3}", luhn, r"\bsin\b|\bnas\b|social insurance"),
)

# Stretches of figures and capitals; prose has few, and only in them the rules are tried one by one.
_STRETCH = re.compile(r"(?<!\w)[A-Z\d][A-Z\d .+-]{7,}+")
_SIX_FIGURES = re.compile(r"(?:\d[^\d]*+){6}")


def national_ids(text: str) -> Iterator[Finding]:
    for stretch in _STRETCH.finditer(text):
        start, end = stretch.span()
        if not _SIX_FIGURES.search(text, start, end):
            continue
        for rule in RULES:
            for match in rule.shape.finditer(text, start, end + 2):  # what follows may show that it is something else
                bare = re.sub(r"[^0-9A-Z]", "", match.group())
                before = max(0, match.start() - _BEFORE)
                if rule.valid(bare) and (rule.word is None or rule.word.search(text, before, match.start())):
                    yield Finding(*match.span(), "national_id")
