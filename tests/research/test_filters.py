"""Filters: what can be said, and what cannot be read is refused in words."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.errors import UsageError
from research.filters import LAST_PAGE, Filters, read_time

DAY = (datetime(2026, 5, 31, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))


def test_nothing_restricts_nothing() -> None:
    assert not Filters()
    assert Filters().pages_read() == ()
    assert Filters(pages="3")
    assert Filters(tags="x")


def test_a_text_or_a_path_is_a_list_of_one() -> None:
    assert Filters(documents="a.pdf", under=Path("/docs")) == Filters(documents=("a.pdf",), under=("/docs",))  # type: ignore[arg-type]
    assert Filters(tags=["a", "b"]).tags == ("a", "b")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pages", "ranges"),
    [
        ("3", ((3, 3),)),
        ("3-5", ((3, 5),)),
        (" 3 - 5 , 8 ", ((3, 5), (8, 8))),
        ("3–5", ((3, 5),)),
        ("10-", ((10, LAST_PAGE),)),
        ("-4", ((1, 4),)),
        ("8,1-2,3,7-9", ((1, 3), (7, 9))),
        ("1-9,2-3", ((1, 9),)),
        ("007", ((7, 7),)),
    ],
)
def test_pages(pages: str, ranges: object) -> None:
    assert Filters(pages=pages).pages_read() == ranges


@pytest.mark.parametrize("pages", ["0", "x", "3-x", "5-3", "-", ",", "3,,4", "1.5", "٣", "1-2-3", "1" * 10, "-0"])
def test_what_is_not_pages(pages: str) -> None:
    with pytest.raises(UsageError, match="which is not pages") as caught:
        Filters(pages=pages)
    assert "3-5" in caught.value.hint


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 20)), min_size=1, max_size=8))
def test_ranges_hold_the_pages_that_were_named(given_ranges: list[tuple[int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}" for first, more in given_ranges)
    read = Filters(pages=text).pages_read()
    wanted = {page for first, more in given_ranges for page in range(first, first + more + 1)}
    assert {page for first, last in read for page in range(first, last + 1)} == wanted
    assert all(one[1] + 1 < other[0] for one, other in itertools.pairwise(read)), "in order, with a gap between"


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("2026", datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)),
        ("2026-05", datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)),
        ("2026-12", datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)),
        ("2026-05-31", *DAY),
        (" 2026-05-31 ", *DAY),
        ("20260531", *DAY),
    ],
)
def test_a_span_of_time_is_all_of_it(text: str, begins: datetime, ends: datetime) -> None:
    assert Filters(since=text).times()[0] == begins
    assert Filters(until=text).times()[1] == ends
    assert Filters(since=text, until=text).times() == (begins, ends)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-05-31T14:30", datetime(2026, 5, 31, 14, 30, tzinfo=UTC)),
        ("2026-05-31 14:30:15", datetime(2026, 5, 31, 14, 30, 15, tzinfo=UTC)),
        ("2026-05-31T14:30Z", datetime(2026, 5, 31, 14, 30, tzinfo=UTC)),
        ("2026-05-31T14:30+02:00", datetime(2026, 5, 31, 12, 30, tzinfo=UTC)),
    ],
)
def test_a_moment_is_inside_of_itself(text: str, moment: datetime) -> None:
    since, _ = Filters(since=text).times()
    _, until = Filters(until=text).times()
    assert since == moment < until


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("text", ["yesterday", "2026-13", "2026-02-30", "0000", "26", " ", "2026-05-31T25:00", "٢٠٢٦"])
def test_what_is_no_time(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"the filter {name} has .* which is not a time") as caught:
        Filters(**{name: text})
    assert "2026-05-31" in caught.value.hint


def test_the_ends_of_time() -> None:
    assert Filters(since="0001", until="9999").times()[1].year == 9999
    assert Filters(until="9999-12-31T23:59:59.999999").times()[1].year == 9999
    assert read_time("0001-01-01T00:00:00+14:00") is None
    assert read_time("none") is None
    assert read_time("2026-05-31") == DAY[0]


def test_no_time_lies_between() -> None:
    with pytest.raises(UsageError, match="since '2027' is after until '2026'"):
        Filters(since="2027", until="2026")


def test_empty_values_name_the_filter() -> None:
    with pytest.raises(UsageError, match="the filter not_doc has an empty value"):
        Filters(not_documents=("",))
