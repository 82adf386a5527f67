"""What things are called: labels, which tell a policy what a thing is and go when it goes, and tags, which are
people's own words for a document. Short writes, accepted while an ingest runs. And one text that is another after every
change of what an index holds.

Documents, items and tags share a counter; labels have one already, and memories one of each tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from research.errors import NothingFoundError, UsageError
from research.store.pages import placeholders
from research.store.reader import Repository, grouped

CLASSIFICATIONS = ("Public", "Internal", "Confidential", "Restricted")  # the strictest last
NAMES: tuple[str, ...] = ("classification", "status", "module", "project")
ORIGINS = ("user", "mark")
PATH, TAG = "path:", "tag:"
SEQUENCE = "labels_seq"
_COLUMNS = "target, name, value, tenant, origin, given_at"


@dataclass(frozen=True, slots=True)
class Label:
    """One label of one target. `origin`: a user's own, or a mark on a page that a user confirmed."""

    target: str
    name: str
    value: str
    tenant: str = ""
    origin: str = "user"
    given_at: str = ""


_LONGEST = 100


def is_tag(value: object) -> bool:
    """One line that can be shown and typed."""
    return isinstance(value, str) and 0 < len(value) <= _LONGEST and value == value.strip() and value.isprintable()


def _checked(tags: Iterable[str]) -> list[str]:
    wanted = [tag.strip() for tag in tags]
    for tag in wanted:
        if not is_tag(tag):
            raise UsageError(f"{tag[:_LONGEST]!r} cannot be a tag", hint=f"use one line of up to {_LONGEST} characters")
    return wanted


CONTENT = "content"


