"""What words and numbers a text holds, by what they mean. Words that stand for each other, and those that say the
contrary, are looked up in thesaurus.toml by their stem. Numbers and dates go by value: 1,200 is 1200 and 1.2 thousand,
May 3 is 3 May.

A number may be read in two ways (1.200 is a decimal here and a thousand there; 30m are metres or millions): it keeps
both, and two numbers are the same if they share a reading. A sign is left out, since statements write (20) for -20.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from research.store import normalize
from research.store import stem as plain_stem

TABLE = Path(__file__).with_name("thesaurus.toml")

_WORDS = Path(__file__).with_name("words.toml")
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "mis")

_UNSURE = {"k": 1e3, "m": 1e6, "mm": 1e6, "b": 1e9}  # also kilo-, metres, a letter
_DAY = r"(?P<{}>\d{{1,2}})(?:st|nd|rd|th|\.|er)?"
_YEAR = r"(?P<{}>(?:1[6-9]|20)\d\d)\b"
_GAP = r"\s{1,3}"
_TIME = re.compile(
    r"(?<![\w.:])(?:(?P<h>[01]?\d|2[0-4])[:.](?P<m>[0-5]\d)(?!\d|[.:]\d|%)(?:\s?(?P<half>[ap])\.?m\b\.?)?"
    r"|(?P<h2>1[0-2]|[1-9])\s?(?P<half2>[ap])\.?m\b\.?)",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"(?<![\d.,])(?:(?<![^\W\d_])(?<![a-z][-–])|(?<=fy)|(?<=[a-z]{3}[-–]))"
    r"(?P<figure>\d+(?:(?:[ \u00a0\u2009\u202f'’]|,)\d{3}(?!\d))+(?:\.\d+)?"
    r"|\d+(?:\.\d{3}){2,}(?:,\d+)?|\d+\.\d{3},\d+|\d+(?:[.,]\d+)?)"
    r"(?:\s?(?P<scale>[^\W\d_]{1,10})(?![\w²³]))?",
    re.IGNORECASE,
)
_ONE_AND_A_HALF = re.compile(r"\ban? [^\W\d_]+ (and a half)\b")
_AND_A_HALF = re.compile(r" and a half\b")
_WORD = re.compile(r"[^\W\d_]+")
_HEDGE = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|ca\.?|rund|etwa|environ|unos|over"
    r"|just (?:over|under)|close to)\s+|[~≈<>]\s?)(?:[$€£¥]\s?)?$",
    re.IGNORECASE,
)
_PRONOUN_ONE = re.compile(
    r"\b(?:no|the|any|every|each|this|that|which|some)[ -]one\b"
    r"|\bone(?:s|self|['’]s)?\s+(?:of|another|can|may|must|might|should|would|could|has|is"
    r"|who|which|that|cannot)\b|\bone-(?!\w+ (?:of|in) )",
    re.IGNORECASE,
)


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


@dataclass(frozen=True, slots=True)
class Number:
    """`text[start:end]` states it, with its scale ("3.0 billion"). A date's `values` are empty."""

    start: int
    end: int
    values: frozenset[float]
    precision: int = 0  # significant digits as written
    hedged: bool = False  # "about", or a scale word: it may be rounded
    scaled: bool = False  # "million"
    dates: frozenset[tuple[int, int, int]] = frozenset()  # year, month, day; 0 for what is not said


_TABLE = lists("numbers")
_NUMBER_WORDS = {word: n for line in _TABLE["counted"] for n, word in enumerate(line, start=1) if word != "-"} | {
    **{word: 10 * n for n, word in enumerate(_TABLE["tens"][0], start=2)},
    "zero": 0,
    "dozen": 12,
}
SCALES = {word: float(scale) for scale, *names in _TABLE["scales"] for word in names}
MONTHS = {name: number for number, line in enumerate(_TABLE["months"], start=1) for name in line}
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DATE = re.compile(
    r"(?<![\w.,/-])(?=\w)(?:"
    r"(?P<y1>\d{4})-(?P<m1>\d\d)-(?P<d1>\d\d)(?!\d)"
    r"|(?P<a2>\d{1,2})[/.](?P<b2>\d{1,2})[/.](?P<y2>(?:\d\d)?\d\d)(?!\d)"
    rf"|{_DAY.format('d3')}{_GAP}(?:of |de )?(?P<m3>{_MONTH})\b\.?(?:,?{_GAP}(?:de )?{_YEAR.format('y3')})?"
    rf"|(?P<m4>{_MONTH})\b\.?{_GAP}{_DAY.format('d4')}\b(?!\s{{0,3}}(?:%|per\b))(?:,?{_GAP}{_YEAR.format('y4')})?"
    rf"|(?P<m5>{_MONTH})\b\.?,?{_GAP}(?:of |de )?{_YEAR.format('y5')})",
    re.IGNORECASE,
)


def numbers_in(text: str) -> list[Number]:
    """In the order of the text; they do not overlap. "one" counts where it is a number and no pronoun."""
    found: list[Number] = []
    taken = bytearray(len(text))
    for kind in (_dates, _times, _figures, _spelt):
        for number in kind(text):
            if not any(taken[number.start : number.end]):
                taken[number.start : number.end] = b"\1" * (number.end - number.start)
                found.append(number)
    return sorted(found, key=lambda number: number.start)


