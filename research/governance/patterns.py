"""What rules find in a text, where and of which kind, never the text itself; and what is known by its shape and its
check digits: mail addresses, cards, accounts, numbers that a state gives to a person, telephone numbers. The tables
are in patterns.toml; words and patterns of each language in languages/*.toml: who speaks another one adds a file.

`fold` is a text as finders read it: figures and letters of full width, spaces and dashes of all kinds made plain, and
what nobody sees (zero-width characters, soft hyphens) left out. PDFs are full of such characters by accident; a hostile
text may hold them on purpose.

All patterns are bounded: quantifiers are possessive or end soon, and a rule begins only where a word does, so a hostile
text costs no more time than its length.

Telephone numbers have no check digit, so their shape has to say it, or the words before them. Taken without a word:
+49 …, 0049 …, (212) 555-0132, 212-555-0132, and groups that begin with a 0 as national numbers do. Everything else
(612 345 678 might be a sum of money) only behind "phone", "Tel.", "call me on" and the like.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import category, decimal

TABLES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text("utf-8"))


class Finding(NamedTuple):
    start: int
    end: int
    kind: str


_UNSEEN = re.compile(
    "[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)


class _Plain(dict[int, int]):
    """Character → its plain one."""

    def __missing__(self, code: int) -> int:
        sign = chr(code)
        plain = code - 0xFEE0 if 0xFF01 <= code <= 0xFF5E else code
        if (kind := category(sign)) == "Nd":
            plain = 0x30 + decimal(sign)
        elif kind == "Zs":
            plain = 0x20
        elif kind == "Pd" or sign == "−":
            plain = 0x2D
        if len(self) < 1 << 14:  # a hostile text may hold all characters there are
            self[code] = plain
        return plain


_PLAIN = _Plain({**dict.fromkeys(map(ord, "“”„‟"), ord('"')), **dict.fromkeys(map(ord, "‘’‚‛"), ord("'"))})


@dataclass(frozen=True, slots=True, repr=False)
class Folded:
    text: str
    places: Sequence[int] | None = None  # of each character in the original; None: where it stands here

    def original(self, start: int, end: int) -> tuple[int, int]:
        return (start, end) if self.places is None else (self.places[start], self.places[end - 1] + 1)


def fold(text: str) -> Folded:
    if text.isascii():
        return Folded(text)
    plain = text.translate(_PLAIN)  # one character for one
    if not _UNSEEN.search(plain):
        return Folded(plain)
    places = [at for at, sign in enumerate(plain) if not _UNSEEN.match(sign)]
    return Folded("".join(plain[at] for at in places), places)


@cache
def languages() -> list[dict[str, Any]]:
    files = Path(__file__).with_name("languages").glob("*.toml")
    return [tomllib.loads(file.read_text("utf-8")) for file in sorted(files)]


def all_words(field: str) -> frozenset[str]:
    """Return the words of a field in all languages."""
    return frozenset(word for language in languages() for word in language.get(field, "").split())


def any_pattern(field: str) -> str:
    """Return a pattern that fits what fits the field's in any language, the longest first."""
    words = dict.fromkeys(word for each in languages() if field in each for word in each[field].split("|"))
    return "|".join(sorted(words, key=len, reverse=True))


def all_patterns(field: str) -> list[str]:
    """Return the patterns of a field in all languages."""
    return [pattern for language in languages() for pattern in language.get(field, ())]


class Labels(NamedTuple):
    """Patterns for what stands before a number; each ends where the number begins."""

    phone: re.Pattern[str]
    call: re.Pattern[str]
    password: re.Pattern[str]  # to the end of "the password is "
    password_name: re.Pattern[str]  # at the end of what stands before a colon
    password_words: tuple[str, ...]  # in small letters; without one of them no pattern needs to be tried


