"""What a rule found in a text, where and of which kind (never the text itself), what rules read, and what they leave.

`fold` is a text as the rules read it: figures and letters of full width, spaces and dashes of all kinds made plain, and
what nobody sees (zero-width characters, soft hyphens) left out. Where something was found is told in places of the
original. PDFs are full of such characters by accident; a hostile text may hold them on purpose.

Words that say what follows (a telephone number, a password) stand in words.toml by language, because a short word means
something else in another one; words around names of people in name_words.toml.

`Placeholders` stand in place of what was taken out: `<PERSON_1>`, and the same again for the same person. One belongs
to one context: all texts that are redacted with it share its numbers. It keeps no value, only keyed hashes that mean
nothing outside this process, so nothing can be read out of it.
"""

from __future__ import annotations

import re
import secrets
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from research.errors import UsageError

# Of two that overlap, the first of these names the whole.
SECRET_KINDS = ("private_key", "key", "password")
PATTERN_KINDS = ("iban", "card", "national_id", "email", "phone")
OPTIONAL_KINDS = ("ip", "mac")
MODEL_KINDS = ("address", "person", "location")
KINDS = (*SECRET_KINDS, *PATTERN_KINDS, *OPTIONAL_KINDS, *MODEL_KINDS)

_RANK = {kind: rank for rank, kind in enumerate(KINDS)}


class Finding(NamedTuple):
    start: int
    end: int
    kind: str


