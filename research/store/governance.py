"""What things are called: labels, which tell a policy what a thing is and go when it goes, and tags, which are
people's own words for a document. Short writes, accepted while an ingest runs. And one text that is another after every
change of what an index holds.

Documents, items and tags share a counter; labels have one already, and memories one of each tenant.

What governance reads and keeps: what a policy is told of things, in bulk, and the rows of the audit: who saw what,
in the order in which it was decided. What their hashes mean is not known here.

Rows are added and, once they are old, replaced by a checkpoint; none is ever changed. Writing is part of the caller's
transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
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


@dataclass(frozen=True, slots=True)
class GovernedDocument:
    """A document by every id that means it: `ids` are the lasting ones, its own first, that labels are kept under."""

    doc_id: str
    ids: tuple[str, ...]
    path: str  # its own; all of them are in `paths`
    paths: tuple[str, ...]
    tags: frozenset[str]
    num_pages: int


@dataclass(frozen=True, slots=True)
class GovernedItem:
    """An item, or what items were read from. `files`: those that a commit has changed. `made_from`: refs of what a
    value quotes."""

    parent: str
    files: tuple[str, ...] = ()
    made_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GovernedMemory:
    """A memory's tags, and the ids of those that say the same or that it is a summary of."""

    tags: frozenset[str]
    made_from: tuple[str, ...] = ()


def _folders_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) or "/" for end in range(len(parts) - 1, 0, -1)]


ACCESS, CHECKPOINT, RESTART, ACCEPTED = ("access", "checkpoint", "restart", "accepted")
LONGEST_ENTRY = 1 << 20  # characters of JSON

_AUDIT = "seq, at, kind, tenant, principal, decision, denied, hash, entry"
_BATCH = 1000
_ALL = 1 << 62


@dataclass(frozen=True, slots=True)
class AuditRow:
    seq: int
    at: str
    kind: str
    tenant: str
    principal: str
    decision: str
    denied: int
    hash: str
    entry: str  # JSON