@cache
def labels() -> Labels:
    number = r"(?:[ -]?(?:numbers?|no\.?|nr\.?|nummer|numero|número|numéro|num\.?|n°|№))?"
    link = any_pattern("link")
    between = r"[ \t:.=#|>/-]{0,5}"
    phone = (
        rf"(?i)(?<![^\W\d_])(?:{any_pattern('phone')})(?:s|\.)?{number}(?: ?\([^()\d\n]{{1,24}}\))?"
        rf"(?: ?(?:{link})(?= ))?{between}$"
    )
    call = (
        rf"(?i)(?<![^\W\d_])(?:(?:{any_pattern('call')})(?: (?:{any_pattern('person')})(?![^\W\d_]))?{between}"
        rf"|(?:{any_pattern('reach')}|{any_pattern('call')})(?![^\W\d_])[^\d\n.!?:]{{0,30}}?"
        rf"(?:(?<= )(?:{link}|number) |:){between})$"
    )
    words = any_pattern("password")
    word = rf"(?<![^\W\d_])(?:{words})(?![^\W\d_])"
    name = rf"(?i){word}[\"'` )\]]{{0,3}}[ \t]{{0,4}}$"
    of_what = r"(?: (?:for|of|to|für|von|pour|de|para|per|voor) [^\n:=]{1,40}?)?"
    password = rf"(?i){word}{of_what}[ ,]{{1,2}}(?:{link}) (?:now |still |jetzt )?"
    plain = tuple(word.split(" ?")[0] for word in words.split("|"))
    return Labels(re.compile(phone), re.compile(call), re.compile(password), re.compile(name), plain)


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
_ISSUERS = tuple((re.compile(begin), tuple(lengths)) for begin, lengths in TABLES["card"]["issuers"])
_CARD_GROUPS = set(map(tuple, TABLES["card"]["groups"]))
_IBAN_LENGTHS = {country: int(length) for length, countries in TABLES["iban"].items() for country in countries.split()}


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
    """Return how many groups of figures from the first on are a card; 0 if none are."""
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
        length = _IBAN_LENGTHS.get(match.group()[:2].upper())
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


# Check digits. Each function takes the bare characters, in capitals, without spaces and dashes.

_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_FISCAL_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_VERHOEFF_PRODUCT = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_VERHOEFF_PLACE = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip


