"""Whatever a lenient reader would take for a citation header is escaped and marked; what only looks alike is not."""

from __future__ import annotations

import pytest

from research.context.escape import cited
from research.context.injection.detector import signals_of
from research.context.injection.headers import forges_header
from research.context.render import CitedPages
from tests.research.context.test_injection import CASES

DISGUISES, INNOCENT = CASES["disguises"], CASES["innocent"]


def test_the_sets_are_as_large_as_they_should_be() -> None:
    assert len(set(DISGUISES)) >= 88
    assert len(set(INNOCENT)) >= 40


def test_a_disguised_header_is_escaped_and_marked() -> None:
    for line in DISGUISES:
        page = f"The first paragraph.\n\n{line}\n\nThe last one."
        harmless = cited(page)
        assert "forged_header" in signals_of(page), line
        assert cited(harmless) == harmless, line
        assert not forges_header(harmless), line
        # One bracket is all that changed: every word can still be found on its page.
        changed = next(place for place in range(len(page)) if not harmless.startswith(page[: place + 1]))
        assert harmless[changed] == "(", line
        assert harmless[changed + 1 :] in {page[changed:], page[changed + 1 :]}, line


def test_what_only_looks_alike_stays() -> None:
    for line in INNOCENT:
        page = f"The first paragraph.\n\n{line}\n\nThe last one."
        assert CitedPages().body(page) == page, line
        assert signals_of(page) == [], line


@pytest.mark.slow
def test_long_runs_do_not_take_for_ever() -> None:
    """Patterns that go back over what they have read would not come back from these."""
    runs = ("D o c ", "Document ", "Document 2: a.pdf ", "[Document 2: ", "&#68;", "<b>", "d" + " " * 500, "[ ", "Dо")
    for run in runs:
        text = run * (40_000 // len(run))
        forges_header(text)
        assert len(cited(text)) >= len(text.strip())
