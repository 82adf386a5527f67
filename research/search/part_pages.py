"""Which pages of a document hold a part of it: by its headings, or by where such a part stands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from research.models import FoundPart
from research.search.document_parts import IN_FRONT, PARTS, SUMMARY, AskedPart, PartQuestion
from research.store import Reader, analyze, lookups, normalize

# How far a part is followed.
_MOST_PAGES = 30
_MOST_WORDS = 6  # of a heading that has a part's name in it
# A page of references names so many years, a table of contents has so many entries, and such a share of its lines.
_YEARS = 8
_ENTRIES = 8
_ENTRY_SHARE = 0.4
_IN_FRONT = 12  # pages
_OVERVIEWS = {"summary", "abstract"}
_TIERS = ("summary", "summary", "letter", "highlights", "overview", "introduction")  # what the headings of SUMMARY are
_MOST_OVERVIEW = 3  # pages
_COVER = 15  # words; the beginning of a document with fewer says nothing
_SOME_SECTIONS, _MOST_SECTIONS = 3, 6
_ALONE = 3
_ASIDE = ("contents", "methods", "references", "appendix", "glossary", "acknowledgements", "index")
_LISTS = {"contents", "references", "glossary", "index", "list of figures", "list of tables"}
# Lines that tell who made a document begin so.
_MADE_BY = re.compile(
    r"^[^\w\n]{0,8}(?:(?:written|prepared|edited|compiled|presented|produced|created|published|verfasst|redige|"
    r"herausgegeben|erstellt) )?"
    r"(?:by|authors?|editors?|von|verfasser|autor(?:en|es)?|par|auteurs?|por|autor[ei]|door)\b|作者|著者",
    re.IGNORECASE | re.MULTILINE,
)


def pages_of_parts(reader: Reader, doc_id: str, asked: PartQuestion) -> dict[int, FoundPart | None]:
    """The pages of the parts asked for, those of the first part first; without a part what only goes with them."""
    others = {stem for word in asked.rest for stem in analyze(word)}
    found: dict[int, FoundPart | None] = {}
    for part in asked.parts:
        for page_id, place in _pages_of(reader, doc_id, part, others).items():
            found.setdefault(page_id, place)
    return found


def page_of_section(reader: Reader, doc_id: str, words: set[str], needed: set[str]) -> int | None:
    """The page with a heading that is made of words of the question and has the needed ones among them."""
    best: tuple[int, int, int] | None = None
    found = None
    headings = reader.lookups.all_headings(doc_id)
    for heading in headings:
        title = set(analyze(heading.title))
        if title and title <= words and needed <= title:
            order = (-len(title), heading.level, heading.page)
            if best is None or order < best:
                best, found = order, heading
    return found.page_id if found is not None and found.page_id not in _listing_pages(reader, [found]) else None


def _pages_of(reader: Reader, doc_id: str, part: AskedPart, others: Collection[str]) -> Mapping[int, FoundPart | None]:
    fronts = reader.lookups.front_pages([doc_id]).get(doc_id, [])
    if part.number or part.kind in {"title", "authors", "date"}:
        return dict.fromkeys(_place_of(reader, doc_id, part, fronts))
    heading = _heading_of(reader, doc_id, part, others)
    if part.kind in _OVERVIEWS or (part.kind == "purpose" and heading is None):
        # What sums a document up says what it is for, too.
        return _overview(reader, doc_id, heading or _heading_of(reader, doc_id, AskedPart("summary"), others), fronts)
    if part.kind == "contents" and (heading is None or heading.page > _IN_FRONT):
        # One far behind is that of an attached document; else the first page in front that lists sections.
        pages = reader.lookups.following_pages(fronts[0].page_id, _IN_FRONT) if fronts else []
        listing = [page_id for page_id, _, text in pages if _lists_sections(text)][:1]
        if listing or heading is None:
            return dict.fromkeys(listing)
    if heading is None:
        return {}
    run = list(_with_following(reader, heading, part.kind))
    if part.kind in _LISTS:
        return dict.fromkeys(run)
    return {page_id: FoundPart(part.kind, "" if at else heading.title) for at, page_id in enumerate(run)}


def _place_of(reader: Reader, doc_id: str, part: AskedPart, fronts: Sequence[lookups.FrontPage]) -> list[int]:
    """What is found by its number, or by where it stands."""
    if part.kind == "section":
        every = reader.lookups.all_headings(doc_id)
        return _best_numbered(reader, [heading for heading in every if heading.number == part.number])
    if part.kind == "appendix":
        return _appendix(reader, doc_id, part.number)
    called = page_of_section(reader, doc_id, set(analyze(part.said)), set()) if part.section else None
    return _title_page(reader, fronts, part.kind) if called is None else [called]


def _overview(
    reader: Reader, doc_id: str, heading: lookups.Heading | None, fronts: Sequence[lookups.FrontPage]
) -> dict[int, FoundPart | None]:
    """The pages that sum a document up: under such a heading, or else the beginnings of its sections. The first page
    goes with them."""
    found: dict[int, FoundPart | None] = {}
    if heading is not None:
        name = next((name for name, tier in zip(_TIERS, SUMMARY, strict=True) if _fit(heading, tier, begins=True)), "")
        most = 1 if _fit(heading, PARTS["abstract"].asked, begins=True) else _MOST_OVERVIEW
        for page_id in islice(_with_following(reader, heading, "summary"), most):
            found[page_id] = FoundPart(name or "summary", "" if found else heading.title)
    else:
        covers = {front.page_id for front in fronts if front.words < _COVER}
        for section in _top_sections(reader, doc_id, covers):
            found.setdefault(section.page_id, FoundPart("outline", section.title))
    for front in fronts[:1]:
        found.setdefault(front.page_id, None if found else FoundPart("beginning"))
    return found


def _top_sections(reader: Reader, doc_id: str, covers: Collection[int]) -> list[lookups.Heading]:
    """The first headings of the highest levels that have some, each where it comes first."""
    aside = {name for kind in _ASIDE for name in PARTS[kind].names}
    every: dict[str, lookups.Heading] = {}
    for heading in reader.lookups.all_headings(doc_id):
        if heading.level <= 6 and heading.title not in aside:
            every.setdefault(heading.title, heading)
    listing = _listing_pages(reader, list(every.values()))
    for level in range(1, 7):
        found = [each for each in every.values() if each.level <= level and each.page_id not in {*listing, *covers}]
        if len(found) >= _SOME_SECTIONS:
            return found[:_MOST_SECTIONS]
    return []


def _title_page(reader: Reader, fronts: Sequence[lookups.FrontPage], kind: str) -> list[int]:
    """The first page, or one after a cover that lacks what is asked for."""
    if not fronts:
        return []
    first = fronts[0]
    pages = [front.page_id for front in fronts]
    if kind == "title" or first.has_text:
        return pages[:1]
    for page_id, _, text in reader.lookups.following_pages(first.page_id, len(fronts) - 1):
        if _MADE_BY.search(text) if kind == "authors" else lookups.count_years(text):
            return list(dict.fromkeys([page_id, *pages[:1]]))
    return pages[:1]


def _heading_of(reader: Reader, doc_id: str, asked: AskedPart, others: Collection[str]) -> lookups.Heading | None:
    """The heading of such a part: one that reads as it was asked for, with `others` of the question's words or without,
    or else one that has its name alone, stands highest, and comes first (or last)."""
    part = PARTS[asked.kind]
    every = reader.lookups.headings(doc_id, part.names)
    if asked.kind in _OVERVIEWS:
        every = [heading for heading in every if heading.page <= _IN_FRONT or _sums_up(heading)]
    listing = _listing_pages(reader, every) if asked.kind != "contents" else set()
    if asked.kind == "index":  # which lists by its nature
        listing = {heading.page_id for heading in every if heading.page_id in listing and heading.page <= _IN_FRONT}
    spoken, tiers = [asked.said] if asked.said in part.names else [], part.headings
    said = next((at for at, tier in enumerate(tiers) if asked.said in tier), 0)  # "highlights" before a letter
    for wanted in [spoken, *tiers[said:], *tiers[:said]]:
        fitting = [(fit, heading) for heading in every if (fit := _fit(heading, wanted, begins=part.begins))]
        fitting = [each for each in fitting if each[1].page_id not in listing] or fitting
        if fitting:
            sign = -1 if part.last else 1
            order = [
                (-fit - _is_called(heading, wanted, others), heading.level, sign * heading.page)
                for fit, heading in fitting
            ]
            return _first_of_run(fitting[order.index(min(order))][1], [heading for _, heading in fitting])
    return None


def _is_called(heading: lookups.Heading, wanted: Iterable[str], others: Collection[str]) -> bool:
    """Whether the question has every word of the heading: "the concept index", where there are several."""
    words = set(analyze(heading.title)) - {stem for name in wanted for stem in analyze(name)}
    return bool(words) and words <= set(others)


def _first_of_run(heading: lookups.Heading, fitting: Sequence[lookups.Heading]) -> lookups.Heading:
    """Where the pages begin that have such a heading one after the other: it may run along the top of each."""
    by_page: dict[int, lookups.Heading] = {}
    for each in fitting:
        if each.level <= 6:
            by_page.setdefault(each.page, each)
    while heading.page - 1 in by_page:
        heading = by_page[heading.page - 1]
    return heading


def _sums_up(heading: lookups.Heading) -> bool:
    """Whether a heading deep inside a document says by itself that what follows sums it up."""
    front = _fit(heading, IN_FRONT, begins=True)
    return not front and max(_fit(heading, tier, begins=True) for tier in SUMMARY) == _ALONE


def _fit(heading: lookups.Heading, wanted: Iterable[str], *, begins: bool) -> int:
    """_ALONE: the name alone; 2: a heading that begins with it or has it in it; 1: what may be a heading; 0: no."""
    words = heading.title.replace("/", " ").replace("’", "'").split()
    title = " ".join(words)
    alone = {title, *(part.strip() for part in heading.title.split("/"))}  # "Zusammenfassung / Abstract"
    best = 0
    for name in wanted:
        if name in alone:
            return _ALONE
        if not name.isascii() and title.startswith(name):
            best = 2
        elif len(words) <= _MOST_WORDS and _has(title, name, begins=begins):
            best = max(best, 2 if heading.level <= 6 else 1)
    return best if best > 1 or not begins else 0


def _has(title: str, name: str, *, begins: bool) -> bool:
    if title.startswith(name) and not title[len(name)].isalnum():
        return True
    return not begins and f" {name} " in f" {title} "


def _listing_pages(reader: Reader, headings: Sequence[lookups.Heading]) -> set[int]:
    """Those of the headings' pages that only list them."""
    listing = set()
    for page_id in dict.fromkeys(heading.page_id for heading in headings):
        [(_, _, text), *_] = reader.lookups.following_pages(page_id, 0)
        if _lists_sections(text):
            listing.add(page_id)
    return listing