def luhn(digits: str) -> bool:
    doubled = [int(sign) * (2 if at % 2 else 1) for at, sign in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def mod_97(iban: str) -> bool:
    moved = iban[4:] + iban[:4]
    return int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1


def _social_security(digits: str) -> bool:
    return digits[:3] not in {"000", "666"} and digits[0] != "9" and digits[3:5] != "00" and digits[5:] != "0000"


def _german_tax_id(digits: str) -> bool:
    """ISO 7064 MOD 11,10; and of the first ten figures exactly one stands there twice or three times."""
    times = sorted((digits[:10].count(sign) for sign in set(digits[:10])), reverse=True)
    if times[0] not in {2, 3} or (len(times) > 1 and times[1] > 1):
        return False
    product = 10
    for sign in digits[:10]:
        total = (int(sign) + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(digits[10])


def _french_nir(number: str) -> bool:
    """The last two are 97 less the rest; Corsica has letters in its department."""
    body = number[:13].replace("2A", "19").replace("2B", "18")
    return int(number[13:]) == 97 - int(body) % 97


def _spanish_dni(number: str) -> bool:
    figures = str("XYZ".find(number[0])) + number[1:8] if number[0] in "XYZ" else number[:8]
    return _DNI_LETTERS[int(figures) % 23] == number[8]


def _italian_fiscal_code(code: str) -> bool:
    """Figures count as the letters A to J do."""
    values = [int(sign) if sign.isdigit() else ord(sign) - ord("A") for sign in code[:15]]
    return chr(ord("A") + (sum(_FISCAL_ODD[value] for value in values[::2]) + sum(values[1::2])) % 26) == code[15]


def _pesel_date(digits: str) -> bool:
    century, month = divmod(int(digits[2:4]), 20)
    year = int(digits[:2]) + {0: 1900, 1: 2000, 2: 2100, 3: 2200, 4: 1800}[century]
    return _is_date(year, month, int(digits[4:6]))


def _personnummer(digits: str) -> bool:
    day = int(digits[-6:-4])
    return _is_date(2000, int(digits[-8:-6]), day - 60 if day > 60 else day) and luhn(digits[-10:])


def _belgian_number(digits: str) -> bool:
    """Whoever is born in this millennium has a 2 before it."""
    body, check = int(digits[:9]), int(digits[9:])
    return check in {97 - body % 97, 97 - int(f"2{digits[:9]}") % 97}


def _brazilian_cpf(digits: str) -> bool:
    if len(set(digits)) == 1:
        return False
    for length in (9, 10):
        total = sum(int(sign) * (length + 1 - at) for at, sign in enumerate(digits[:length]))
        if total * 10 % 11 % 10 != int(digits[length]):
            return False
    return True


def _verhoeff(digits: str) -> bool:
    check = 0
    for at, sign in enumerate(reversed(digits)):
        check = int(_VERHOEFF_PRODUCT[check][int(_VERHOEFF_PLACE[at % 8][int(sign)])])
    return check == 0


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


_CHECKS: dict[str, Callable[[str], bool]] = {
    "": bool,
    "belgian_number": _belgian_number,
    "brazilian_cpf": _brazilian_cpf,
    "french_nir": _french_nir,
    "german_tax_id": _german_tax_id,
    "italian_fiscal_code": _italian_fiscal_code,
    "luhn": luhn,
    "personnummer": _personnummer,
    "pesel_date": _pesel_date,
    "social_security": _social_security,
    "spanish_dni": _spanish_dni,
    "verhoeff": _verhoeff,
}


class _NationalId(NamedTuple):
    shape: re.Pattern[str]
    check: Callable[[str], bool]
    weights: Sequence[int]
    modulus: int
    word: re.Pattern[str] | None  # without which it is not taken

    def fits(self, bare: str, text: str, start: int) -> bool:
        total = sum(int(sign) * weight for sign, weight in zip(bare, self.weights, strict=False))
        if total % self.modulus or not self.check(bare):
            return False
        return self.word is None or bool(self.word.search(text, max(0, start - 32), start))


_NATIONAL_IDS = tuple(
    _NationalId(
        re.compile(rf"(?<![\w.])(?<!\d[-,]){each['shape']}(?![\w]|[-.]\d)"),
        _CHECKS[each.get("check", "")],
        each.get("weights", ()),
        each.get("modulus", 1),
        re.compile(f"(?i){each['word']}") if "word" in each else None,
    )
    for each in TABLES["national_id"]
)
# Stretches of figures and capitals; prose has few, and only in them the rules are tried one by one.
_STRETCH = re.compile(r"(?<!\w)[A-Z\d][A-Z\d .+-]{7,}+")
_SIX_FIGURES = re.compile(r"(?:\d[^\d]*+){6}")


def national_ids(text: str) -> Iterator[Finding]:
    for stretch in _STRETCH.finditer(text):
        start, end = stretch.span()
        if not _SIX_FIGURES.search(text, start, end):
            continue
        for rule in _NATIONAL_IDS:
            for match in rule.shape.finditer(text, start, end + 2):  # what follows may show that it is something else
                if rule.fits(re.sub(r"[^0-9A-Z]", "", match.group()), text, match.start()):
                    yield Finding(*match.span(), "national_id")


# Figures with what people put between them; possessive, and a zone begins only where a word does.
_ZONE = re.compile(r"(?<![\w.,])(?:\+ ?)?\(?\+?\d[\d ().\-/]{5,}+")
_PIECES = re.compile(r" [/|] | {2,}+|(?<=\d) - (?=\d)|/(?=0)|(?<=\d) (?=\((?!0\))\d)")  # between two numbers in a row
_EXTENSION = re.compile(r"(?i) ?(?:x|ext\.?|extension|#|durchwahl|dw\.?|poste|wew\.?) ?\d{1,6}(?!\d)")
_DAY, _MONTH = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])"
_DATE = re.compile(
    rf"(?:{_DAY}[./-]{_MONTH}|{_MONTH}[./-]{_DAY})[./-](?:\d{{4}}|\d{{2}})|\d{{4}}[./-]{_MONTH}[./-]{_DAY}"
)
_DATES = re.compile(rf"(?:{_DAY}[./ -]{_MONTH}[./ -](?:19|20)\d\d|(?:19|20)\d\d[./-]{_MONTH}[./-]{_DAY})(?!\d)")
_YEARS = re.compile(r"(?:19|20)\d{2}(?:[ /-]{1,3}(?:19|20)?\d{2}){1,8}+")
_LETTER = re.compile(r"[^\W\d_]")
_BEFORE = 64  # characters in which a word may say what it is
_LONGEST_PHONE = 40  # characters of a number with all its signs


