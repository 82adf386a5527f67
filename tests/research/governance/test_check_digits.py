"""Check digits: numbers that their makers give as examples add up, and with one figure changed they do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from research.governance.patterns import (
    belgian_number,
    brazilian_cpf,
    french_nir,
    german_tax_id,
    is_date,
    italian_fiscal_code,
    luhn,
    mod_97,
    spanish_dni,
    verhoeff,
    weighted,
)


def _pesel(digits: str) -> bool:
    return weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10)


@pytest.mark.parametrize(
    ("check", "number"),
    [
        (luhn, "4111111111111111"),
        (luhn, "378282246310005"),
        (mod_97, "DE89370400440532013000"),
        (mod_97, "GB82WEST12345698765432"),
        (mod_97, "NO9386011117947"),
        (german_tax_id, "86095742719"),
        (french_nir, "255081416802538"),
        (spanish_dni, "12345678Z"),
        (spanish_dni, "X1234567L"),
        (italian_fiscal_code, "RSSMRA85T10A562S"),
        (belgian_number, "85073003328"),
        (brazilian_cpf, "52998224725"),
        (verhoeff, "234123412346"),
        (_pesel, "44051401359"),
    ],
)
def test_examples_add_up_and_mistyped_ones_do_not(check: Callable[[str], bool], number: str) -> None:
    assert check(number)
    at = next(at for at in range(len(number) - 2, -1, -1) if number[at].isdigit())
    changed = number[:at] + str((int(number[at]) + 1) % 10) + number[at + 1 :]
    assert not check(changed)


def test_a_tax_id_has_one_figure_more_than_once() -> None:
    assert not german_tax_id("12345678903"[:10] + "3"), "all different"
    assert not german_tax_id("01234567899")


def test_corsica_and_dates() -> None:
    body = "2550814168025".replace("14", "2A", 1)
    value = int(body.replace("2A", "19"))
    assert french_nir(f"{body}{97 - value % 97:02d}")
    assert is_date(2024, 2, 29)
    assert not is_date(2023, 2, 29)
