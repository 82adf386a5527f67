"""Mail addresses, cards, accounts, identity numbers: what people write is found whole, what only looks alike is not."""

from __future__ import annotations

import pytest

from research.governance.redaction import BaseRedactor

CASES = [
    # mail
    ("email", "Write to Ana.Lopez+news@mail.example.co.uk, please.", "Ana.Lopez+news@mail.example.co.uk"),
    ("email", "<o'brien@example.com>", "o'brien@example.com"),
    ("email", "mailto:x@example.museum.", "x@example.museum"),
    ("email", "müller@gärtnerei.de schrieb", "müller@gärtnerei.de"),
    ("email", "ana (at) example (dot) org", "ana (at) example (dot) org"),
    ("email", "ana [at] example.org", "ana [at] example.org"),
    ("email", "ana\u200b.lopez@exam\u00adple.com wrote", "ana\u200b.lopez@exam\u00adple.com"),
    # cards
    ("card", "4111 1111 1111 1111", "4111 1111 1111 1111"),
    ("card", "card 4111-1111-1111-1111.", "4111-1111-1111-1111"),
    ("card", "(378282246310005)", "378282246310005"),
    ("card", "Amex 3782 822463 10005", "3782 822463 10005"),
    ("card", "4111\u00a01111\u00a01111\u00a01111", "4111\u00a01111\u00a01111\u00a01111"),
    ("card", "4111 1111\n1111 1111", "4111 1111\n1111 1111"),
    ("card", "８８ POS 8841 5555555555554444 54.20", "5555555555554444"),
    ("card", "card number: 4111 1111 1111 1112", "4111 1111 1111 1112"),
    # accounts
    ("iban", "DE89 3704 0044 0532 0130 00 is ours", "DE89 3704 0044 0532 0130 00"),
    ("iban", "de89370400440532013000", "de89370400440532013000"),
    ("iban", "GB82-WEST-1234-5698-7654-32", "GB82-WEST-1234-5698-7654-32"),
    ("iban", "(NO93 8601 1117 947)", "NO93 8601 1117 947"),
    ("iban", "DE89 3704 0044\n0532 0130 00", "DE89 3704 0044\n0532 0130 00"),
    ("iban", "IBAN: DE88 3704 0044 0532 0130 00", "DE88 3704 0044 0532 0130 00"),
    # identity numbers
    ("national_id", "SSN 219-09-9999", "219-09-9999"),
    ("national_id", "social security number 219099999", "219099999"),
    ("national_id", "NINO AB 12 34 56 C", "AB 12 34 56 C"),
    ("national_id", "NHS number 943 476 5919", "943 476 5919"),
    ("national_id", "Steuer-ID 86 095 742 719", "86 095 742 719"),
    ("national_id", "2 55 08 14 168 025 38", "2 55 08 14 168 025 38"),
    ("national_id", "DNI 12345678Z", "12345678Z"),
    ("national_id", "RSSMRA85T10A562S", "RSSMRA85T10A562S"),
    ("national_id", "BSN 111222333", "111222333"),
    ("national_id", "PESEL 44051401359", "44051401359"),
    ("national_id", "personnummer 811218-9876", "811218-9876"),
    ("national_id", "85.07.30-033.28", "85.07.30-033.28"),
    ("national_id", "CPF 529.982.247-25", "529.982.247-25"),
    ("national_id", "Aadhaar 2341 2341 2346", "2341 2341 2346"),
    ("national_id", "SIN 046 454 286", "046 454 286"),
]


@pytest.mark.parametrize(("kind", "text", "value"), CASES)
def test_found_whole_and_nothing_else(kind: str, text: str, value: str) -> None:
    found = BaseRedactor({kind}).find(text)
    assert [(text[start:end], kind) for start, end, kind in found] == [(value, kind)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("email", "git@github.com:owner/repository.git"),
        ("email", "the price is 5 @ 3.50 and a@b has no domain"),
        ("email", "@decorator.with.dots and user@@example.com"),
        ("card", "4111 1111 1111 1112 does not add up"),
        ("card", "in 2019 2020 2021 2022 the sum was"),
        ("card", "1234567812345670 is nobody's prefix"),
        ("card", "41111 1111 1111 111 is grouped as no card is"),
        ("iban", "DE88370400440532013000 does not add up"),
        ("iban", "DE89 3704 is cut off; AB12 is a seat"),
        ("national_id", "000-12-3456 and 666-12-3456 and 987-65-4321 were never given"),
        ("national_id", "part no. 1234567890, order 219099999"),
        ("national_id", "86 095 742 718 and 44051401358"),
        ("national_id", "2024 2023 2022 and 046 454 286 in thousands"),
    ],
)
def test_what_only_looks_alike_stays(kind: str, text: str) -> None:
    assert BaseRedactor({kind}).find(text) == []


CHECKED = [case for case in CASES if case[0] in ("card", "iban", "national_id")]
# Shapes without a check digit, and those that a word before them makes one of.
UNCHECKED = ("SSN", "social", "NINO", "card ", "IBAN:")


@pytest.mark.parametrize(("kind", "text", "value"), [each for each in CHECKED if not each[1].startswith(UNCHECKED)])
def test_a_figure_that_is_mistyped_does_not_add_up(kind: str, text: str, value: str) -> None:
    at = max(at for at, sign in enumerate(value) if sign.isdigit())
    mistyped = value[:at] + str((int(value[at]) + 1) % 10) + value[at + 1 :]
    assert BaseRedactor({kind}).find(text.replace(value, mistyped)) == []


def test_corsica_has_letters_and_a_tax_id_one_figure_more_than_once() -> None:
    redactor = BaseRedactor({"national_id"})
    body = "25508" + "2A" + "168025"
    assert redactor.find(f"{body}{97 - int(body.replace('2A', '19')) % 97:02d}")
    assert redactor.find("Steuer-ID 12345678903") == redactor.find("PESEL 44023001350") == []
