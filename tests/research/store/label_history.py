"""Labels that are given, taken away and left behind, and what a policy is told: a history for any catalog, SQLite's or
PostgreSQL's."""

from __future__ import annotations

from typing import Any

from memory_making import tell, told

from research.store import governance, integrity
from research.store.governance import Label
from research.store.items import NewItem

TIME = "2026-01-01T00:00:00+00:00"


def label(catalog: Any) -> object:
    """What is told of labels of every kind of target, and of the things themselves."""
    known = catalog.documents.all()
    tell(catalog, "anna", told("a label", id="labelled", tags='["a"]', session="s"), told("sum", sources=("labelled",)))
    catalog.items.put("commit", "/repo/.git", "1", [NewItem("abcd", "t", "t", TIME, {"files_changed": ["x"]})])
    targets = [
        *(f"document:{info.file_id}" for info in known[:2]), f"page:{known[0].file_id}#1", "path:/docs", "tag:north",
        "code:/a.py", "commit:abcd", "document:file-0", "page:file-0#1", "session:lost",
    ]  # fmt: skip
    given = [Label(target, "classification", "Public", given_at=TIME) for target in targets]
    given += [Label("memory:labelled", "status", "final", "anna", "mark", TIME)]
    catalog.labels.put(given)
    catalog.labels.put([Label("tag:north", "classification", "Restricted", given_at=TIME)])
    removed = catalog.labels.remove("", "path:/docs", governance.NAMES), catalog.labels.state()
    lost = list(integrity.check_removed(catalog))
    for problem in lost:
        assert problem.fix is not None
        problem.fix(catalog)
    seen = [
        catalog.labels.all(),
        catalog.labels.rules(),
        catalog.labels.at("anna", ["memory:labelled", "memory:nobody"]),
        catalog.governance.documents([known[0].file_id, known[1].doc_id, "f" * 16]),
        catalog.governance.items("commit", ["abcd", "/repo/.git", "nobody"]),
        catalog.governance.memories("anna", ["labelled", told("sum").id]),
        catalog.governance.sessions("anna", ["s", "north", "nobody"]),
        sorted(catalog.governance.page_places().items()),
        catalog.governance.item_places(),
        catalog.governance.memory_numbers("anna"),
        sorted(catalog.governance.summary_sources("anna")),
        sorted(catalog.governance.file_refs()),
    ]
    places = ("/docs/x.cedar", "/repo/x.cedar", "/etc/x.cedar")
    seen += [[catalog.governance.ingested_around(path) for path in places]]
    catalog.items.remove_parents("code", ["/a.py"])  # which lay above all of them
    seen += [[catalog.governance.ingested_around(path) for path in places]]
    assert seen[-1] == [("/docs",), ("/repo",), ()]
    with catalog.transaction() as connection:
        connection.labels.leave_document(known[0].doc_id)
        connection.labels.leave_targets([("", "code:/a.py"), ("anna", "memory:labelled")])
    return removed, [problem.message for problem in lost], seen, catalog.labels.all()