class Labels(Repository):
    """Labels of things, and tags of documents."""

    def put(self, labels: Iterable[Label]) -> None:
        """In place of those the targets have by these names. Raises `BusyError` if that is not possible within a
        second."""
        with self._db.short_write() as connection:
            rows = [astuple(each) for each in labels]
            connection.put_rows("labels", _COLUMNS, rows, over="tenant, target, name")
            connection.count_up(SEQUENCE)

    def remove(self, tenant: str, target: str, names: Sequence[str]) -> int:
        """How many of them there were."""
        with self._db.short_write() as connection:
            query = f"SELECT COUNT(*) FROM labels WHERE tenant = ? AND target = ? AND name IN ({placeholders(names)})"
            found = int(connection.value(query, (tenant, target, *names)))
            query = "DELETE FROM labels WHERE tenant = ? AND target = ? AND name IN"
            connection.rows_in(query, names, first=(tenant, target))
            connection.count_up(SEQUENCE)
        return found

    def all(self) -> list[Label]:
        """All there are, by target."""
        return self._db.records(Label, f"SELECT {_COLUMNS} FROM labels ORDER BY tenant, target, name")

    def at(self, tenant: str, targets: Iterable[str]) -> dict[str, list[Label]]:
        """Target → its labels, of those that have any."""
        # Most indexes have none, and need not be asked for every set of things.
        if not self._db.cached("any labels", lambda: self._db.value("SELECT 1 FROM labels LIMIT 1")):
            return {}
        query = f"SELECT {_COLUMNS} FROM labels WHERE tenant = ? AND target IN"
        return grouped((row[0], Label(*row)) for row in self._db.rows_in(query, targets, first=(tenant,)))

    def rules(self) -> tuple[Label, ...]:
        """Those for paths and tags, in order; read once for as long as nobody writes."""
        query = (
            f"SELECT {_COLUMNS} FROM labels WHERE tenant = ''"
            " AND (target >= ? AND target < ? OR target >= ? AND target < ?) ORDER BY target, name"
        )
        ends = (PATH, "path;", TAG, "tag;")  # ";" is what comes after ":"
        return self._db.cached("rules of labels", lambda: tuple(self._db.records(Label, query, ends)))

    def state(self) -> str:
        """Another one whenever a label was given or taken away."""
        return self._db.meta(SEQUENCE, "0")

    def leave_document(self, doc_id: str) -> None:
        """A document goes, and its labels and its pages' with it; part of the caller's transaction, before it goes.
        Those of files that were replaced by it are under their own ids."""
        ids = self._db.column(
            "SELECT file_id FROM documents WHERE doc_id = ? UNION SELECT former_id FROM former_ids WHERE doc_id = ?",
            (doc_id, doc_id),
        )
        self.leave_targets([("", f"document:{each}") for each in ids])
        self.leave_parents([f"page:{each}" for each in ids])

    def leave_targets(self, targets: Iterable[tuple[str, str]]) -> None:
        """Remove the labels of things that go, each a tenant and a target."""
        self._db.executemany("DELETE FROM labels WHERE tenant = ? AND target = ?", list(targets))

    def leave_parents(self, parents: Iterable[str]) -> None:
        """Remove the labels of what items were read from and of whatever is named after it: functions that are gone
        from a file."""
        self._db.executemany(
            "DELETE FROM labels WHERE tenant = '' AND (target = ? OR target >= ? AND target < ?)",
            [(each, f"{each}#", f"{each}$") for each in parents],  # "$" is what comes after "#"
        )

    def lost(self) -> list[tuple[str, str]]:
        """(tenant, target) of those whose thing is gone, which takes its labels along."""
        rows = self._db.execute("SELECT DISTINCT tenant, target FROM labels ORDER BY tenant, target").fetchall()
        left: dict[tuple[str, str], dict[str, list[str]]] = {}  # tenant and kind → id → targets
        for tenant, target in rows:
            kind, _, key = str(target).partition(":")
            if f"{kind}:" not in (PATH, TAG):
                key = (key.rpartition("#")[0] or key) if kind in ("page", "code", "experience") else key
                left.setdefault((str(tenant), kind), {}).setdefault(key, []).append(str(target))
        gone = []
        for (tenant, kind), targets in left.items():
            there = self._there(tenant, kind, list(targets))
            gone += [(tenant, target) for key in targets if key not in there for target in targets[key]]
        return gone

    def _there(self, tenant: str, kind: str, keys: list[str]) -> set[str]:
        """Those of these ids that there are."""
        queries: tuple[tuple[str, tuple[str, ...]], ...] = (
            ("SELECT key FROM items WHERE kind = ? AND key IN", (kind,)),
            ("SELECT parent FROM item_parents WHERE kind = ? AND parent IN", (kind,)),
        )
        if kind in ("page", "document"):
            queries = (
                ("SELECT file_id FROM documents WHERE file_id IN", ()),
                ("SELECT former_id FROM former_ids WHERE former_id IN", ()),
            )
        elif kind == "memory":
            queries = (("SELECT id FROM memories WHERE tenant = ? AND id IN", (tenant,)),)
        elif kind == "session":
            queries = (
                ("SELECT session FROM turns WHERE tenant = ? AND session IN", (tenant,)),
                ("SELECT session FROM memories WHERE tenant = ? AND session IN", (tenant,)),
            )
        return {str(row[0]) for query, first in queries for row in self._db.rows_in(query, keys, first=first)}

    def add_tags(self, doc_ids: Iterable[str], tags: Iterable[str]) -> None:
        """Give documents tags; those they have already stay. Raises `BusyError` if that is not possible within a
        second."""
        wanted = _checked(tags)
        with self._db.short_write() as connection:
            for doc_id in doc_ids:
                connection.labels._check_known(doc_id)
                connection.labels.write_tags(doc_id, wanted)
            connection.labels.content_changed()

    def remove_tags(self, doc_ids: Iterable[str], tags: Iterable[str]) -> None:
        """Take tags away; those they have not are no fault."""
        gone = _checked(tags)
        with self._db.short_write() as connection:
            for doc_id in doc_ids:
                connection.labels._check_known(doc_id)
                connection.executemany("DELETE FROM tags WHERE doc_id = ? AND tag = ?", [(doc_id, tag) for tag in gone])
            connection.labels.content_changed()

    def tags(self, doc_id: str) -> list[str]:
        return self._db.column("SELECT tag FROM tags WHERE doc_id = ? ORDER BY tag", (doc_id,))

    def all_tags(self) -> dict[str, list[str]]:
        """tag → the documents that have it, both in order."""
        return grouped(self._db.execute("SELECT tag, doc_id FROM tags ORDER BY tag, doc_id"))

    def write_tags(self, doc_id: str, tags: Iterable[str]) -> None:
        self._db.put_rows("tags", "doc_id, tag", [(doc_id, tag) for tag in tags], over="doc_id, tag")

    def _check_known(self, doc_id: str) -> None:
        if self._db.value("SELECT 1 FROM documents WHERE doc_id = ?", (doc_id,)) is None:
            raise NothingFoundError(f"no document has the id {doc_id}", hint="see them all with: ctx list")

    def content_changed(self) -> None:
        self._db.count_up(CONTENT)

    def content_revision(self, tenant: str) -> str:
        """Of what a tenant sees. A restored catalog is another one, whatever its counters say."""
        state = self._db.memories.state(tenant)
        memories = f"{state.version}.{state.last_seq}" if state else "0"
        return f"{self._db.meta('catalog_id')[:12]}-{self._db.meta(CONTENT, '0')}-{self.state()}-{memories}"