Finder = Callable[[str], Iterator[Finding]]


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in order, none of which overlap: those that do become one, so that nothing of either is left."""
    joined: list[Finding] = []
    for each in sorted(findings):
        if joined and each.start < joined[-1].end:
            last = joined[-1]
            kind = min(last.kind, each.kind, key=_RANK.__getitem__)
            joined[-1] = Finding(last.start, max(last.end, each.end), kind)
        else:
            joined.append(each)
    return joined


_WORDS = tomllib.loads(Path(__file__).with_name("name_words.toml").read_text("utf-8"))
TITLES = frozenset[str](_WORDS["titles"].split())
PARTICLES = frozenset[str](_WORDS["particles"].split())
THINGS = frozenset[str](_WORDS["things"].split())
NOBODY = frozenset[str](_WORDS["nobody"].split())
AMBIGUOUS = frozenset[str](_WORDS["ambiguous"].split())


_ZEROS = (0x0660, 0x06F0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0E50, 0x1D7CE, 0x1D7D8)
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"
_PLAIN = {
    **{0xFF01 + at: 0x21 + at for at in range(94)},
    **{zero + value: 0x30 + value for zero in _ZEROS for value in range(10)},
    **{ord(sign): 0x20 for sign in _SPACES},
    **{ord(sign): 0x2D for sign in _DASHES},
    **dict(zip(map(ord, "“”„‟‘’‚‛"), map(ord, "\"\"\"\"''''"), strict=True)),
}
_UNSEEN = (
    "\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f"
)
_ANY_UNSEEN = re.compile(f"[{_UNSEEN}]")


@dataclass(frozen=True, slots=True)
class Folded:
    text: str
    places: Sequence[int] | None = None  # of each character in the original; None: where it stands here

    def original(self, start: int, end: int) -> tuple[int, int]:
        if self.places is None:
            return start, end
        return self.places[start], self.places[end - 1] + 1

    def __repr__(self) -> str:
        return f"Folded({len(self.text)} characters)"


def fold(text: str) -> Folded:
    if text.isascii():
        return Folded(text)
    plain = text.translate(_PLAIN)  # one character for one
    if not _ANY_UNSEEN.search(plain):
        return Folded(plain)
    places = [at for at, sign in enumerate(plain) if not _ANY_UNSEEN.match(sign)]
    return Folded("".join(plain[at] for at in places), places)


class Words(NamedTuple):
    phone: str  # the thing itself: phone, Tel., Handy
    call: str  # what one does with it: the number follows at once
    reach: str  # the same, with something in between: reached on …
    person: str  # whom: `call me`
    password: str
    link: str  # between the word and the value: is, on, at


WORDS = {
    language: Words(**entry)
    for language, entry in tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8")).items()
}
LANGUAGES = tuple(WORDS)


class Labels(NamedTuple):
    """Patterns for what stands before a number; each ends where the number begins."""

    phone: re.Pattern[str]
    call: re.Pattern[str]
    password: re.Pattern[str]  # to the end of "the password is "
    password_name: re.Pattern[str]  # at the end of what stands before a colon
    password_words: tuple[str, ...]  # in small letters; without one of them no pattern needs to be tried


def labels(languages: Iterable[str]) -> Labels:
    chosen = tuple(dict.fromkeys(languages))
    for language in chosen:
        if language not in WORDS:
            raise UsageError(
                f"the redactor knows no words of the language {language!r}",
                hint=f"it knows those of {', '.join(LANGUAGES)}; patterns and check digits need none",
            )
    return _labels(chosen)


@cache
def _labels(languages: tuple[str, ...]) -> Labels:
    def any_of(field: str) -> str:
        words = dict.fromkeys(word for each in languages for word in getattr(WORDS[each], field).split("|"))
        return (
            "|".join(sorted(map(re.escape, words), key=len, reverse=True)).replace("\\ \\?", " ?").replace("\\ ", " ")
        )

    number = r"(?:[ -]?(?:numbers?|no\.?|nr\.?|nummer|numero|número|numéro|num\.?|n°|№))?"
    link = rf"(?: ?(?:{any_of('link')})(?= ))?"
    between = r"[ \t:.=#|>/-]{0,5}"
    phone = rf"(?i)(?<![^\W\d_])(?:{any_of('phone')})(?:s|\.)?{number}(?: ?\([^()\d\n]{{1,24}}\))?{link}{between}$"
    person = rf"(?: (?:{any_of('person')})(?![^\W\d_]))?"
    call = (
        rf"(?i)(?<![^\W\d_])(?:(?:{any_of('call')}){person}{between}"
        rf"|(?:{any_of('reach')}|{any_of('call')})(?![^\W\d_])[^\d\n.!?:]{{0,30}}?"
        rf"(?:(?<= )(?:{any_of('link')}|number) |:){between})$"
    )
    word = rf"(?<![^\W\d_])(?:{any_of('password')})(?![^\W\d_])"
    plain = tuple(dict.fromkeys(word.split(" ?")[0] for each in languages for word in WORDS[each].password.split("|")))
    name = rf"(?i){word}[\"'` )\]]{{0,3}}[ \t]{{0,4}}$"
    of_what = r"(?: (?:for|of|to|für|von|pour|de|para|per|voor) [^\n:=]{1,40}?)?"
    password = rf"(?i){word}{of_what}[ ,]{{1,2}}(?:{any_of('link')}) (?:now |still |jetzt )?"
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
        """The placeholder for a value of a kind ("person", "email", …), without regard to case, spaces and signs."""
        with self._lock:
            number = self._person(value) if kind == "person" else self._number(kind, essence(kind, value))
        return f"<{kind.upper()}_{number}>"

    def knows_person(self, word: str) -> bool:
        """Whether a word, in small letters, is among the names of somebody who was named in full."""
        hashed = self._hash(word)
        with self._lock:
            return any(hashed in names for names in self._people.values() if len(names) > 1)

    def counts(self) -> Mapping[str, int]:
        """How many different ones of each kind there were."""
        with self._lock:
            return dict(self._counts)

    def __repr__(self) -> str:
        return f"Placeholders({', '.join(f'{kind}={count}' for kind, count in sorted(self.counts().items()))})"

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
    """A value without what may differ between two mentions of the same."""
    if kind == "person":
        words = _WORD.findall(re.sub(r"['’]s\b", "", value).casefold())
        return " ".join(word for word in words if word not in TITLES and len(word) > 1) or value.casefold()
    if kind in {"card", "iban", "phone", "national_id"}:
        return "".join(sign for sign in value.casefold() if sign.isalnum())
    if kind in {"email", "address", "location"}:
        return " ".join(value.casefold().split())
    return value  # of keys and passwords every character counts