def _dates(text: str) -> Iterator[Number]:
    for match in _DATE.finditer(text):
        year, dates = 0, set()
        if match["y1"]:
            dates = {(int(match["y1"]), int(match["m1"]), int(match["d1"]))}
        elif match["y2"]:
            year = int(match["y2"])
            year += 0 if year > 99 else 2000 if year < 70 else 1900
            first, second = int(match["a2"]), int(match["b2"])
            dates = {(year, m, d) for d, m in ((first, second), (second, first)) if 1 <= m <= 12 and 1 <= d <= 31}
        else:
            name = match["m3"] or match["m4"] or match["m5"]
            year = int(match["y3"] or match["y4"] or match["y5"] or 0)
            day = int(match["d3"] or match["d4"] or 0)
            # "may 5" and "mar 3" are words before a number, unless a capital or the year says otherwise.
            if day <= 31 and (name[0].isupper() or year):
                dates = {(year, MONTHS[name.lower()], day)}
        if dates:
            yield Number(match.start(), match.end(), frozenset(), dates=frozenset(dates))


def _times(text: str) -> Iterator[Number]:
    """Minutes of the day, as a number that no other is likely to be: 08:00 is 8 am."""
    for match in _TIME.finditer(text):
        half = (match["half"] or match["half2"] or "").lower()
        if not half and "." in match.group():
            continue  # a decimal
        hour, minute = int(match["h"] or match["h2"]), int(match["m"] or 0)
        hours = {hour} if not half else {hour % 12 + (12 if half == "p" else 0)}
        values = {-(60.0 * h + minute) - 1 for h in hours}
        plain = set() if match["m"] else {float(hour)}  # 6 pm is "six in the evening"
        yield Number(match.start(), match.end(), frozenset(values | plain))


def _figures(text: str) -> Iterator[Number]:
    for match in _FIGURE.finditer(text):
        figure = match["figure"]
        if len(figure) > 30:
            continue
        scale = (match["scale"] or "").lower()
        factor = SCALES.get(scale) if scale else None
        end = match.end() if factor else match.end("figure")
        readings = _readings(figure)
        unsure = _UNSURE.get(scale)
        if factor:
            values = {value * factor for value in readings}
        elif unsure and scale:
            values = readings | {value * unsure for value in readings}
        else:
            values = readings
        digits = figure.lstrip("0.,").replace(".", "").replace(",", "")
        hedged = (
            bool(factor or (unsure and values))
            or _HEDGE.search(text, max(0, match.start() - 24), match.start()) is not None
        )
        yield Number(
            match.start(), end, frozenset(values), len([c for c in digits if c.isdigit()]), hedged, bool(factor)
        )


def _readings(figure: str) -> set[float]:
    plain = re.sub(r"[ \u00a0\u2009\u202f'’]", "", figure)
    if "," in plain and "." in plain:
        decimal = max(plain.rfind(","), plain.rfind("."))
        whole = re.sub(r"[.,]", "", plain[:decimal])
        return {float(f"{whole}.{plain[decimal + 1 :]}")}
    separator = "," if "," in plain else "." if "." in plain else ""
    if not separator:
        return {float(plain)}
    groups = plain.split(separator)
    joined, point = float("".join(groups)), float(f"{groups[0]}.{''.join(groups[1:])}")
    if len(groups) > 2:
        return {joined}
    if len(groups[1]) != 3 or groups[0] == "0":
        return {point}
    return {joined} if separator == "," else {point, joined}


def _spelt(text: str) -> Iterator[Number]:
    """Numbers in words: "seventy-two", "five hundred", "two thousand", "half past" not."""
    skipped = {place for match in _PRONOUN_ONE.finditer(text) for place in range(match.start(), match.end())}
    start = end = -1
    total = current = 0.0
    for match in _WORD.finditer(text):
        word = match.group().lower()
        value, scale = _NUMBER_WORDS.get(word), SCALES.get(word)
        joined = start >= 0 and match.start() - end <= 1 and text[end : match.start()] in {"", " ", "-"}
        counts = value is not None and not (word == "one" and match.start() in skipped)
        if start >= 0 and not (joined and (counts or scale)):
            if not (word == "and" and joined and current >= 100):
                yield _number(text, start, end, total + current)
                start, total, current = -1, 0.0, 0.0
            else:
                end = match.end()
                continue
        if counts and value is not None:
            if start >= 0 and not _adds(current, value):
                yield _number(text, start, end, total + current)
                start, total, current = -1, 0.0, 0.0
            start = match.start() if start < 0 else start
            current += value
            end = match.end()
        elif scale and start >= 0:
            current = max(current, 1.0) * scale
            if scale >= 1000:
                total, current = total + current, 0.0
            end = match.end()
    if start >= 0:
        yield _number(text, start, end, total + current)
    for match in _ONE_AND_A_HALF.finditer(text):
        yield Number(match.start(1), match.end(1), frozenset({1.5}), 2)


def _adds(current: float, value: int) -> bool:
    """Twenty and three are one number, two and three are two."""
    if current == 0:
        return True
    return (current % 100 == 0 and value < 100) or (current % 10 == 0 and current % 100 >= 20 and value < 10)


def _number(text: str, start: int, end: int, value: float) -> Number:
    half = _AND_A_HALF.match(text, end)
    return Number(start, half.end(), frozenset({value + 0.5}), 9) if half else Number(start, end, frozenset({value}), 9)
