"""The times that a question names, and how near to them something was told.

Which documents are versions of one, by their names, and pages of the newest first.

"Handbook 2024" and "Handbook 2025" answer in nearly the same words: which comes first would be chance. So a page of an
older version stands behind the page of a newer one that answers about as well, unless the question names the older one
or a time before the newer one. A note names the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from research.models import NEWER_VERSION, LegScore, Question
from research.store import Reader, normalize
from research.text import one_line

if TYPE_CHECKING:
    from research.search.legs import Chosen, Ranked, Reranked

_MONTHS = "january february march april may june july august september october november december".split()  # noqa: SIM905
_NAMES = rf"(?:{'|'.join(_MONTHS)}|sept|{'|'.join(month[:3] for month in _MONTHS)})\b\.?"
_DAY = r"(?P<day{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year{0}>(?:19|20)\d\d)"
# "may" alone is a verb more often than a month, and "march" one.
_BEFORE = r"\b(?:in|on|of|during|since|by|until|before|after|early|mid|late|this|last|next)\s+"
_WRITTEN = re.compile(
    rf"\b{_DAY.format(1)}(?:\s+of)?\s+(?P<month1>{_NAMES})(?:,?\s+{_YEAR.format(1)}\b)?"
    rf"|\b(?P<month2>{_NAMES})\s+{_DAY.format(2)}(?!\d)(?:,?\s+{_YEAR.format(2)})?"
    rf"|\b(?P<month3>{_NAMES}),?\s+{_YEAR.format(3)}\b"
    rf"|{_BEFORE}(?P<month4>{_NAMES})(?![.,]*\s+\d)"
    rf"|\b(?P<year5>(?:19|20)\d\d)-(?P<month5>0\d|1[0-2])(?:-(?P<day5>[0-3]\d))?\b"
    rf"|\b(?P<day6>[0-3]?\d)\.(?P<month6>[01]?\d)\.(?P<year6>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple of": 2, "few": 3}
_AGO = re.compile(rf"\b(?P<count>\d{{1,3}}|(?:a )?(?:{'|'.join(_COUNTS)})) (?P<unit>day|week|month|year)s? ago\b", re.I)
_NAMED = re.compile(
    r"\b(?P<day>today|yesterday|tonight|this morning|last night)\b|\b(?P<which>this|last) (?P<unit>week|month|year)\b",
    re.IGNORECASE,
)
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

NEAR = 7  # days
_MOST = 8  # times that are looked at; a question names one or two


@dataclass(frozen=True, slots=True)
class Asked:
    """A time that a question names: a day, a month, or a stretch of days."""

    month: int = 0
    year: int = 0
    day: int = 0
    first: date | None = None
    last: date | None = None


def times_in(question: str, now: datetime) -> list[Asked]:
    """The times it names; `now` is what "yesterday" is counted from."""
    found = [*_written(question), *_relative(question, now.astimezone(UTC).date())]
    return found[:_MOST]


def nearness(times: Sequence[Asked], created: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each memory by its time, 0 to 1: 1 for the time itself, less for a week around a day and for its month."""
    best = np.zeros(len(created))
    days = (created // 86_400).astype("int64").astype("datetime64[D]")
    months = days.astype("datetime64[M]").astype("int64")
    for asked in times:
        if asked.first is not None and asked.last is not None:
            inside = (days >= np.datetime64(asked.first)) & (days <= np.datetime64(asked.last))
            best = np.maximum(best, inside)
            continue
        years = months // 12 + 1970
        same_month = (months % 12 + 1 == asked.month) & ((asked.year == 0) | (years == asked.year))
        if not asked.day:
            best = np.maximum(best, same_month)
            continue
        best = np.maximum(best, 0.3 * same_month)
        for year in {asked.year} if asked.year else set(np.unique(years).tolist()):
            day = _date(year, asked.month, asked.day)
            if day is not None:
                gap = np.abs((days - np.datetime64(day)).astype("int64"))
                best = np.maximum(best, np.where(gap <= 1, 1.0, np.where(gap <= NEAR, 0.6, 0.0)))
    return best


def _written(question: str) -> Iterator[Asked]:
    for match in _WRITTEN.finditer(question):
        named = {name[:-1]: value for name, value in match.groupdict().items() if value}
        month = named["month"]
        number = int(month) if month.isdigit() else 1 + [name[:3] for name in _MONTHS].index(month[:3].lower())
        if 1 <= number <= 12 and int(named.get("day", 0)) <= 31:
            yield Asked(number, int(named.get("year", 0)), int(named.get("day", 0)))


def _relative(question: str, today: date) -> Iterator[Asked]:
    for match in _AGO.finditer(question):
        said = match["count"].lower().removeprefix("a ")
        number = int(said) if said.isdigit() else _COUNTS.get(said, 1)
        unit = _UNIT_DAYS[match["unit"].lower()]
        middle = _before(today, number * unit)
        yield Asked(first=_before(middle, unit // 2), last=_before(middle, -(unit // 2)))
    for match in _NAMED.finditer(question):
        if match["day"]:
            gone = 1 if match["day"].lower() in ("yesterday", "last night") else 0
            yield Asked(first=_before(today, gone), last=_before(today, gone))
        else:
            yield _stretch(match["unit"].lower(), today, before=match["which"].lower() == "last")


def _stretch(unit: str, today: date, *, before: bool) -> Asked:
    """This week, month or year, or the one before."""
    starts = {
        "week": _before(today, today.weekday()),
        "month": today.replace(day=1),
        "year": today.replace(month=1, day=1),
    }
    start = starts[unit]
    if not before:
        return Asked(first=start, last=today)
    end = _before(start, 1)
    started = {"week": _before(start, 7), "month": end.replace(day=1), "year": end.replace(month=1, day=1)}
    return Asked(first=started[unit], last=end)


def _before(day: date, days: int) -> date:
    try:
        return day - timedelta(days=days)
    except OverflowError:
        return date.min


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


_LOOKED_AT, _NOTED = 50, 10  # of the first pages
_WORTH_A_NOTE = 0.5  # of the best page's score: what has less hardly speaks of the matter
# Of an older page's score: a page of another matter has .25 to .75 of it, the page in a next version .95 and more.
_AS_GOOD = 0.8
_LEAST_NAME, _LEAST_TITLE = 4, 16  # letters beside the version: "Annual report" is what many documents are
_WRITTEN_YEAR = r"(?<!\d)(?:19|20)\d\d(?:[-_. ]?(?:0[1-9]|1[0-2])(?:[-_. ]?(?:0[1-9]|[12]\d|3[01]))?)?(?!\d)"
_VERSION = rf"{_WRITTEN_YEAR}|(?<![a-z0-9])(?:version|rev|v)[-_. ]?\d{{1,3}}(?:[._]\d{{1,3}}){{0,2}}(?![a-z0-9])"
_ASKED_YEAR = r"(?:(?<!\d)(19|20)|\b[Ff][Yy] ?|['’])(\d\d)(?!\d)"  # 2023, FY2023, FY23, '23


class Version(NamedTuple):
    """What the versions of a document have in common, and which of them this is; empty for what is no version."""

    series: str = ""
    number: tuple[int, ...] = ()


class NewestFirst:
    """The page order that puts older versions of documents behind newer ones."""

    name = "newer-versions"

    def rerank(self, reader: Reader, question: Question, ranked: Sequence[Ranked], chosen: Chosen) -> Reranked:
        """The pages in their new order. Each place keeps its score, and the scores are those of pages put behind."""
        from research.search.legs import Reranked  # memories ask this file for times alone

        first = ranked[:_LOOKED_AT]
        documents = {page.doc_id for page in first}
        if len(documents) < 2:
            return Reranked(ranked)
        names = {each.doc_id: each for each in reader.documents.get_many(list(documents))}
        versions = {doc_id: version_of(each.filename, each.title) for doc_id, each in names.items()}
        newer = _newer_versions(f"{question.text} {question.wording}", versions)
        best = {page.doc_id: page for page in reversed(first)}
        order: dict[int, Ranked] = {}
        behind: dict[int, LegScore] = {}
        told: dict[str, None] = {}
        for place, page in enumerate(first):
            others = [best[doc_id] for doc_id in newer.get(page.doc_id, ()) if doc_id in best]
            for other in others:
                if other.score >= _AS_GOOD * page.score:
                    order.setdefault(other.page_id, other)
                    behind[page.page_id] = LegScore(None, page.score)
            order.setdefault(page.page_id, page)
            if others and place < _NOTED and page.score >= _WORTH_A_NOTE * first[0].score:
                old, new = page.doc_id, others[0].doc_id
                if not _named(question.wording) & (set(versions[new].number) - set(versions[old].number)):
                    told[f"{one_line(names[old].filename)}{NEWER_VERSION}{one_line(names[new].filename)}"] = None
        question.notes.extend(told)
        moved = [page._replace(score=place.score) for page, place in zip(order.values(), first, strict=True)]
        return Reranked([*moved, *ranked[_LOOKED_AT:]], behind)


def _newer_versions(question: str, versions: Mapping[str, Version]) -> dict[str, list[str]]:
    """Document → its newer versions among these, the newest first, without those that the question puts aside."""
    newest = sorted(versions, key=lambda doc_id: (versions[doc_id].number, doc_id), reverse=True)
    found: dict[str, list[str]] = {}
    for doc_id, older in versions.items():
        newer = [each for each in newest if versions[each].series == older.series and versions[each] > older]
        found[doc_id] = [each for each in newer if not _means_older(question, older, versions[each])]
    return found


def _means_older(question: str, older: Version, newer: Version) -> bool:
    """Whether the question names the older of two versions, or a time before the newer one."""
    years = (int(f"{century or 20}{year}") for century, year in re.findall(_ASKED_YEAR, question))
    if any(year < newer.number[0] for year in years) or _named(question) & (set(older.number) - set(newer.number)):
        return True
    if len(older.number) > 1 and times_in(question, datetime.now(UTC)):  # minutes of May, and of June
        return True
    from research.search.document_parts import DOCUMENTS, OLDER

    things = {"version", "edition"} | DOCUMENTS | set(older.series.split())
    beside = pairwise(re.findall(r"\w+", normalize(question)))
    return any((one in OLDER and other in things) or (other in OLDER and one in things) for one, other in beside)


def _named(text: str) -> set[int]:
    """The numbers of the versions that a text names."""
    return {int(number) for said in re.findall(_VERSION, text.casefold()) for number in re.findall(r"\d+", said)}


@lru_cache(maxsize=2_000)
def version_of(filename: str, title: str) -> Version:
    """By the year or number in the file name, or else in the title."""
    for name, least in ((filename.rpartition(".")[0] or filename, _LEAST_NAME), (title, _LEAST_TITLE)):
        lower = name.casefold()
        found = re.findall(_VERSION, lower)
        series = " ".join(re.findall(r"\w+", re.sub(_VERSION, " # ", lower).replace("_", " ").replace("#", " vv ")))
        if len(found) == 1 and sum(map(str.isalpha, series)) - 2 >= least:
            split = re.sub(r"^((?:19|20)\d\d)(\d\d)(\d\d)?$", r"\1 \2 \3", found[0])  # 20240501 is three numbers
            return Version(series, tuple(int(number) for number in re.findall(r"\d+", split)))
    return Version()
