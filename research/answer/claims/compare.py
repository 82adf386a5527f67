"""A claim beside the windows that may carry it: which of its words and numbers stand there, and what speaks against it.

Nothing here understands a sentence. Words are found or not; a number must stand beside the words that it has in the
claim; a "no" must be on both sides; two names or numbers must not have changed places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from research.answer.claims.conflicts import conflicts_of
from research.answer.claims.evidence import Source, Window
from research.answer.claims.quantities import Fit, fit
from research.answer.claims.reading import Quantity, Reading, Word, side_of
from research.answer.claims.thesaurus import opposites_of

_BY_CONTEXT = 0.7  # what a word counts that stands in the headings or in the question only
_MOST_OF_IT = 0.6  # of a clause, that a further sentence must hold
_ACRONYM = 5  # letters
_NEW = 2  # words or numbers that a further sentence must bring
_OTHER_WORD = 0.9  # one that is known to mean the same
_WORTH = {Fit.NONE: 0.0, Fit.UNSCALED: 0.7, Fit.ROUNDED: 0.8, Fit.SAME: 1.0}
_NAME, _NUMBER, _LIGHT = 2.0, 2.0, 0.25  # beside 1 for any other word


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
    conflicts = tuple(conflicts_of(claim, windows, turned))
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
    if first and parts[first].has_pronoun and len(parts) == 2:
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


def stands_in(quantity: Quantity, source: Source) -> bool:
    return fit(quantity, source.whole, source.scales) != Fit.NONE


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
