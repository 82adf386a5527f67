"""The numbers and dates that a text states, by value: 1,200 is 1200 and 1.2 thousand, May 3 is 3 May.

A number may be read in two ways (1.200 is a decimal here and a thousand there; 30m are metres or millions): it keeps
both, and two numbers are the same if they share a reading. A sign is left out, since statements write (20) for -20.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from research.answer.claims.thesaurus import lists


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
_WORDS = {word: n for line in _TABLE["counted"] for n, word in enumerate(line, start=1) if word != "-"} | {
    **{word: 10 * n for n, word in enumerate(_TABLE["tens"][0], start=2)},
    "zero": 0,
    "dozen": 12,
}
SCALES = {word: float(scale) for scale, *names in _TABLE["scales"] for word in names}
_UNSURE = {"k": 1e3, "m": 1e6, "mm": 1e6, "b": 1e9}  # also kilo-, metres, a letter
MONTHS = {name: number for number, line in enumerate(_TABLE["months"], start=1) for name in line}
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(?P<{}>\d{{1,2}})(?:st|nd|rd|th|\.|er)?"
_YEAR = r"(?P<{}>(?:1[6-9]|20)\d\d)\b"
_GAP = r"\s{1,3}"
_DATE = re.compile(
    r"(?<![\w.,/-])(?=\w)(?:"
    r"(?P<y1>\d{4})-(?P<m1>\d\d)-(?P<d1>\d\d)(?!\d)"
    r"|(?P<a2>\d{1,2})[/.](?P<b2>\d{1,2})[/.](?P<y2>(?:\d\d)?\d\d)(?!\d)"
    rf"|{_DAY.format('d3')}{_GAP}(?:of |de )?(?P<m3>{_MONTH})\b\.?(?:,?{_GAP}(?:de )?{_YEAR.format('y3')})?"
    rf"|(?P<m4>{_MONTH})\b\.?{_GAP}{_DAY.format('d4')}\b(?!\s{{0,3}}(?:%|per\b))(?:,?{_GAP}{_YEAR.format('y4')})?"
    rf"|(?P<m5>{_MONTH})\b\.?,?{_GAP}(?:of |de )?{_YEAR.format('y5')})",
    re.IGNORECASE,
)
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
        value, scale = _WORDS.get(word), SCALES.get(word)
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