def phones(text: str) -> Iterator[Finding]:
    for zone in _ZONE.finditer(text):
        whole = _trimmed(text, *zone.span())
        found = [whole] if _is_phone(text, *whole) else _pieces(text, *zone.span())
        for begin, end in found:
            if found == [whole] or _is_phone(text, begin, end):
                extension = _EXTENSION.match(text, end)
                yield Finding(begin, extension.end() if extension else end, "phone")


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a zone where one number may end and the next begin."""
    cuts = [start, *(at for match in _PIECES.finditer(text, start, end) for at in match.span()), end]
    if len(cuts) == 2:
        return []
    return [_trimmed(text, begin, stop) for begin, stop in zip(cuts[::2], cuts[1::2], strict=True)]


def _trimmed(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return its edges without the signs there."""
    while end > begin and not text[end - 1].isdigit():
        end -= 1
    while begin < end and text[begin] in " .-/)":
        begin += 1
    if text[begin] == "(" and text.count("(", begin, end) > text.count(")", begin, end):
        begin += 1  # it closes behind the number
    return begin, end


def _is_phone(text: str, begin: int, end: int) -> bool:
    number = text[begin:end]
    groups = re.findall(r"\d+", number)
    digits = "".join(groups)
    if end - begin > _LONGEST_PHONE or not 6 <= len(digits) <= 17 or number.count("(") != number.count(")"):
        return False
    if re.search(r"[ .\-/]{3}|\({2}", re.sub(r" ([/-]) ", r"\1", number)):
        return False
    plain = number.strip("()")
    if _DATE.fullmatch(plain) or _YEARS.fullmatch(plain) or _DATES.match(plain):
        return False
    if groups[0] in {"978", "979"} and len(digits) == 13:
        return False  # a book
    return _has_shape(number, groups, digits) or _is_labelled(groups, digits, text, begin)


def _has_shape(number: str, groups: Sequence[str], digits: str) -> bool:
    if number.lstrip("(").startswith("+"):
        thousands = set(re.sub(r"[\d+]", "", number)) <= {" ", "."} and len(groups[0]) <= 3  # 1 234 567, a sum of money
        thousands = thousands and all(len(group) == 3 for group in groups[1:])
        return 8 <= len(digits) <= 15 and digits[0] != "0" and not (len(digits) < 10 and thousands)
    if digits.startswith("00"):
        return digits[2:3] not in {"0", ""} and (10 if len(groups) > 1 else 12) <= len(digits) <= 16
    signs = set(re.sub(r"\d", "", number))
    if digits.startswith("0"):
        return _is_national(groups, digits, signs)
    return _is_north_american(number, groups, signs)


def _is_national(groups: Sequence[str], digits: str, signs: set[str]) -> bool:
    """0 and the area, then the number, with something in between."""
    shape = list(map(len, groups))
    if not 9 <= len(digits) <= 12 or not 2 <= len(shape) <= 6 or min(shape) < 2:
        return False
    if "." in signs and (signs != {"."} or len(set(shape[1:])) > 1):
        return False
    values = list(map(int, groups))
    return not (len(values) > 2 and all(after - before == 1 for before, after in pairwise(values)))


def _is_north_american(number: str, groups: Sequence[str], signs: set[str]) -> bool:
    size = sum(map(len, groups))
    if groups[0] == "1":
        groups = groups[1:]
    shape = tuple(map(len, groups))
    if shape == (3, 3, 4) and groups[0][0] in "23456789" and groups[1][0] in "23456789":
        return bool(signs & set("-.(")) and "/" not in signs
    # (11) 91234-5678: an area in brackets and a dash; brackets alone might be a loss in a table.
    return number.startswith("(") and "-" in signs and 2 <= shape[0] <= 3 and 8 <= size <= 12


def _is_labelled(groups: Sequence[str], digits: str, text: str, begin: int) -> bool:
    if len(digits) > 15 or (len(digits) < 7 and len(groups) < 2):
        return False
    before = max(0, begin - _BEFORE)
    if not _LETTER.search(text, max(before, begin - 8), begin):
        return False  # a row of figures in a table; the search for words would be the dearest part of it
    return bool(labels().phone.search(text, before, begin) or labels().call.search(text, before, begin))