def _lists_sections(text: str) -> bool:
    entries, lines = lookups.count_entries(text)
    return entries >= _ENTRIES and entries >= _ENTRY_SHARE * lines


def _with_following(reader: Reader, heading: lookups.Heading, kind: str) -> Iterator[int]:
    """The page of the heading, and those after it that still belong to the part."""
    pages = reader.lookups.following_pages(heading.page_id, _MOST_PAGES)
    yield heading.page_id
    wanted = PARTS[kind].names if kind in PARTS else []
    for page_id, path, text in pages[1:]:
        if kind == "references":
            more = lookups.count_years(text) >= _YEARS
        elif kind == "contents":
            more = _lists_sections(text)
        else:
            more = any(_is_in(path, name) for name in [*wanted, heading.title])
        if not more:
            return
        yield page_id


def _is_in(path: str, name: str) -> bool:
    return any(step.strip(" .0123456789") == name for step in normalize(path).split(" > "))


def _appendix(reader: Reader, doc_id: str, number: str) -> list[int]:
    """Appendix B by its name, or else by a heading "B …": in capitals or not, but one that stands alone."""
    every = reader.lookups.all_headings(doc_id)
    called = [f"{name} {number}" for name in PARTS["appendix"].headings[0]]
    named = [heading for heading in every if any(_has(f"{heading.title} ", name, begins=True) for name in called)]
    return _best_numbered(reader, named) or _best_numbered(reader, [h for h in every if h.number == number])


def _best_numbered(reader: Reader, headings: Sequence[lookups.Heading]) -> list[int]:
    """The page of the highest of these headings, the first of equals; pages that only list sections do not count."""
    listing = _listing_pages(reader, headings)
    real = [heading for heading in headings if heading.page_id not in listing]
    return [min(real, key=lambda heading: (heading.level, heading.page)).page_id] if real else []
