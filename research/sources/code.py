"""Code as a source: functions, classes and methods, found by what they are called and by what they do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from research.models import Item, Ref
from research.records import CodeTree
from research.search.items import FoundItem, FoundItems, Ranking, Where
from research.sources.items import ItemsSource
from research.store.catalog.items import StoredItem, count_of_parents, find_item, find_items_ending, item_parents
from research.store.fulltext.item_words import WordWeights

if TYPE_CHECKING:
    from research.store.catalog.reader import Reader

# Measured on docstrings of packages as questions (tests/bench/code.py, RETRIEVAL.md), where it lies flat around these
# numbers: the first sentence of a function's docstring, which is not indexed then, finds the function.
RANKING = Ranking(
    words=WordWeights(title=4.0, body=1.0, words=2.0),
    k1=1.0,
    b=0.6,
    vectors=1.2,
    heading=0.5,
    title=0.2,
    curve="code",
)
_ASKS_FOR_TESTS = re.compile(r"\b(?:unit|ge)?test(?:s|ed|et|ing|cases?)?\b|\bspecs?\b|\bfixtures?\b", re.I)


def trees_of(reader: Reader) -> list[CodeTree]:
    """By name."""
    counts = count_of_parents(reader, CodeSource.kind)
    found: dict[str, list[int]] = {}
    for parent in item_parents(reader, CodeSource.kind):
        if counts[parent.parent]:
            found.setdefault(str(parent.metadata.get("root", "")), []).append(counts[parent.parent])
    return [CodeTree(root, len(units), sum(units)) for root, units in sorted(found.items())]


class CodeSource(ItemsSource):
    name = "code"
    kind = "code"
    ranking = RANKING

    def find(self, reader: Reader, text: str, limit: int, *, where: Where | None = None) -> FoundItems:
        """Tests stand behind the code that they test, unless a question speaks of tests."""
        return self.search.find(reader, text, limit, where=where, priors=_ASKS_FOR_TESTS.search(text) is None)

    def item(self, found: FoundItem) -> Item:
        return replace(super().item(found), title=str(found.item.metadata["qualified_name"]))

    def ref(self, found: FoundItem) -> Ref:
        return code_ref(found.item)

    def get(self, reader: Reader, ref: str) -> StoredItem | None:
        """By a ref as it is told, or by the end of one: `code:src/dates.py#parse`, if only one piece ends so."""
        key = ref.removeprefix(f"{self.kind}:")
        found = find_item(reader, self.kind, key)
        if found is None:
            ending = find_items_ending(reader, self.kind, f"/{key.lstrip('/')}", 2)
            found = ending[0] if len(ending) == 1 else None
        return found


def code_ref(item: StoredItem) -> Ref:
    """`code:<path>#<qualified name>`; what stands outside of all definitions has the file's own."""
    return Ref("code", item.parent, item.key[len(item.parent) + 1 :])
