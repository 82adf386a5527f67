"""Numbers and dates by value, in the notations that pages and models use."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.answer.claims.statement import Fit, fit, read
from research.answer.claims.vocabulary import numbers_in
from tests.pace import draws


def fits(claim: str, source: str, *scales: float) -> list[Fit]:
    """How each number of a claim fits a source."""
    stated = read(source)
    return [fit(quantity, stated, frozenset(scales)) for quantity in read(claim).quantities]


NOTATIONS = [
    ("1,200", "1200"),
    ("1.2 thousand", "1200"),
    ("1 200", "1200"),
    ("1'200", "1200"),
    ("1.200,50", "1,200.50"),
    ("€0,35", "€0.35"),
    ("$3.0 billion", "3,000 million"),
    ("£80.1m", "80.1 million"),
    ("18 %", "18 percent"),
    ("18 per cent", "18%"),
    ("seven", "7"),
    ("twelve", "12"),
    ("seventy-two", "72"),
    ("five hundred", "500"),
    ("two hundred and five", "205"),
    ("two thousand", "2,000"),
    ("seven and a half", "7.5"),
    ("an hour and a half", "1.5 hours"),
    ("zwölf", "12"),
    ("3 May 2024", "May 3, 2024"),
    ("3 May 2024", "2024-05-03"),
    ("3rd of May 2024", "03/05/2024"),
    ("3. Mai 2024", "3.5.2024"),
    ("le 3 mai 2024", "3 May 2024"),
    ("3 May", "May 3"),
    ("May 2024", "3 May 2024"),
    ("2024", "3 May 2024"),
    ("8 am", "08:00"),
    ("4:30 pm", "16:30"),
    ("6 pm", "six in the evening"),
    ("(48,857)", "48,857"),
    ("1.3万", "13,000"),
]


def test_the_same_number_in_two_notations() -> None:
    for one, other in NOTATIONS:
        assert fits(one, other) == [Fit.SAME], (one, other)


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("18", "19"),
        ("1,200", "12,00"),
        ("4 May 2024", "3 May 2024"),
        ("3 May 2023", "3 May 2024"),
        ("3 June", "3 May"),
        ("16:30", "16:45"),
        ("7", "10 July"),
        ("3 million", "3 billion"),
        ("72", "seventy"),
        ("26 %", "26.6 %"),
    ],
)
def test_another_number(claim: str, source: str) -> None:
    assert Fit.SAME not in fits(claim, source)
    assert Fit.ROUNDED not in fits(claim, source)


def test_rounded_and_without_its_scale() -> None:
    assert fits("26 %", "26.4 %") == [Fit.ROUNDED]
    assert fits("80.1 million", "80,095", 1e3) == [Fit.ROUNDED]
    assert fits("80.2 million", "80,095", 1e3) == [Fit.NONE]
    assert fits("1,469 million", "1,469") == [Fit.UNSCALED]


@pytest.mark.parametrize(
    "text", ["no one", "one of them", "one another", "the one who", "a one-off", "May I?", "v1beta", ""]
)
def test_no_number(text: str) -> None:
    assert numbers_in(text) == []


@draws(100)
@given(
    st.lists(
        st.sampled_from(
            ["1", ",", ".", " ", "000", "one", "hundred", "and", "May", "3", "%", ":", "-", "/", "2024", "am"]
        )
        | st.text(max_size=3),
        max_size=25,
    ).map("".join)
)
def test_numbers_never_overlap(text: str) -> None:
    found = numbers_in(text)
    for number in found:
        assert 0 <= number.start < number.end <= len(text)
        assert number.values or number.dates
    assert all(one.end <= two.start for one, two in pairwise(found))
