"""How memories are ranked for a question.

    words     BM25 over a turn's words and its neighbours', a share of the most it can reach           0 to 1
    vectors   cosine, a little of its neighbours' in it                                                0.6 of it
    speaker   the question names who says it                                                           0.2
    time      it was told when the question says                                                       up to 0.1
    asking    it is a question itself                                                                  -0.08

A question about somebody is searched without the name: who speaks of himself says "I". Importance moves the sum by up
to 5 %, what feedback told of it by up to 10 %. All of it was measured on LoCoMo's development half and lies flat around
these numbers (tests/bench/RETRIEVAL.md, `make bench ONLY=locomo`).

A memory that was superseded never stands before the one that says it anew, which is found with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from research.memories import Within
from research.search.calibration import POOL, Evidence, calibrate
from research.search.memories.words import Flags, Floats, nearness, score_words, times_in
from research.store import analyze, normalize, stem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from research.search.memories.view import View

VECTORS = 0.6
SPEAKER = 0.2
TIME = 0.1
ASKING = 0.08
_BEFORE, _AFTER = 0.25, 0.15  # of a neighbour's cosine
_IMPORTANCE = 0.1  # of the distance from the middle: 5 % either way
_FEEDBACK = 0.1

_WORD = re.compile(r"[^\W\d_]+(?:['’]s\b)?")


@dataclass(frozen=True, slots=True)
class Asking:
    """A question to a tenant's memories, as they are searched."""

    words: tuple[str, ...]  # without names of speakers
    speakers: tuple[str, ...]  # that it names
    embedded: str  # the text that is compared by vectors


@dataclass(frozen=True, slots=True)
class Ranked:
    row: int
    total: float
    score: float
    parts: dict[str, float]
    evidence: Evidence  # its own, or that of the one whose place it has


def read_question(view: View, text: str) -> Asking:
    words = analyze(text)
    named = view.named(words)
    names = {word for found in named.values() for word in found}
    return Asking(tuple(word for word in words if word not in names), tuple(named), _as_speaker(text, names))


def _as_speaker(text: str, names: set[str]) -> str:
    """As whoever is named would say it: "What did Anna paint?" asks for what "I" painted."""

    def said(match: re.Match[str]) -> str:
        word = match.group()
        bare = re.sub(r"['’]s$", "", word)
        return ("my" if bare != word else "I") if stem(normalize(bare)) in names else word

    return _WORD.sub(said, text) if names else text


def allowed(view: View, within: Within, now: float) -> Flags:
    """The rows that may be found."""
    columns = view.columns
    flags = columns.live & (columns.expires > now)
    for column, wanted in (("session", within.session), ("namespace", within.namespace)):
        if wanted is not None:
            flags &= columns.one_of(column, [wanted])
    if within.persona is not None:
        flags &= columns.one_of("persona", ["", within.persona])
    if within.types:
        flags &= columns.one_of("type", within.types)
    if within.tags:
        flags &= columns.tagged(within.tags)
    return flags


def rank(
    view: View,
    asking: Asking,
    vector: NDArray[np.float32] | None,
    found: Flags,
    limit: int,
    *,
    text: str,
    now: datetime,
    session: str = "",
) -> list[Ranked]:
    """The best of the rows in `found`. `vector` is that of `asking.embedded`; None: words alone. What fits equally well
    comes in the order of `session` first, then the newest."""
    columns, parts = view.columns, parts_of(view, asking, vector, text, now)
    total = sum(parts.values(), np.zeros(len(view)))
    if columns.weighed:
        total *= 1.0 + _IMPORTANCE * (columns.importance - 0.5) + _FEEDBACK * columns.feedback
    rows = _best(total, found, max(limit, POOL))
    here = columns.one_of("session", [session]) if session else np.zeros(len(view), bool)
    rows = sorted(rows, key=lambda row: (-round(float(total[row]), 9), not here[row], -columns.told[row], -row))
    ordered = _newest_first(view, rows, found)[: max(limit, POOL)]
    own = dict(zip(rows, _evidence(view, rows, parts), strict=True))
    # What stands somewhere for being newer has the chances of the one whose place it took.
    places = zip(ordered, [*rows, *rows[-1:] * (len(ordered) - len(rows))], strict=False)
    evidence = [max(own.get(row, own[other]), own[other], key=lambda each: each.total) for row, other in places]
    ranked = []
    for row, each, score in zip(ordered, evidence, calibrate("memories", evidence, int(found.sum())), strict=True):
        shares = {name: round(float(values[row]), 6) for name, values in parts.items() if values[row]}
        ranked.append(Ranked(row, float(total[row]), score, shares, each))
    return ranked[:limit]


def _evidence(view: View, rows: Sequence[int], parts: Mapping[str, Floats]) -> list[Evidence]:
    """Of words and vectors alone: who spoke and when it was says which memory is meant, not that one is."""
    vectors, bare = parts.get("vectors"), set(view.without_vectors.tolist())
    found = []
    for row in rows:
        cosine = None if vectors is None or row in bare else float(vectors[row]) / VECTORS
        found.append(Evidence(float(parts["words"][row]) + VECTORS * (cosine or 0.0), cosine))
    return found


def parts_of(
    view: View, asking: Asking, vector: NDArray[np.float32] | None, text: str, now: datetime
) -> dict[str, Floats]:
    columns = view.columns
    parts = {"words": score_words(view, asking.words)}
    if vector is not None:
        parts["vectors"] = VECTORS * _with_neighbours(view, np.maximum(view.cosines(vector), 0.0))
    if asking.speakers:
        parts["speaker"] = SPEAKER * columns.one_of("speaker", asking.speakers).astype(np.float64)
    times = times_in(text, now)
    if times:
        parts["time"] = TIME * nearness(times, columns.created)
    parts["asking"] = -ASKING * columns.asks.astype(np.float64)
    return parts


def _with_neighbours(view: View, cosines: Floats) -> Floats:
    """The mean of a turn's cosine and its neighbours', weighed; a turn without neighbours keeps its own."""
    padded = np.append(cosines, 0.0)  # what -1 means
    total = cosines + _BEFORE * padded[view.earlier] + _AFTER * padded[view.later]
    total /= 1.0 + _BEFORE * (view.earlier >= 0) + _AFTER * (view.later >= 0)
    return total


def _best(total: Floats, found: Flags, limit: int) -> list[int]:
    """The rows of the greatest sums, all that are as good as the last of them included."""
    sums = np.where(found, total, 0.0)
    least = float(np.partition(sums, -limit)[-limit]) if len(sums) > limit else 0.0
    return [int(row) for row in np.flatnonzero(sums >= least if least > 0.0 else sums > 0.0)]


def _newest_first(view: View, rows: Sequence[int], found: Flags) -> list[int]:
    """Each one that was superseded comes right after whatever says it anew."""
    ordered: dict[int, None] = {}
    for row in rows:
        for each in reversed(_newer(view, row)):
            if found[each]:
                ordered.setdefault(each)
        ordered.setdefault(row)
    return list(ordered)


def _newer(view: View, row: int) -> list[int]:
    """What supersedes it, and what that; the newest last."""
    chain: list[int] = []
    while number := int(view.columns.newer[row]):
        following = view.columns.rows_of([number])
        if not len(following) or int(following[0]) in chain:
            break
        row = int(following[0])
        chain.append(row)
    return chain
