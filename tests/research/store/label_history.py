"""Labels that are given, taken away and left behind, and what a policy is told: a history for any catalog, SQLite's or
PostgreSQL's."""

from __future__ import annotations

from typing import Any

from memory_making import tell, told

from research.store.catalog import governance, labels
from research.store.catalog.documents import all_documents
from research.store.catalog.item_writes import put_items, remove_parents
from research.store.catalog.items import NewItem
from research.store.catalog.labels import Label
from research.store.upkeep import integrity

TIME = "2026-01-01T00:00:00+00:00"


def label(catalog: Any) -> object:
    """What is told of labels of every kind of target, and of the things themselves."""
    known = all_documents(catalog)
    tell(catalog, "anna", told("a label", id="labelled", tags='["a"]', session="s"), told("sum", sources=("labelled",)))
    put_items(catalog, "commit", "/repo/.git", "1", [NewItem("abcd", "t", "t", TIME, {"files_changed": ["x"]})])
    targets = [
        *(f"document:{info.file_id}" for info in known[:2]), f"page:{known[0].file_id}#1", "path:/docs", "tag:north",
        "code:/a.py", "commit:abcd", "document:file-0", "page:file-0#1", "session:lost",
    ]  # fmt: skip
    given = [Label(target, "classification", "Public", given_at=TIME) for target in targets]
    given += [Label("memory:labelled", "status", "final", "anna", "mark", TIME)]
    labels.put_labels(catalog, given)
    labels.put_labels(catalog, [Label("tag:north", "classification", "Restricted", given_at=TIME)])
    removed = labels.remove_labels(catalog, "", "path:/docs", labels.NAMES), labels.labels_state(catalog)
    lost = list(integrity.check_removed(catalog))
    for problem in lost:
        assert problem.fix is not None
        problem.fix(catalog)
    seen = [
        labels.list_labels(catalog),
        labels.rules(catalog),
        labels.labels_at(catalog, "anna", ["memory:labelled", "memory:nobody"]),
        governance.governed_documents(catalog, [known[0].file_id, known[1].doc_id, "f" * 16]),
        governance.governed_items(catalog, "commit", ["abcd", "/repo/.git", "nobody"]),
        governance.governed_memories(catalog, "anna", ["labelled", told("sum").id]),
        governance.known_sessions(catalog, "anna", ["s", "north", "nobody"]),
        sorted(governance.page_places(catalog).items()),
        governance.item_places(catalog),
        governance.memory_numbers(catalog, "anna"),
        sorted(governance.summary_sources(catalog, "anna")),
        sorted(governance.file_refs(catalog)),
    ]
    places = ("/docs/x.cedar", "/repo/x.cedar", "/etc/x.cedar")
    seen += [[governance.ingested_around(catalog, path) for path in places]]
    remove_parents(catalog, "code", ["/a.py"])  # which lay above all of them
    seen += [[governance.ingested_around(catalog, path) for path in places]]
    assert seen[-1] == [("/docs",), ("/repo",), ()]
    with catalog.transaction() as connection:
        labels.leave_document(connection, known[0].doc_id)
        labels.leave_targets(connection, [("", "code:/a.py"), ("anna", "memory:labelled")])
    return removed, [problem.message for problem in lost], seen, labels.list_labels(catalog)
