"""The budget: hard and exact. What is too large comes as its passages, then as a summary of its own sentences with a
link to the whole, before it is dropped.

Every source has a few ways to stand in the content, each smaller than the one before. In the order of rank each gets
one that has room; what is left then lets them grow, the first one first. Tokens are counted exactly on what comes out:
if joints cost more than was reckoned, the last source is made smaller or taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from research.context.page_breaks import neutralize_page_marks
from research.context.pipeline import Renderer, fit
from research.context.tokens import RunningCount, TokenCounter
from research.packages.extracts import extract
from research.packages.package import Projection
from research.packages.ranking import Ranked

_SUMMARY_TOKENS = 120
_PASSAGE_TOKENS = 240  # that passages of one source may take, or
_PASSAGE_SHARE = 6  # an Nth of the budget where that is more
_SMALL = 96  # tokens; what has so few comes whole at once
_LEAST = 24  # tokens of room, below which nothing that says something fits with its header
_CHARACTERS = 10  # a token, more than texts have: what is longer than the room by that is not counted to learn it


@dataclass(frozen=True, slots=True)
class Governed:
    """A source as it may be shown. `redacted`: what its text is, is what a redactor left; `text`: there is any."""

    ranked: Ranked
    redacted: bool = False
    text: bool = True
    classification: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """One way to stand in the content."""

    projection: Projection
    body: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A source in the content, with the tokens that it added to it."""

    governed: Governed
    projection: Projection
    tokens: int


@dataclass(frozen=True, slots=True)
class FittedPackage:
    content: str = ""
    tokens: int = 0
    placed: list[Placed] = field(default_factory=list)
    dropped: list[Governed] = field(default_factory=list)


