"""A claim beside the windows that may carry it: which of its words and numbers stand there, and what speaks against it.

Nothing here understands a sentence. Words are found or not; a number must stand beside the words that it has in the
claim; a "no" must be on both sides; two names or numbers must not have changed places. What speaks against a claim (the
opposite of a word, another bound, a plan that became a fact; and what `bindings` finds) is told in words that follow
the source's number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from research.answer.claims.bindings import bindings_of
from research.answer.claims.evidence import Window
from research.answer.claims.statement import CONTRARY, Cue, Fit, Quantity, Reading, Word, fit, side_of
from research.answer.claims.vocabulary import opposites_of

DENIED = "says “no” to it"

_NEGATED = 3  # words after a "no" that it speaks of
_SAME_BREATH = 4  # places that a "no" may have moved
_FAR = 99
_BOUNDS = {"≤": "at most", "≥": "at least", "<": "less than", ">": "more than"}
_PARTICLES = (("on", "off"), ("off", "on"), ("up", "down"), ("down", "up"))

_BY_CONTEXT = 0.7  # what a word counts that stands in the headings or in the question only
_MOST_OF_IT = 0.6  # of a clause, that a further sentence must hold
_ACRONYM = 5  # letters
_NEW = 2  # words or numbers that a further sentence must bring
_OTHER_WORD = 0.9  # one that is known to mean the same
_WORTH = {Fit.NONE: 0.0, Fit.UNSCALED: 0.7, Fit.ROUNDED: 0.8, Fit.SAME: 1.0}
_NAME, _NUMBER, _LIGHT = 2.0, 2.0, 0.25  # beside 1 for any other word


def _conflicts_of(claim: Reading, windows: Sequence[Window], turned: Sequence[tuple[Word, str]]) -> Iterator[str]:
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
    yield from _plans(claim, [part for window in windows if not window.row for part in window.parts])
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """`coverage` is the share of what the claim says that was found, 0 to 1. `conflicts` are reasons in plain words."""

    windows: tuple[Window, ...]
    coverage: float
    missing: tuple[Word, ...]
    absent: tuple[Quantity, ...]
    inexact: tuple[str, ...]  # reasons, too
    conflicts: tuple[str, ...]
    has_amount: bool = False  # a number that is there and no year
    held: int = 0  # words that say something, and numbers, that were found


def compare(claim: Reading, windows: Sequence[Window], scales: frozenset[float], known: frozenset[str]) -> Comparison:
    """`known` are the stems of the question's words: to repeat them claims nothing."""
    missing, turned, found, weight = [], [], 0.0, 0.0
    others_named = other_names(claim, windows)
    same_subject = any(_shares_subject(claim, window) for window in windows)
    for word in claim.words:
        worth = _NAME if word.is_name else _LIGHT if word.is_light else 1.0
        weight += worth
        if held := max((_holds(window, word) for window in windows), default=0.0):
            found += worth * held
        elif word.is_name and others_named and not any(word.stem in window.named for window in windows):
            missing.append(word)  # the heading may name it, the sentence names another
        elif _is_understood(word, windows, known, same_subject=same_subject):
            found += worth * _BY_CONTEXT
        elif opposite := _opposite_in(windows, word, claim):
            turned.append((word, opposite))
            found += worth * _OTHER_WORD  # it speaks of this, and says the contrary
        elif not word.is_light:
            missing.append(word)
    absent, inexact = [], []
    for quantity in claim.quantities:
        weight += _NUMBER
        how = max((fit(quantity, part, scales) for window in windows for part in window.parts), default=Fit.NONE)
        found += _NUMBER * _WORTH[how]
        if how == Fit.NONE:
            absent.append(quantity)
        elif how == Fit.UNSCALED or (how == Fit.ROUNDED and not quantity.number.hedged):
            told = "is rounded" if how == Fit.ROUNDED else "is written without its scale there"
            inexact.append(f"{quantity.text} {told}")
    coverage = found / weight if weight else 0.0
    conflicts = tuple(_conflicts_of(claim, windows, turned))
    has_amount = any(not quantity.is_year and quantity not in absent for quantity in claim.quantities)
    held = sum(not word.is_light for word in claim.words) + 2 * (len(claim.quantities) - len(absent)) - len(missing)
    return Comparison(
        tuple(windows), coverage, tuple(missing), tuple(absent), tuple(inexact), conflicts, has_amount, held
    )


