"""Numbers that a state gives to a person, where their shape and their check digits tell them from other figures.

Those that any row of figures could be are taken only where the words before say what they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from research.governance.check_digits import (
    belgian_number,
    brazilian_cpf,
    french_nir,
    german_tax_id,
    is_date,
    italian_fiscal_code,
    luhn,
    spanish_dni,
    verhoeff,
    weighted,
)
from research.governance.findings import Finding

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
_FIGURES = re.compile(r"(?:\d[^\d]*+){6}")


def national_ids(text: str) -> Iterator[Finding]:
    for stretch in _STRETCH.finditer(text):
        start, end = stretch.span()
        if not _FIGURES.search(text, start, end):
            continue
        for rule in RULES:
            for match in rule.shape.finditer(text, start, end + 2):  # what follows may show that it is something else
                bare = re.sub(r"[^0-9A-Z]", "", match.group())
                before = max(0, match.start() - _BEFORE)
                if rule.valid(bare) and (rule.word is None or rule.word.search(text, before, match.start())):
                    yield Finding(*match.span(), "national_id")
