"""Telephone numbers: by their shape where it can be nothing else, otherwise by the word before them."""

from __future__ import annotations

import pytest

from research.governance.redaction import BaseRedactor

PHONES = BaseRedactor({"phone"})


@pytest.mark.parametrize(
    "number",
    [
        "+49 (0)30 123456",
        "+49 (0) 711 / 1234-567",
        "+4915112345678",
        "+1 (415) 555-0132",
        "+1.415.555.0132",
        "0049 30 123456",
        "001-415-555-0132",
        "(415) 555-0132",
        "415-555-0132",
        "415.555.0132",
        "1-800-555-0199",
        "020 7946 0958",
        "(01632) 960 001",
        "030/1234567",
        "0171 / 1234567",
        "01 23 45 67 89",
        "06.12.34.56.78",
        "08-123 456 78",
        "(11) 91234-5678",
        "+48 123 456 789",
    ],
)
def test_by_its_shape(number: str) -> None:
    for text in (f"Ask Maria, {number}, about it.", f"({number})", f"{number}\nnext line"):
        [(start, end, kind)] = PHONES.find(text)
        assert (text[start:end].strip("()"), kind) == (number.strip("()"), "phone")


@pytest.mark.parametrize(
    "text",
    [
        "Phone: {}",
        "phone number is {}",
        "Tel. {}",
        "call me on {}",
        "Text me at {} tonight",
        "can be reached on {}",
        "ring the caretaker on {}",
        "Mobile (private): {}",
        "Telefon {}",
        "Handynummer lautet {}",
        "Rufen Sie uns an: {}",
        "Tél. : {}",
        "mi teléfono es {}",
        "telefono {}",
        "Bel {}",
        "telefone: {}",
        "fax no. {}",
    ],
)
def test_by_the_word_before(text: str) -> None:
    for number in ("612 345 678", "9553852", "22 123 45 67"):
        shown = text.format(number)
        [(start, end, _)] = PHONES.find(shown)
        assert shown[start:end] == number
        assert PHONES.find(f"in thousands {number}") == [], "without a word it may be a sum of money"


def test_two_in_a_row_and_extensions() -> None:
    text = "Tel: 030 1234567 / 0171 2345678, (415) 555-0132 ext. 12 and 415-555-0133x7"
    assert [text[start:end] for start, end, _ in PHONES.find(text)] == [
        "030 1234567",
        "0171 2345678",
        "(415) 555-0132 ext. 12",
        "415-555-0133x7",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "on 01.02.2024 and 2024-03-01, from 2019-2020 to 1990 - 2010",
        "ISBN 978-3-16-148410-0",
        "1 234 567 890 shares and +12 345 678 more",
        "0.00123456 and 3.14159265 and 12.345.678",
        "(12) 345 678 (2019) 4567890",
        "sales reached 1 234 567 and a level of 9553852 units",
        "Case 2:18-cv-12857 No. 000123456789",
        "chapters 01 02 03 04 05",
        "192.168.100.200 and 10/20/2024 12/31/2025",
        "call 911 or 112",
    ],
)
def test_other_figures_stay(text: str) -> None:
    assert PHONES.find(text) == []