def _is_understood(word: Word, windows: Sequence[Window], known: frozenset[str], *, same_subject: bool) -> bool:
    """Whether a word may be left out there: the document is about it, the heading says it, or the question does."""
    if any(word.stem in window.named for window in windows):
        return True
    above = any(word.stem in window.around for window in windows)
    return same_subject and (above or (not word.is_name and word.stem in known))


def _shares_subject(claim: Reading, window: Window) -> bool:
    """Whether the claim has what the source speaks of first. If not, it must not take its subject from a heading."""
    part, sides = window.parts[0], dict[tuple[int, int], Word]()
    for word in part.words:
        if not (word.is_light or word.is_verb):
            sides.setdefault(side_of(part, word), word)
    return not sides or part.has_pronoun or not window.is_prose or any(w.keys & claim.keys for w in sides.values())


def other_names(claim: Reading, windows: Sequence[Window]) -> bool:
    """Whether the source names somebody or something whom the claim does not."""
    words = (word for window in windows for part in window.parts for word in part.words)
    return any(word.is_name and not word.is_common and not word.keys & claim.keys for word in words)


def may_join(claim: Reading, windows: Sequence[Window]) -> bool:
    """Whether a claim may be made of several sentences: each says a part of it, or one goes on about "it".

    A claim of one clause is said in one sentence. What a neighbour adds as a single word is more likely wrong there.
    """
    parts = [part for window in windows for part in window.parts]
    if len(parts) == 1 or (len(windows) == 1 and not windows[0].is_prose):
        return True
    if any(window.is_prose and not _have_subjects(claim, window.parts) for window in windows):
        return False
    held = [_items(claim, part) for part in parts]
    first = max(range(len(parts)), key=lambda n: len(held[n]))
    if len(parts) == 2 and parts[1].has_pronoun and len(held[1]) >= len(held[0]):
        return True
    if not claim.joints:
        return False
    pieces = _pieces(claim)
    others = [(held[n], held[n] - held[first]) for n in range(len(parts)) if n != first]
    return all(
        len(new) >= _NEW and any(new & piece and len(own & piece) >= _MOST_OF_IT * len(piece) for piece in pieces)
        for own, new in others
    )


def _have_subjects(claim: Reading, parts: Sequence[Reading]) -> bool:
    """Whether a claim names what each of its sentences speaks of, unless one says "it", or the next one does."""
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        first = next((word for word in part.words if not word.is_light), None)
        follows = following is not None and following.has_pronoun
        if first and not (first.keys & claim.keys or part.has_pronoun or follows):
            return False
    return True


def _pieces(claim: Reading) -> list[set[int]]:
    """The places of what a claim says, by the commas and joining words between."""
    places = [word.place for word in claim.words if not word.is_light] + [q.place for q in claim.quantities]
    found: dict[int, set[int]] = {}
    for place in places:
        found.setdefault(bisect_right(claim.joints, place), set()).add(place)
    return list(found.values())


def _items(claim: Reading, part: Reading) -> set[int]:
    """The places of what a claim says that stand in a sentence."""
    words = {word.place for word in claim.words if not word.is_light and word.keys & part.keys}
    return words | {quantity.place for quantity in claim.quantities if fit(quantity, part, frozenset())}


def _holds(window: Window, word: Word) -> float:
    if word.stem in window.keys or (word.is_name and any(_is_short_for(word.text, part) for part in window.parts)):
        return 1.0
    return _OTHER_WORD if not word.is_name and word.keys & window.keys else 0.0


def _is_short_for(short: str, part: Reading) -> bool:
    """Whether a word is the first letters of some that stand side by side: CEO, NY."""
    if not (short.isupper() and 2 <= len(short) <= _ACRONYM):
        return False
    letters = "".join(word.text[0] if word.text[0].isupper() else " " for word in part.words)
    return short in letters


def _opposite_in(windows: Sequence[Window], word: Word, claim: Reading) -> str:
    """The word that says the contrary, unless the claim says that as well ("opens at seven and closes at ten")."""
    contrary = opposites_of(word.stem) - claim.keys
    for window in windows:
        if contrary & window.keys:
            for part in window.parts:
                for other in part.words:
                    if other.stem in contrary:
                        return other.text
    return ""
