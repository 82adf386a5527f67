"""What speaks against a claim in the text that it cites: a "no" on one side only, the opposite of a word, another
bound, a plan that became a fact; and what `bindings` finds. Each is told in words that follow the source's number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from research.answer.claims.bindings import bindings_of
from research.answer.claims.evidence import Window
from research.answer.claims.phrases import CONTRARY
from research.answer.claims.reading import Cue, Reading, Word

DENIED = "says “no” to it"

_NEGATED = 3  # words after a "no" that it speaks of
_SAME_BREATH = 4  # places that a "no" may have moved
_FAR = 99
_BOUNDS = {"≤": "at most", "≥": "at least", "<": "less than", ">": "more than"}
_PARTICLES = (("on", "off"), ("off", "on"), ("up", "down"), ("down", "up"))


def conflicts_of(claim: Reading, windows: Sequence[Window], turned: Sequence[tuple[Word, str]]) -> Iterator[str]:
    """`turned` are words of the claim, each with its opposite in the source."""
    parts = [part for window in windows for part in window.parts]
    denied = list(_denials(claim, parts))
    # "not safe" for "unsafe": what is turned round twice is as it was.
    cancelled = min(len(denied), len(turned))
    yield from denied[cancelled:]
    for word, opposite in turned[cancelled:]:
        yield _instead(opposite, word.text)
    yield from _other_bounds(claim, parts)
    particles = frozenset().union(*(part.particles for part in parts))
    for one, other in _PARTICLES:
        if one in claim.particles - particles and other in particles - claim.particles:
            yield _instead(other, one)
    modals = frozenset().union(*(part.modals for part in parts))
    if len(claim.modals) == len(modals) == 1 and claim.modals != modals:
        yield _instead(min(modals), min(claim.modals))
    yield from _plans(claim, parts)
    yield from bindings_of(claim, windows)


def _instead(there: str, here: str) -> str:
    return f"says “{there}”, not “{here}”"


def _denials(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """A "no" that has none on the other side. Each stands for one: "No opinion is not needed" has one too many."""
    there = [(part, cue) for part in parts for cue in part.negations]
    distances = sorted(
        (distance, here, other)
        for here, cue in enumerate(claim.negations)
        for other, (part, theirs) in enumerate(there)
        if (distance := _distance(claim, cue, part, theirs)) < _FAR
    )
    paired: dict[int, int] = {}
    answered: set[int] = set()
    for _, here, other in distances:
        if here not in paired and other not in answered:
            paired[here] = other
            answered.add(other)
    for _ in range(len(claim.negations) - len(paired)):
        yield "does not say “no” to it"
    for other, (part, cue) in enumerate(there):
        if other not in answered and _speaks_of(claim, part, cue):
            yield DENIED


def _speaks_of(claim: Reading, part: Reading, cue: Cue) -> bool:
    """Whether a "no" of the source denies what the claim says: the word right after it, one that "or" ties to that, or
    most of the words after it."""
    words = _scope(part, cue)
    held = [bool(word.keys & claim.keys) for word in words]
    tied = [True, *(two.place - one.place == 2 and one.place + 1 in part.links for one, two in pairwise(words))]
    return 2 * sum(held) > len(held) or any(one and two for one, two in zip(held, tied, strict=False))


def _distance(claim: Reading, cue: Cue, part: Reading, theirs: Cue) -> int:
    """How much nearer to the same word one of two "no" stands; far if they are said of different words."""
    here, there = _scope(claim, cue), _scope(part, theirs)
    if here and here[0].keys & part.keys and not any(one.keys & two.keys for one, two in product(here, there)):
        return _FAR
    near = [word for word in claim.words if word.clause == cue.clause and abs(word.place - cue.place) <= _SAME_BREATH]
    if not near:
        return _SAME_BREATH  # "Default: None"
    return min(
        (
            abs((word.place - cue.place) - (other.place - theirs.place))
            for word in near
            for other in part.words
            if abs(other.place - theirs.place) <= 2 * _SAME_BREATH and word.keys & other.keys
        ),
        default=2 * _SAME_BREATH,
    )


def _scope(reading: Reading, cue: Cue) -> list[Word]:
    same = [word for word in reading.words if word.clause == cue.clause]
    after = [word for word in same if word.place > cue.place]
    return after[:_NEGATED] or same[-_NEGATED:]


def _other_bounds(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """ "at most" for "at least", "more than" for "less than", of the same number."""
    for sign, place in claim.bounds:
        number = next((q for q in claim.quantities if place <= q.place <= place + 3), None)
        for part in parts:
            for other, at in part.bounds:
                stated = next((q for q in part.quantities if at <= q.place <= at + 3), None)
                same = number is None or stated is None or number.number.values & stated.number.values
                if same and other in CONTRARY[sign]:
                    yield _instead(_BOUNDS[other], _BOUNDS[sign])
                    return


def _plans(claim: Reading, parts: Sequence[Reading]) -> Iterator[str]:
    """What is planned or expected there is a fact in the claim."""
    if claim.plans or claim.modals:
        return
    for part in parts:
        for cue in part.plans:
            words = _scope(part, cue)
            if words and all(word.keys & claim.keys for word in words):
                yield "only plans or expects it"
                return
