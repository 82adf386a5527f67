"""Candidates in sections, fitted into a token budget: which are shown, how much of each, and what comes out.

The count is exact. Items are counted one by one to choose them, and the text that comes out as a whole: where joints
cost more than they seemed to, the last item of the fullest section is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from research.context.tokens import TokenCounter
from research.sources.formats import capped, markdown, tokens_up_to
from research.sources.records import Candidate
from research.sources.shares import allotted, cap, chosen, shares

_GAP = "\n\n"

Groups = Mapping[str, Sequence[Candidate]]
"""Candidates by section, in the order in which they are chosen."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its items: the part of the budget they share by `weight`, and the type of context they are of."""

    name: str
    heading: str
    weight: float
    type: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a context is to look like. `footer` says what is in it, by section. Without `unique`, sections may say the
    same. `again`: other groups, once it is known which of the first were shown."""

    title: str
    sections: Sequence[Section]
    footer: Callable[[Groups], str]
    unique: bool = True
    again: Callable[[Groups, Groups], Groups] | None = None


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown, by section and the most relevant first, as text with its exact tokens."""

    shown: Groups = field(default_factory=dict)
    text: str = ""
    tokens: int = 0


def fitted(plan: Plan, groups: Groups, max_tokens: int, counter: TokenCounter, *, soft: bool = False) -> Fitted:
    """As much of the groups as fits. `soft`: the limit holds for the items alone, and each section shows one."""
    sections = [section for section in plan.sections if groups.get(section.name)]
    fitting = _Fitting(plan, max_tokens, counter, soft=soft)
    while sections:
        shown = fitting.choose(sections, groups)
        used = [section for section in sections if shown[section.name]]
        if len(used) == len(sections) or not used:
            return fitting.settled(used, shown)
        sections = used  # what the other headings would have cost is there for the rest
    return Fitted()


class _Fitting:
    def __init__(self, plan: Plan, max_tokens: int, counter: TokenCounter, *, soft: bool) -> None:
        self._plan = plan
        self._most = max_tokens
        self._counter = counter
        self._soft = soft
        self._costs: dict[str, int] = {}
        self._budgets: dict[str, float] = {}

    def choose(self, sections: Sequence[Section], groups: Groups) -> dict[str, list[Candidate]]:
        weights = {section.name: section.weight for section in sections}
        room = self._most - (0 if self._soft else self._frame(sections, groups))
        if room <= 0:
            return {name: [] for name in weights}
        fair = shares(weights, room)
        caps = self._caps(sections, fair)
        needs = {name: self._need(groups[name], caps[name], room) for name in weights}
        # What flows on makes items longer, too: a source that is alone has the whole budget as its own.
        grown = {name: max(fair[name], given) for name, given in allotted(weights, needs, room).items()}
        caps = self._caps(sections, grown)
        cut = {name: self._cut(groups[name], caps[name], room) for name in weights}
        costs = {name: [self._cost(each.item.content) for each in cut[name]] for name in weights}
        self._budgets = allotted(weights, {name: float(sum(each)) for name, each in costs.items()}, room)
        counts = chosen(self._budgets, costs, room)
        if self._soft:
            counts = {name: max(1, count) for name, count in counts.items()}
        return {name: cut[name][:count] for name, count in counts.items()}

    def settled(self, sections: Sequence[Section], shown: dict[str, list[Candidate]]) -> Fitted:
        while any(shown.values()):
            text = self._rendered(sections, shown)
            tokens = self._counter.count(text)
            if tokens <= self._most or self._soft:
                return Fitted(_by_relevance(shown), text, tokens)
            self._take_back(shown)
        return Fitted()

    def _take_back(self, shown: dict[str, list[Candidate]]) -> None:
        over = {
            name: sum(self._cost(each.item.content) for each in items) - self._budgets.get(name, 0.0)
            for name, items in shown.items()
            if items
        }
        shown[max(over, key=lambda name: over[name])].pop()

    def _rendered(self, sections: Sequence[Section], shown: Mapping[str, Sequence[Candidate]]) -> str:
        ordered = _by_relevance(shown)
        contents = [(section.heading, [each.item.content for each in ordered[section.name]]) for section in sections]
        return markdown(self._plan.title, contents, self._plan.footer(ordered))

    def _frame(self, sections: Sequence[Section], groups: Groups) -> int:
        """What title, headings and footer cost; an item's own line breaks are counted with it."""
        empty = [(section.heading, [""]) for section in sections]
        footer = self._plan.footer({section.name: groups[section.name] for section in sections})
        return self._counter.count(markdown(self._plan.title, empty, footer))

    def _caps(self, sections: Sequence[Section], budgets: Mapping[str, float]) -> dict[str, int]:
        """The most of one item: by the budget of its source, which several sections may share."""
        whole: dict[str, float] = {}
        for section in sections:
            whole[section.type] = whole.get(section.type, 0.0) + budgets[section.name]
        return {section.name: cap(whole[section.type]) for section in sections}

    def _need(self, group: Sequence[Candidate], most: int, room: float) -> float:
        """Tokens that a section would use with items of this length at most; beyond the room it does not matter."""
        used = 0.0
        for candidate in group:
            used += min(self._cost_up_to(candidate.item.content, most), most)
            if used > room:
                break
        return used

    def _cut(self, group: Sequence[Candidate], most: int, room: float) -> list[Candidate]:
        kept: list[Candidate] = []
        used = 0
        for candidate in group:
            fitting = capped(candidate, most, self._counter)
            if fitting is None:
                continue
            kept.append(fitting)
            used += self._cost(fitting.item.content)
            if used > room:  # no section shows more
                break
        return kept

    def _cost_up_to(self, content: str, most: int) -> int:
        known = self._costs.get(content)
        return tokens_up_to(content, most, self._counter) if known is None else known

    def _cost(self, content: str) -> int:
        if content not in self._costs:
            self._costs[content] = self._counter.count(content + _GAP)
        return self._costs[content]


def _by_relevance(shown: Mapping[str, Sequence[Candidate]]) -> dict[str, list[Candidate]]:
    return {name: sorted(items, key=lambda each: -each.item.relevance) for name, items in shown.items()}