class Governance(Repository):
    """What a policy is told of things, in bulk."""

    def documents(self, ids: Iterable[str]) -> dict[str, GovernedDocument]:
        """Id (today's, lasting or former) → the document that it means now."""
        meant: dict[str, str] = {}
        wanted = list(dict.fromkeys(ids))
        # An id that a document has today means that document, whatever it meant before.
        for query in (
            "SELECT former_id, doc_id FROM former_ids WHERE former_id IN",
            "SELECT file_id, doc_id FROM documents WHERE file_id IN",
            "SELECT doc_id, doc_id FROM documents WHERE doc_id IN",
        ):
            meant.update((str(given), str(doc_id)) for given, doc_id in self._db.rows_in(query, wanted))
        found = {each.doc_id: each for each in self._documents(list(dict.fromkeys(meant.values())))}
        return {given: found[doc_id] for given, doc_id in meant.items() if doc_id in found}

    def _documents(self, doc_ids: Sequence[str]) -> list[GovernedDocument]:
        paths, tags, former = (
            grouped(self._db.rows_in(query, doc_ids, "ORDER BY 2"))
            for query in (
                "SELECT doc_id, path FROM files WHERE doc_id IN",
                "SELECT doc_id, tag FROM tags WHERE doc_id IN",
                "SELECT doc_id, former_id FROM former_ids WHERE doc_id IN",
            )
        )
        query = "SELECT doc_id, file_id, source_path, num_pages FROM documents WHERE doc_id IN"
        return [
            GovernedDocument(
                str(doc_id),
                (str(file_id), *former.get(doc_id, ())),
                str(path),
                tuple(dict.fromkeys((str(path), *paths.get(doc_id, ())))),
                frozenset(tags.get(doc_id, ())),
                int(num_pages),
            )
            for doc_id, file_id, path, num_pages in self._db.rows_in(query, doc_ids)
        ]

    def items(self, kind: str, keys: Iterable[str]) -> dict[str, GovernedItem]:
        """Key → the item; or what items were read from, where the key is that."""
        wanted = list(keys)
        whole = self._db.rows_in("SELECT parent FROM item_parents WHERE kind = ? AND parent IN", wanted, first=(kind,))
        found = {str(parent): GovernedItem(str(parent)) for (parent,) in whole}
        query = "SELECT key, parent, metadata FROM items WHERE kind = ? AND key IN"
        for key, parent, metadata in self._db.rows_in(query, wanted, first=(kind,)):
            facts = json.loads(metadata) if kind in ("commit", "value") else {}
            quoted = [f"experience:{facts['experience']}"] if facts.get("experience") else []
            found[str(key)] = GovernedItem(
                str(parent), tuple(map(str, facts.get("files_changed") or ())), tuple(quoted)
            )
        return found

    def memories(self, tenant: str, ids: Iterable[str]) -> dict[str, GovernedMemory]:
        """By id, those of this tenant."""
        wanted = list(dict.fromkeys(ids))
        queries = (
            "SELECT m.id, s.source_id FROM memories m JOIN memory_sources s"
            " ON s.tenant = m.tenant AND s.memory_no = m.memory_no WHERE m.tenant = ? AND m.id IN",
            "SELECT m.id, j.id FROM memories m JOIN memories j"
            " ON j.tenant = m.tenant AND j.joined_to = m.memory_no WHERE m.tenant = ? AND m.id IN",
        )
        made_from = grouped(row for query in queries for row in self._db.rows_in(query, wanted, first=(tenant,)))
        rows = self._db.rows_in("SELECT id, tags FROM memories WHERE tenant = ? AND id IN", wanted, first=(tenant,))
        return {
            str(memory_id): GovernedMemory(frozenset(json.loads(tags)), tuple(sorted(made_from.get(memory_id, ()))))
            for memory_id, tags in rows
        }

    def sessions(self, tenant: str, names: Iterable[str]) -> set[str]:
        """Those of these conversations that a tenant has, asked or remembered."""
        wanted = list(dict.fromkeys(names))
        queries = [
            f"SELECT DISTINCT session FROM {table} WHERE tenant = ? AND session IN" for table in ("turns", "memories")
        ]
        return {str(row[0]) for query in queries for row in self._db.rows_in(query, wanted, first=(tenant,))}

    def page_places(self) -> dict[str, list[tuple[int, int]]]:
        """doc_id → (page_id, page) of its pages, in order."""
        rows = self._db.execute("SELECT page_id, doc_id, page FROM pages ORDER BY 2, 3")
        return grouped((doc_id, (page_id, page)) for page_id, doc_id, page in rows)

    def item_places(self) -> list[tuple[int, str, str, str]]:
        """(item_no, kind, parent, key) of every item."""
        return [tuple(row) for row in self._db.execute("SELECT item_no, kind, parent, key FROM items ORDER BY item_no")]

    def memory_numbers(self, tenant: str) -> dict[str, int]:
        """id → number of every memory of a tenant."""
        query = "SELECT id, memory_no FROM memories WHERE tenant = ? ORDER BY memory_no"
        return {str(row[0]): int(row[1]) for row in self._db.execute(query, (tenant,))}

    def summary_sources(self, tenant: str) -> list[tuple[str, str]]:
        """(id, id of what it was made from) of every summary of a tenant."""
        query = (
            "SELECT m.id, s.source_id FROM memory_sources s JOIN memories m USING (tenant, memory_no) WHERE tenant = ?"
        )
        return [tuple(row) for row in self._db.execute(query, (tenant,))]

    def file_refs(self) -> list[str]:
        """Of files that stand for themselves: in the graph, and those of which nothing could be read."""
        return self._db.column(
            "SELECT ref FROM nodes WHERE ref LIKE 'file:%' UNION SELECT 'file:' || path FROM failed_files"
        )

    def ingested_around(self, path: str) -> tuple[str, ...]:
        """Every place that was ingested and holds this absolute path, the nearest first: the file itself, a folder of
        documents or code, the root of a tree of code, a repository."""
        return self._db.cached(("ingested around", path), lambda: self._ingested_around(path))

    def _ingested_around(self, path: str) -> tuple[str, ...]:
        roots = {
            str(json.loads(row[0]).get("root", ""))
            for row in self._db.execute("SELECT DISTINCT metadata FROM item_parents WHERE kind = 'code'")
        }
        for row in self._db.execute("SELECT parent FROM item_parents WHERE kind = 'commit'"):
            roots |= {str(row[0]), str(row[0]).removesuffix("/.git")}
        found = [folder for folder in _folders_above(path) if folder in roots or self._holds_files(folder)]
        itself = self._db.value("SELECT 1 FROM files WHERE path = ?", (path,))
        return (path, *found) if itself else tuple(found)

    def _holds_files(self, folder: str) -> bool:
        """Whether files that lie directly in a folder were ingested."""
        inside = f"{folder.rstrip('/')}/"
        within = (inside, f"{inside[:-1]}0", len(inside) + 1, "%/%")  # "0" is what comes after "/"
        queries = (
            "SELECT 1 FROM files WHERE path >= ? AND path < ? AND substr(path, ?) NOT LIKE ? LIMIT 1",
            "SELECT 1 FROM item_parents WHERE kind = 'code' AND parent >= ? AND parent < ?"
            " AND substr(parent, ?) NOT LIKE ? LIMIT 1",
        )
        return any(self._db.value(query, within) for query in queries)


