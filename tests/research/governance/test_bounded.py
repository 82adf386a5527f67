"""No text keeps the rules busy: patterns are bounded by construction, and hostile texts go through."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from research.governance import keys, masking, patterns, people, redaction
from research.governance.masking import SecretMasker
from research.governance.redaction import BaseRedactor
from tests.research.governance.hostile import LENGTH, TEXTS

MODULES = (keys, masking, patterns, people, redaction)
UNBOUNDED = re._constants.MAXREPEAT  # type: ignore[attr-defined]
# One class of characters and nothing behind it that could fail: read once, whatever follows.
SIMPLE = {r"\d+", "[0-9]+"}


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _patterns(each)


def _all() -> Iterator[tuple[str, re.Pattern[str]]]:
    for module in MODULES:
        for name, value in vars(module).items():
            if isinstance(value, ModuleType) or name.startswith("__"):
                continue
            for pattern in _patterns(value):
                yield f"{module.__name__}.{name}", pattern
    for pattern in _patterns(tuple(patterns.labels())):
        yield "labels", pattern


def _repeats(tree: Any, inside: bool = False) -> Iterator[tuple[bool, bool]]:
    """Each repetition that can be given back: whether it has no end, and whether it stands in another such one."""
    for operation, argument in tree:
        name = str(operation)
        if name in {"MAX_REPEAT", "MIN_REPEAT"}:
            _, most, body = argument
            yield most is UNBOUNDED, inside
            yield from _repeats(body, inside or most is UNBOUNDED)
        elif name == "POSSESSIVE_REPEAT":
            yield from _repeats(argument[2], False)
        elif name == "SUBPATTERN":
            yield from _repeats(argument[3], inside)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _repeats(branch, inside)
        elif name in {"ASSERT", "ASSERT_NOT"}:
            yield from _repeats(argument[1], inside)
        elif name == "ATOMIC_GROUP":
            yield from _repeats(argument, False)


def test_no_repetition_without_end_can_be_given_back() -> None:
    checked = 0
    for name, pattern in _all():
        tree = re._parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)  # type: ignore[attr-defined]
        for endless, nested in _repeats(tree):
            assert not nested, f"{name}: {pattern.pattern}"
            assert not endless or pattern.pattern in SIMPLE, f"{name}: {pattern.pattern}"
        checked += 1
    assert checked > 60


def _go_through(text: str) -> None:
    assert BaseRedactor("pii").redact(text)
    assert SecretMasker({"A": "aaaaaaaa", "B": "://a:b@x9", "C": "x" * 2000 + "y"}).mask(text)
    list(people.people(text, [], {"maria": 9}))
    list(people.addresses(text))


def test_hostile_texts_go_through() -> None:
    for text in TEXTS.values():
        _go_through(text[: LENGTH // 20])


@pytest.mark.slow
@pytest.mark.parametrize("part", ["a", "a@a.", "1-", "eyJ-", "password='", "://a:b@", "-----BEGIN ", "12 Elm "])
def test_long_hostile_texts_go_through(part: str) -> None:
    _go_through(TEXTS[part])