class _Entry:
    """A source and its levels, made when they are needed."""

    def __init__(self, governed: Governed, shared: _Shared) -> None:
        self.governed = governed
        self._shared = shared
        self._levels: dict[str, Level | None] = {}
        self.level: Level | None = None

    def at(self, projection: Projection, room: int) -> Level | None:
        """The source like this, if that is possible within this room."""
        known = self._levels.get(projection)
        if projection not in self._levels and (projection != "full" or self._may_fit(room)):
            known = self._levels[projection] = self._made(projection)
        return known if known is not None and known.tokens <= room else None

    def _may_fit(self, room: int) -> bool:
        return len(self.governed.ranked.candidate.item.text) <= _CHARACTERS * max(1, room)

    def _made(self, projection: Projection) -> Level | None:
        shared, item = self._shared, self.governed.ranked.candidate.item
        body = ""
        if projection == "full":
            body = shared.renderer.body(neutralize_page_marks(item.text))
        elif projection == "passages":
            body = self._passages()
        elif projection == "summary":
            most = min(_SUMMARY_TOKENS, max(1, shared.budget // 2))
            said = extract(item.text, shared.words, most, shared.counter)
            body = f"{shared.renderer.body(said)}\n({self._whole()})" if said else ""
        if not body.strip():
            return None
        # A header and the blank line before it; one token more for each joint.
        tokens = shared.counter.count(f"\n\n{shared.renderer.header(item, 99)}\n{body}") + 1
        return Level(self._named(projection), body, tokens)

    def _passages(self) -> str:
        shared, item = self._shared, self.governed.ranked.candidate.item
        most = max(_PASSAGE_TOKENS, shared.budget // _PASSAGE_SHARE)
        if item.passages and not self.governed.redacted:  # places on a masked page are those of another text
            whole = replace(item, text=neutralize_page_marks(item.text))
            fitted = fit([whole], most, _Bare(shared.renderer), shared.counter, extent="passages")
            return fitted.text.strip()
        return shared.renderer.body(extract(item.text, shared.words, most, shared.counter))

    def _whole(self) -> str:
        if self.governed.redacted:
            return "a summary"
        return f"a summary; the whole is {self.governed.ranked.candidate.ref}"

    def _named(self, projection: Projection) -> Projection:
        return "redacted" if self.governed.redacted else projection


@dataclass(frozen=True, slots=True)
class _Shared:
    renderer: Renderer
    counter: TokenCounter
    words: frozenset[str]
    budget: int


class _Bare:
    """Text alone, without a header."""

    separator = ""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def header(self, item: object, number: int) -> str:
        return ""

    def body(self, text: str) -> str:
        return self._renderer.body(text)


_LEVELS: tuple[Projection, ...] = ("full", "passages", "summary")


def fit_package(
    sources: Sequence[Governed],
    budget: int,
    renderer: Renderer,
    counter: TokenCounter,
    words: frozenset[str],
    *,
    passages: Callable[[], Sequence[Governed]] | None = None,
) -> FittedPackage:
    """The sources in order, as much of each as fits. `passages` gives the same sources with what fits the intent; it is
    not asked for where all of them fit whole."""
    shared = _Shared(renderer, counter, words, budget)
    whole = _all_whole([_Entry(each, shared) for each in sources], shared)
    if whole is not None:
        return whole
    entries = [_Entry(each, shared) for each in (passages() if passages is not None else sources)]
    left = budget
    pinned = sum(each.governed.ranked.candidate.pinned for each in entries)
    for entry in entries:
        share = left if not pinned else max(left // pinned, min(left, _SMALL))
        pinned -= entry.governed.ranked.candidate.pinned
        entry.level = _first(entry, left, share)
        left -= entry.level.tokens if entry.level else 0
    for entry in entries:
        if entry.level is not None:
            grown = _grown(entry, left + entry.level.tokens)
            left += entry.level.tokens - grown.tokens
            entry.level = grown
    return _settled(entries, shared)


def _all_whole(entries: Sequence[_Entry], shared: _Shared) -> FittedPackage | None:
    """None: they do not fit."""
    left = shared.budget
    for entry in entries:
        entry.level = entry.at("full", left) if entry.governed.text else _reference(entry, left)
        if entry.level is None:
            return None
        left -= entry.level.tokens
    rendered = _rendered(entries, shared)
    return rendered if rendered.tokens <= shared.budget else None


def _reference(entry: _Entry, room: int) -> Level | None:
    body = entry._shared.renderer.body(entry.governed.ranked.candidate.item.text)  # says that it is withheld
    tokens = entry._shared.counter.count(f"\n\n{_headed(entry, 99)}\n{body}") + 1
    return Level("reference", body, tokens) if tokens <= room else None


def _first(entry: _Entry, left: int, share: int) -> Level | None:
    """What a source gets before those after it: all of it where that is little, or where it is pinned and has its
    share; else its passages, else a summary."""
    if not entry.governed.text:
        return _reference(entry, left)
    if left < _LEAST:
        return None
    is_pinned = entry.governed.ranked.candidate.pinned
    whole = entry.at("full", min(left, share if is_pinned else max(_SMALL, entry._shared.budget // 10)))
    return whole or entry.at("passages", min(left, share)) or entry.at("summary", left)


def _grown(entry: _Entry, room: int) -> Level:
    assert entry.level is not None
    if entry.governed.text:
        for projection in _LEVELS[:2]:
            grown = entry.at(projection, room)
            if grown is not None and grown.tokens > entry.level.tokens:
                return grown
    return entry.level


def _headed(entry: _Entry, number: int) -> str:
    return entry._shared.renderer.header(entry.governed.ranked.candidate.item, number)


def _settled(entries: Sequence[_Entry], shared: _Shared) -> FittedPackage:
    """Rendered and counted; whatever is above the budget is taken back from the end, pinned sources last."""
    while True:
        rendered = _rendered(entries, shared)
        if rendered.tokens <= shared.budget:
            return rendered
        shown = [entry for entry in entries if entry.level is not None]
        unpinned = [entry for entry in shown if not entry.governed.ranked.candidate.pinned]
        last = (unpinned or shown)[-1]
        assert last.level is not None
        last.level = next(filter(None, (_smaller(last, each, last.level.tokens) for each in _LEVELS[1:])), None)


def _smaller(entry: _Entry, projection: Projection, than: int) -> Level | None:
    return entry.at(projection, than - 1) if entry.governed.text else None


def _rendered(entries: Sequence[_Entry], shared: _Shared) -> FittedPackage:
    content, count = "", RunningCount(shared.counter)
    placed: list[Placed] = []
    for entry in entries:
        if entry.level is None:
            continue
        added = f"{shared.renderer.separator if content else ''}{_headed(entry, len(placed) + 1)}"
        added += f"\n{entry.level.body}" if entry.level.body else ""
        longer = count.plus(added)
        placed.append(Placed(entry.governed, entry.level.projection, longer.tokens - count.tokens))
        content, count = content + added, longer
    dropped = [entry.governed for entry in entries if entry.level is None]
    return FittedPackage(content, count.tokens, placed, dropped)
