"""What stands in place of what was taken out: `<PERSON_1>`, and the same again for the same person.

One `Placeholders` belongs to one context: all texts that are redacted with it share its numbers. It keeps no value,
only keyed hashes that mean nothing outside this process, so nothing can be read out of it.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from threading import Lock

from research.governance.name_words import TITLES

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