class Audit(Repository):
    """Rows of the audit: added, and replaced by a checkpoint once they are old; none is ever changed."""

    def add(self, rows: Sequence[AuditRow]) -> None:
        self._db.put_rows("audit", _AUDIT, map(astuple, rows))

    def remove_through(self, seq: int) -> None:
        self._db.execute("DELETE FROM audit WHERE seq <= ?", (seq,))

    def first(self) -> AuditRow | None:
        return self._db.record(AuditRow, f"SELECT {_AUDIT} FROM audit ORDER BY seq LIMIT 1")

    def last(self) -> AuditRow | None:
        return self._db.record(AuditRow, f"SELECT {_AUDIT} FROM audit ORDER BY seq DESC LIMIT 1")

    def at(self, seq: int) -> AuditRow | None:
        return self._db.record(AuditRow, f"SELECT {_AUDIT} FROM audit WHERE seq = ?", (seq,))

    def last_before(self, at: str) -> int:
        """The last of the rows at the beginning that are all older than this; 0 if there is none."""
        query = "SELECT MAX(seq) FROM audit WHERE seq < COALESCE((SELECT MIN(seq) FROM audit WHERE at >= ?), ?)"
        return int(self._db.value(query, (at, _ALL)) or 0)

    def between(self, first: int = 0, last: int = _ALL) -> Iterator[AuditRow]:
        """In order, some at a time: there may be more of them than one wants to hold."""
        while True:
            rows = self._db.execute(
                f"SELECT {_AUDIT} FROM audit WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?", (first, last, _BATCH)
            ).fetchall()
            for row in rows:
                yield AuditRow(*row)
            if len(rows) < _BATCH:
                return
            first = int(rows[-1][0]) + 1

    def select(
        self,
        *,
        tenant: str | None = None,
        principal: str | None = None,
        since: str = "",
        denied: bool = False,
        limit: int = 100,
    ) -> list[AuditRow]:
        """Those that fit, the newest first."""
        return self._db.records(
            AuditRow,
            f"SELECT {_AUDIT} FROM audit WHERE at >= ? AND denied >= ? AND (tenant = ? OR ? = 1)"
            " AND (principal = ? OR ? = 1) ORDER BY seq DESC LIMIT ?",
            (since, int(denied), tenant or "", int(tenant is None), principal or "", int(principal is None), limit),
        )

    def of_decision(self, decision: str) -> AuditRow | None:
        """The newest, should there be several: things may be looked at again under one decision."""
        return self._db.record(
            AuditRow, f"SELECT {_AUDIT} FROM audit WHERE decision = ? ORDER BY seq DESC LIMIT 1", (decision,)
        )
