"""What a rule found in a text, where and of which kind (never the text itself), what rules read, and what they leave.

A finder takes a text and gives findings. `fold` is a text as finders read it: figures and letters of full width, spaces
and dashes of all kinds made plain, and what nobody sees (zero-width characters, soft hyphens) left out. Where something
was found is told in places of the original. PDFs are full of such characters by accident; a hostile text may hold them
on purpose.

Words and patterns of each language stand in languages/*.toml; who speaks another one adds a file.

`Placeholders` stand in place of what was taken out: `<PERSON_1>`, and the same again for the same person. One belongs
to one context: all texts that are redacted with it share its numbers. It keeps no value, only keyed hashes that mean
nothing outside this process, so nothing can be read out of it.
"""

from __future__ import annotations

import re
import secrets
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from unicodedata import category, decimal

# Of two that overlap, the first of these names the whole.
SECRET_KINDS = ("private_key", "key", "password")
PATTERN_KINDS = ("iban", "card", "national_id", "email", "phone")
MODEL_KINDS = ("address", "person")
KINDS = (*SECRET_KINDS, *PATTERN_KINDS, *MODEL_KINDS)


class Finding(NamedTuple):
    start: int
    end: int
    kind: str


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in order, none of which overlap: those that do become one, so that nothing of either is left."""
    joined: list[Finding] = []
    for each in sorted(findings):
        if joined and each.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Finding(last.start, max(last.end, each.end), min(last.kind, each.kind, key=KINDS.index))
        else:
            joined.append(each)
    return joined


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


PLACEHOLDER = re.compile(r"<[A-Z]{2,16}(?:_[A-Z]{2,16}){0,2}_[0-9]{1,6}>")

_WORD = re.compile(r"[^\W\d_]++")


class Placeholders:
    def __init__(self) -> None:
        self._salt = secrets.token_bytes(16)
        self._lock = Lock()
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._counts: Counter[str] = Counter()
        self._people: dict[int, frozenset[bytes]] = {}

    def name(self, kind: str, value: str) -> str:
        """Return the placeholder for a value of a kind ("person", "email", …), without regard to case, spaces and
        signs."""
        with self._lock:
            number = self._person(value) if kind == "person" else self._number(kind, essence(kind, value))
        return f"<{kind.upper()}_{number}>"

    def knows_person(self, word: str) -> bool:
        """Return whether a word, in small letters, is among the names of somebody who was named in full."""
        hashed = self._hash(word)
        with self._lock:
            return any(hashed in names for names in self._people.values() if len(names) > 1)

    def _number(self, kind: str, value: str) -> int:
        key = kind, self._hash(value)
        if key not in self._numbers:
            self._counts[kind] += 1
            self._numbers[key] = self._counts[kind]
        return self._numbers[key]

    def _person(self, value: str) -> int:
        """Somebody whose words are among a known person's, or the other way round, is that person, if it can be only
        one: Ms Lopez is Maria Lopez, until there is an Ana Lopez too."""
        words = frozenset(self._hash(word) for word in essence("person", value).split())
        same = [number for number, known in self._people.items() if words and (words <= known or known <= words)]
        exact = [number for number in same if self._people[number] == words]
        if len(exact or same) != 1:
            number = self._number("person", essence("person", value))
            self._people.setdefault(number, words)
            return number
        [number] = exact or same
        self._people[number] |= words
        return number

    def _hash(self, value: str) -> bytes:
        return blake2b(value.encode("utf-8", "surrogatepass"), key=self._salt, digest_size=16).digest()


def essence(kind: str, value: str) -> str:
    """Return a value without what may differ between two mentions of the same."""
    if kind == "person":
        words = _WORD.findall(re.sub(r"['’]s\b", "", value).casefold())
        titles = all_words("titles")
        return " ".join(word for word in words if word not in titles and len(word) > 1) or value.casefold()
    if kind in {"card", "iban", "phone", "national_id"}:
        return "".join(sign for sign in value.casefold() if sign.isalnum())
    if kind in {"email", "address"}:
        return " ".join(value.casefold().split())
    return value  # of keys and passwords every character counts
