"""Check digits: what tells an account, a card or an identity number from any other row of figures.

Each function takes the bare characters, without spaces and dashes, and says whether they add up.
"""

from __future__ import annotations

from datetime import date

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
