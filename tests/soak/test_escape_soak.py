"""Ten thousand random texts add no heading, item, note, header or message to anything that is rendered."""

from __future__ import annotations

from hypothesis import given, settings

from tests.research.context.test_escape import TEXTS, ours, shapes


@settings(max_examples=10_000)
@given(TEXTS)
def test_no_text_of_ten_thousand_adds_anything(mean: str) -> None:
    assert shapes(mean) == ours()
