"""Which words are the name of a person: what a language model says, held against given names and the words around.

A small model takes half of the names it has never seen for organisations or places. A list of given names knows better,
where the name is no word as well (Will, Grant, Florence): for those the model's word is needed. Titles and the lines of
a letter (Dear …, Best regards, …) speak for themselves.

Where somebody lives: a street with its number, and the town behind it. A town alone is no address.

Streets of English, German, French, Spanish, Italian, Dutch and Portuguese shape; others are not known.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from unicodedata import combining, normalize

from research.context import open_table
from research.governance.findings import AMBIGUOUS, NOBODY, PARTICLES, THINGS, TITLES, Finding

_WORD = re.compile(r"[^\W\d_]++(?:['’-][^\W\d_]++)*+\.?")
_TITLE = re.compile(
    r"(?<!\w)(?:Mr|Mrs|Ms|Mx|Miss|Dr|Prof|Professor|Sir|Dame|Lord|Lady|Rev|Herrn?|Frau|Hr|Monsieur|Madame|Mme|Mlle"
    r"|Señora?|Sra|Srta|Doña|Signora?|Sig|Sig\.ra|Dott|Dott\.ssa|Dhr|Mevr|Mevrouw|Mag|Ing|Dipl\.-Ing|Univ\.-?Prof|[Pp]ani?)"
    r"(?:\.|(?=\s)) ?(?=[^\W\d_a-z])"
)
_GREETING = re.compile(r"(?:^|\n)[ \t]{0,8}(?:Dear|Hi|Hello|Hey|Good (?:morning|afternoon|evening)|Liebe[rs]?) ")
_CLOSING = re.compile(
    r"(?:regards|[Ss]incerely|[Ff]aithfully|[Tt]ruly|wishes|[Cc]heers|[Tt]hanks|[Tt]hank you|Grüßen|Grüße)"
    r"(?: yours)?,?[ \t]{0,8}\n{1,4}[ \t]{0,8}"
)
_LABEL = re.compile(
    r"(?i)(?:^|[\n;|,.(])[ \t]{0,8}(?:full name|first name|last name|surname|name|patient|tenant|applicant"
    r"|attn|attention|signed(?: by)?|prepared by|written by|author|employee|attendees?|participants?|present)"
    r"[ \t]{0,4}:[ \t]{0,8}"
)
_NOT_FIRST, _NOT_LAST = NOBODY | TITLES, NOBODY | THINGS
_NEVER = 99
_LONGEST_ROW = 50  # words; no name is longer, and a list of names is cut somewhere
_AT = re.compile(r"(?:^|\W)(?:[Aa]t|[Ff]or|[Oo]f|[Ii]n|[Tt]he|[Cc]ompany:) $")


class Entity(NamedTuple):
    """What the model took a stretch of text for."""

    start: int
    end: int
    kind: str  # PERSON, ORGANIZATION, LOCATION …


class _Word(NamedTuple):
    start: int
    end: int
    text: str

    @property
    def plain(self) -> str:
        return re.sub(r"['’]s$", "", self.text.rstrip(".")).casefold()

    @property
    def is_capital(self) -> bool:
        return self.text[0].isupper()

    @property
    def is_nobody(self) -> bool:
        return self.plain in NOBODY and not self.is_initial

    @property
    def is_initial(self) -> bool:
        return len(self.text) == 2 and self.text[1] == "." and self.is_capital


Places = Mapping[int, tuple[list[_Word], int]]  # a word's row and its place in it, by where it begins


def people(text: str, entities: Sequence[Entity], given: Mapping[str, int]) -> Iterator[Finding]:
    """`given` has given names in small letters, with how common they are (1 to 13)."""
    entities = sorted(entities)
    rows = list(_rows(text))
    places = {word.start: (row, at) for row in rows for at, word in enumerate(row)}
    found = [
        *_by_words_around(text, places),
        *_by_model(text, entities, given),
        *_by_given_name(rows, entities, given),
    ]
    found = [_widened(each, places, given) for each in found]
    yield from found
    yield from _again(text, rows, found)


def _rows(text: str) -> Iterator[list[_Word]]:
    """Capitalised words one after the other, particles and initials between them included."""
    row: list[_Word] = []
    waiting: list[_Word] = []
    for match in _WORD.finditer(text):
        word = _Word(*match.span(), match.group())
        last = waiting[-1] if waiting else row[-1] if row and len(row) < _LONGEST_ROW else None
        joined = last is not None and text[last.end : word.start] == " " and not _ends(last) and not word.is_nobody
        if word.is_capital and not word.is_nobody and (joined or not row):
            row += [*waiting, word] if joined else [word]
            waiting = []
        elif joined and word.plain in PARTICLES and len(waiting) < 3:
            waiting.append(word)
        else:
            if row:
                yield row
            row, waiting = ([word] if word.is_capital and not word.is_nobody else []), []
    if row:
        yield row


def _ends(word: _Word) -> bool:
    """Whether a sentence ends with it. An initial does not end one."""
    return word.text.endswith(".") and not word.is_initial and len(word.text) > 5


def _finding(words: Sequence[_Word]) -> Finding:
    last = words[-1]
    end = last.end - (1 if last.text.endswith(".") and not last.is_initial else 0)
    shown = re.sub(r"['’]s$", "", last.text.rstrip(".") if not last.is_initial else last.text)
    return Finding(words[0].start, min(end, last.start + len(shown)), "person")


def _named(row: Sequence[_Word]) -> list[_Word]:
    """The words at the beginning of a row that can be a name: six at most, none of them a thing."""
    words: list[_Word] = []
    for word in row[:8]:
        if len(words) == 6 or (words and word.plain in THINGS):
            break
        if words or word.plain not in TITLES:
            words.append(word)
    while words and not words[-1].is_capital:
        words.pop()
    return words


def _by_words_around(text: str, places: Places) -> Iterator[Finding]:
    for pattern, least in ((_TITLE, 1), (_GREETING, 1), (_CLOSING, 1), (_LABEL, 2)):
        for match in pattern.finditer(text):
            row, at = places.get(match.end(), ([], 0))
            words = _named(row[at:])
            if len(words) >= least and not (least == 2 and words[-1].plain in THINGS):
                yield _finding(words)


def _by_model(text: str, entities: Iterable[Entity], given: Mapping[str, int]) -> Iterator[Finding]:
    for entity in entities:
        if entity.kind != "PERSON":
            continue
        words = [
            _Word(entity.start + m.start(), entity.start + m.end(), m.group())
            for m in _WORD.finditer(text[entity.start : entity.end])
        ]
        while words and (words[0].plain in _NOT_FIRST or not (words[0].is_capital or words[0].plain in PARTICLES)):
            words = words[1:]
        while words and (words[-1].plain in _NOT_LAST or not words[-1].is_capital):
            words = words[:-1]
        shown = text[words[0].start : words[-1].end] if words else ""
        if not shown or re.search(r"[\d\n+/\\|:;()\[\]{}<>=*&%§]", shown):
            continue
        known = any(_common(word, given) and not is_word(word.plain) for word in words)
        if known or not _is_thing(text, entity, words):
            yield _finding(words)


def _is_thing(text: str, entity: Entity, words: Sequence[_Word]) -> bool:
    """Whether what the model takes for a person, and has no given name, is rather a house or a word: by what it had at
    its end, by its capitals, or because one works for it, at it or in it."""
    if all(is_word(word.plain) for word in words):
        return True
    if len(words) > 1:
        return any(word.plain in THINGS for word in words)
    before = text[max(0, entity.start - 12) : entity.start]
    cut_off = words[0].end < entity.end - 2
    return cut_off or words[0].text.isupper() or bool(_AT.search(before))


def _by_given_name(
    rows: Iterable[list[_Word]], entities: Sequence[Entity], given: Mapping[str, int]
) -> Iterator[Finding]:
    for row in rows:
        for at, word in enumerate(row):
            name, common = word.plain, _common(word, given)
            if not common or len(name) < 3 or name in AMBIGUOUS or word.is_initial or is_word(name):
                continue
            words = _named(row[at:])
            thing = len(words) < len(row) - at and row[at + len(words)].plain in THINGS
            if len(words) > 1 and not thing and words[0].text.isupper() == words[-1].text.isupper():
                yield _finding(words)
                break
            if len(words) == len(row) == 1 and not word.text.isupper() and common >= _least(word, entities):
                yield _finding(words)


def _widened(found: Finding, places: Places, given: Mapping[str, int]) -> Finding:
    """With the names on both sides of it: Amber may be a stone, before Thomas it is none."""

    def belongs(word: _Word) -> bool:
        if word.plain in THINGS or word.plain in TITLES:
            return False
        return bool(_common(word, given)) or (word.is_capital and not is_word(word.plain))

    row, first = places.get(found.start, ([], 0))
    if not row:
        return found
    last = first
    while last + 1 < len(row) and row[last + 1].start < found.end:
        last += 1
    while first and belongs(row[first - 1]):
        first -= 1
    while last + 1 < len(row) and belongs(row[last + 1]):
        last += 1
    wide = _finding(row[first : last + 1])
    return wide._replace(end=max(wide.end, found.end))


def _common(word: _Word, given: Mapping[str, int]) -> int:
    """How common a given name it is; one with a dash is as common as the rarer of its two. Accents may be missing in
    the list."""

    def one(name: str) -> int:
        bare = "".join(sign for sign in normalize("NFD", name) if not combining(sign))
        return max(given.get(name, 0), given.get(bare, 0))

    name = word.plain
    return max(one(name), min(one(part) for part in name.split("-")))


def _least(word: _Word, entities: Sequence[Entity]) -> int:
    """How common a name that stands alone has to be. If the model takes exactly this word for something, for whatever,
    any name is one; a part of something longer, a time or a number is none."""
    at = bisect_right(entities, word.start, key=lambda entity: entity.start) - 1
    if at < 0 or entities[at].end <= word.start:
        return 3
    exact = entities[at].end - entities[at].start <= len(word.text) + 1
    return 1 if exact and entities[at].kind != "DATE_TIME" else _NEVER


def is_word(name: str) -> bool:
    """Whether it is a word of English as well: a table of tokens has the more frequent of two spellings first."""
    rank = open_table("cl100k_base").rank  # which is mostly English
    small, capital = rank(f" {name}".encode()), rank(f" {name.capitalize()}".encode())
    return small is not None and (capital is None or small < capital)


def _again(text: str, rows: Iterable[list[_Word]], found: Collection[Finding]) -> Iterator[Finding]:
    """Somebody who was named in full is meant by the surname alone, too."""
    surnames: set[str] = set()
    inside: set[int] = set()
    for each in found:
        words = list(_WORD.finditer(text, each.start, each.end))
        inside.update(word.start() for word in words)
        if len(words) > 1 and len(words[-1].group()) > 2:
            surnames.add(words[-1].group().casefold())
    yield from _named_alone(rows, lambda name: name in surnames, inside)


def known_people(text: str, knows: Callable[[str], bool]) -> Iterator[Finding]:
    """Those who were named in another text of the same context, by any of their names."""
    yield from _named_alone(_rows(text), knows, frozenset())


def _named_alone(
    rows: Iterable[list[_Word]], is_name: Callable[[str], bool], inside: Collection[int]
) -> Iterator[Finding]:
    for row in rows:
        for word in row:
            if word.start in inside or word.plain in THINGS or len(word.plain) < 3:
                continue
            if is_name(word.plain) and not is_word(word.plain):
                yield _finding([word])


_NAME = r"[^\W\d_a-zà-öø-ÿ][\w'’.-]{0,30}"
_KINDS = (
    "Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Court|Ct|Boulevard|Blvd|Way|Place|Pl|Square|Sq|Terrace|Ter|Close"
    "|Crescent|Cres|Parkway|Pkwy|Highway|Hwy|Mews|Row|Walk|Gardens|Gdns|Hill|Circle|Cir|Trail|Alley|Quay|Grove|Rise"
)
_UNIT = r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Room|#)\.? ?\w{1,6})?"
_POSTCODE = (
    r"(?:[A-Z]{2} )?\d{5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d|[A-Z]{2,3},? \d{4}"
)
_TOWN = rf"(?:,?[ \n]{{1,2}}(?:{_NAME} ?){{1,3}},? (?:{_POSTCODE})(?!\w))?"
_TOWN_AFTER = (
    rf"(?:,?[ \n]{{1,2}}(?:[A-Z]{{1,2}}-)?\d{{4,5}}(?: ?[A-Z]{{2}})?[ ,]{{1,2}}{_NAME}(?:[ -]{_NAME}){{0,2}})?"
)

_PATTERNS = tuple(
    re.compile(shape)
    for shape in (
        # 12 Elm Street, Flat 3, Leeds LS1 4AB
        rf"(?<![\w.,$€£])(?<![Ii]n )\d{{1,5}}[A-Za-z]?(?:[-/]\d{{1,5}})?,? (?:{_NAME} ){{1,4}}?(?:{_KINDS})(?!\w)\.?"
        rf"{_UNIT}{_TOWN}",
        # P.O. Box 123
        rf"(?<!\w)P\.? ?O\.? ?Box \d{{1,6}}(?!\d){_TOWN}",
        # Lindenstraße 12a, 24103 Kiel; Keizersgracht 12
        rf"(?<!\w)[^\W\d_a-z][\w.-]{{0,40}}?"
        rf"(?:straße|strasse|str\.|weg|platz|allee|gasse|damm|ufer|straat|gracht|laan|plein)"
        rf",? \d{{1,4}} ?[a-zA-Z]?(?: ?[-/] ?\d{{1,4}})?(?!\w){_TOWN_AFTER}",
        # Lange Straße 12
        rf"(?<!\w){_NAME}[ -](?:Straße|Strasse|Str\.|Weg|Platz|Allee|Gasse|Ring|Damm|Ufer),? \d{{1,4}} ?[a-z]?(?!\w)"
        rf"{_TOWN_AFTER}",
        # 11, boulevard de Samson, 06486 Nice
        rf"(?<![\w.,])\d{{1,4}}(?: ?bis| ?ter)?,? (?:rue|avenue|boulevard|bd|place|chemin|impasse|allée|quai|cours)"
        rf" (?:(?:de|du|des|la|le|les|d'|l'|d’|l’) ?){{0,3}}{_NAME}(?:[ -]{_NAME}){{0,3}}{_TOWN_AFTER}",
        # Calle Mayor 5, 28013 Madrid; Via Roma, 12
        rf"(?<!\w)(?:Calle|C/|Avenida|Avda\.?|Paseo|Plaza|Via|Viale|Piazza|Corso|Largo|Rua|Travessa) ?"
        rf"(?:(?:de|del|della|dei|la|las|los|da|do|dos|das) ){{0,3}}"
        rf"{_NAME}(?: (?:(?:de|del|da|do|e|y) )?{_NAME}){{0,3}},? (?:n[.º°o]? ?)?\d{{1,4}}(?!\w){_TOWN_AFTER}",
    )
)
_ANY_DIGIT = re.compile(r"\d")


def addresses(text: str) -> Iterator[Finding]:
    if not _ANY_DIGIT.search(text):
        return
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            yield Finding(match.start(), match.start() + len(match.group().rstrip(" ,.\n")), "address")
