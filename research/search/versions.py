"""Which documents are versions of one, by their names, and pages of the newest first.

"Handbook 2024" and "Handbook 2025" answer in nearly the same words: which comes first would be chance. So a page of an
older version stands behind the page of a newer one that answers about as well, unless the question names the older one
or a time before the newer one. A note names the two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from research.models import LegScore, Question
from research.search.legs import Chosen, Ranked, Reranked
from research.store import Reader, get_documents, normalize
from research.text import one_line

_LOOKED_AT, _NOTED = 50, 10  # of the first pages
_WORTH_A_NOTE = 0.5  # of the best page's score: what has less hardly speaks of the matter
# Of an older page's score: a page of another matter has .25 to .75 of it, the page in a next version .95 and more.
_AS_GOOD = 0.8
_LEAST_NAME, _LEAST_TITLE = 4, 16  # letters beside the version: "Annual report" is what many documents are
_YEAR = r"(?<!\d)(?:19|20)\d\d(?:[-_. ]?(?:0[1-9]|1[0-2])(?:[-_. ]?(?:0[1-9]|[12]\d|3[01]))?)?(?!\d)"
_VERSION = rf"{_YEAR}|(?<![a-z0-9])(?:version|rev|v)[-_. ]?\d{{1,3}}(?:[._]\d{{1,3}}){{0,2}}(?![a-z0-9])"
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
        first = ranked[:_LOOKED_AT]
        names = {each.doc_id: each for each in get_documents(reader, list({page.doc_id for page in first}))}
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
                    told[f"{one_line(names[old].filename)} has a newer version: {one_line(names[new].filename)}"] = None
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
    if len(older.number) > 1:  # minutes of May, and of June
        from research.search.dates import times_in

        if times_in(question, datetime.now(UTC)):
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
