"""Words that stand for each other, and those that say the contrary: thesaurus.toml, looked up by the stem of a word."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from research.store.fulltext.analyzer import normalize
from research.store.fulltext.analyzer import stem as plain_stem

TABLE = Path(__file__).with_name("thesaurus.toml")

_WORDS = Path(__file__).with_name("words.toml")
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "mis")


@dataclass(frozen=True, slots=True)
class Thesaurus:
    forms: dict[str, str]  # a form that no ending explains, or its stem → the stem of the plain one
    groups: dict[str, tuple[str, ...]]  # stem → names of the lines it stands in
    opposites: dict[str, frozenset[str]]  # stem → stems that say the contrary
    units: dict[str, str]  # short for a unit → the unit
    idioms: dict[tuple[str, str], str]  # a verb's stem and its particle → the word for both
    verbs: frozenset[str]  # stems
    negations: frozenset[str]
    denying: frozenset[str]  # stems of verbs that say no
    light: frozenset[str]  # stems of words that say nothing of their own


@lru_cache(maxsize=50_000)
def stem(lowered: str) -> str:
    """As full-text search has it, and the plain form of what changes within: fell is fall."""
    return _stem(lowered, thesaurus().forms)


@lru_cache(maxsize=50_000)
def keys_of(lowered: str) -> frozenset[str]:
    """What a word is compared by: its stem, and the lines it stands in. A footnote's mark (Brask1) is no part of it."""
    stemmed = stem(lowered)
    keys = {stemmed, *thesaurus().groups.get(stemmed, ())}
    letters = lowered.rstrip("0123456789")
    if letters != lowered and len(letters) >= 4 and letters.isalpha():
        keys.add(stem(letters))
    return frozenset(keys)


@lru_cache(maxsize=50_000)
def opposites_of(stemmed: str) -> frozenset[str]:
    """The stems that say the contrary: by the table, or by their first syllable (safe, unsafe)."""
    found = set(thesaurus().opposites.get(stemmed, ()))
    for prefix in _PREFIXES:
        rest = stemmed.removeprefix(prefix)
        if rest != stemmed and len(rest) >= 3:
            found |= {rest, f"{rest}e"}  # stems end as their words do: unsaf, safe
        if len(stemmed) >= 3:
            found |= {prefix + stemmed, prefix + stemmed.removesuffix("e")}
    return frozenset(found)


@cache
def lists(section: str) -> dict[str, list[list[str]]]:
    """The tables of a section of words.toml: each as its lines, and these as their words."""
    tables: dict[str, str] = tomllib.loads(_WORDS.read_text(encoding="utf-8"))[section]
    return {name: [line.split() for line in text.strip().splitlines()] for name, text in tables.items()}


def words(section: str) -> dict[str, frozenset[str]]:
    """The same tables as sets of words."""
    return {name: frozenset(chain.from_iterable(lines)) for name, lines in lists(section).items()}


@cache
def thesaurus() -> Thesaurus:
    data = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    forms: dict[str, str] = {}
    for first, *others in map(str.split, data["forms"]):
        for word in others:
            forms.setdefault(word, plain_stem(first))
            forms.setdefault(plain_stem(word), plain_stem(first))

    def stems(words: str) -> list[str]:
        return [_stem(normalize(word), forms) for word in words.split()]

    groups: dict[str, list[str]] = {}
    for number, line in enumerate(data["verbs"] + data["same"]):
        for word in stems(line):
            groups.setdefault(word, []).append(f"={number}")
    opposites: dict[str, set[str]] = {}
    for line in data["opposite"]:
        one, other = map(stems, line.split("/"))
        for word in one:
            opposites.setdefault(word, set()).update(other)
        for word in other:
            opposites.setdefault(word, set()).update(one)
    return Thesaurus(
        forms=forms,
        groups={word: tuple(names) for word, names in groups.items()},
        opposites={word: frozenset(words) for word, words in opposites.items()},
        units=dict(line.split() for line in data["units"]),
        idioms={(stems(verb)[0], particle): meant for verb, particle, meant in map(str.split, data["idioms"])},
        verbs=frozenset(word for line in data["verbs"] for word in stems(line)),
        negations=frozenset(map(normalize, data["negations"].split())),
        denying=frozenset(stems(data["denying"])),
        light=frozenset(stems(data["light"])),
    )


def _stem(lowered: str, forms: dict[str, str]) -> str:
    stemmed = plain_stem(lowered)
    return forms.get(lowered) or forms.get(stemmed, stemmed)
