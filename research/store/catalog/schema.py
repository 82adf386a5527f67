"""SQLite's own, `statements` aside: the catalog's tables, and the ordered steps that bring an older one up to date."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import reduce
from typing import Literal

from research.errors import NewerIndexError

Dialect = Literal["sqlite", "postgresql"]

# Each step is applied once, in order, inside one transaction; `user_version` counts the steps done.
# Steps are never edited after a release: a change is a new step at the end.
_STEPS: tuple[str, ...] = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

    CREATE TABLE documents (
        doc_id TEXT PRIMARY KEY,
        sha256 TEXT NOT NULL UNIQUE,
        filename TEXT NOT NULL,
        extension TEXT NOT NULL,
        title TEXT NOT NULL,
        num_pages INTEGER NOT NULL,
        timestamp TEXT NOT NULL,
        source_path TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        reader_version INTEGER NOT NULL,
        warnings TEXT NOT NULL DEFAULT '[]'
    );

    -- Every path a document was seen at, with the file's identity when it was last hashed.
    CREATE TABLE files (
        path TEXT PRIMARY KEY,
        doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        ctime_ns INTEGER NOT NULL,
        inode INTEGER NOT NULL
    );
    CREATE INDEX files_by_doc ON files (doc_id);

    CREATE TABLE pages (
        page_id INTEGER PRIMARY KEY,
        doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
        page INTEGER NOT NULL,
        label TEXT NOT NULL,
        section_path TEXT NOT NULL,
        parent_heading TEXT NOT NULL,
        num_headings INTEGER NOT NULL,
        num_tables INTEGER NOT NULL,
        num_pictures INTEGER NOT NULL,
        error TEXT NOT NULL,
        words INTEGER NOT NULL,  -- as full-text search counts them
        markdown BLOB NOT NULL,  -- zlib
        UNIQUE (doc_id, page)
    );

    CREATE TABLE chunks (
        chunk_id INTEGER PRIMARY KEY AUTOINCREMENT,
        page_id INTEGER NOT NULL REFERENCES pages ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        text BLOB NOT NULL,  -- zlib
        context TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        box TEXT NOT NULL,
        UNIQUE (page_id, ordinal)
    );

    -- `seq` grows with every write, so "what came after the last published generation" is one comparison.
    CREATE TABLE vectors (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        chunk_id INTEGER NOT NULL UNIQUE REFERENCES chunks ON DELETE CASCADE,
        vector BLOB NOT NULL  -- float16, little endian
    );

    -- What a document still needs; a finished document has no row.
    CREATE TABLE ledger (
        doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
        stage TEXT NOT NULL,
        PRIMARY KEY (doc_id, stage)
    ) WITHOUT ROWID;

    -- SQLite's own. Words come analysed (fulltext.analyzer), so FTS only has to split at spaces. rowid is page_id.
    CREATE VIRTUAL TABLE page_words USING fts5 (
        body, section,
        tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '.'"
    );
    -- SQLite's own.
    CREATE VIRTUAL TABLE page_vocabulary USING fts5vocab (page_words, row);

    CREATE TABLE name_words (
        word TEXT NOT NULL,
        doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
        PRIMARY KEY (word, doc_id)
    ) WITHOUT ROWID;
    CREATE INDEX name_words_by_doc ON name_words (doc_id);
    """,
    """
    ALTER TABLE pages ADD COLUMN image INTEGER NOT NULL DEFAULT 0;  -- 1: its image and thumbnail are drawn
    ALTER TABLE pages ADD COLUMN needs_ocr INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN ocr_engine TEXT NOT NULL DEFAULT '';
    """,
    """
    ALTER TABLE chunks ADD COLUMN regions TEXT NOT NULL DEFAULT '[]';  -- [start, x0, y0, x1, y1] a block

    -- What OCR read, line by line with its box, so that lines can be embedded again without reading the page again.
    CREATE TABLE page_lines (
        page_id INTEGER PRIMARY KEY REFERENCES pages ON DELETE CASCADE,
        lines BLOB NOT NULL  -- zlib of JSON
    );

    -- What the visual encoder saw on a page. The large column stands last: the others are read without it.
    CREATE TABLE page_vectors (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        page_id INTEGER NOT NULL UNIQUE REFERENCES pages ON DELETE CASCADE,
        first BLOB NOT NULL,  -- one vector for the visual collection, float16
        boxes BLOB NOT NULL,  -- four 16-bit fractions of the page a vector
        sketch BLOB NOT NULL,  -- one bit a dimension
        vectors BLOB NOT NULL  -- 16 bits a dimension, one scale a vector
    );

    -- Until now the visual collection held the means of chunk vectors, which is what `regions` does.
    INSERT INTO meta SELECT 'visual_encoder', 'regions:' || value FROM meta WHERE key = 'text_encoder';
    INSERT INTO meta SELECT 'visual_dim', value FROM meta WHERE key = 'text_dim';
    """,
    """
    -- Pages that a stage gave up, and why. Page 0 stands for the whole document.
    CREATE TABLE failed_pages (
        doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
        page INTEGER NOT NULL,
        stage TEXT NOT NULL,
        code TEXT NOT NULL,
        reason TEXT NOT NULL,
        tries INTEGER NOT NULL,
        PRIMARY KEY (doc_id, page, stage)
    ) WITHOUT ROWID;

    -- Files of which nothing could be read in the time they have; without a document there is no page to name.
    CREATE TABLE failed_files (
        path TEXT PRIMARY KEY,
        sha256 TEXT NOT NULL,
        reader_version INTEGER NOT NULL,
        code TEXT NOT NULL,
        reason TEXT NOT NULL,
        tries INTEGER NOT NULL
    ) WITHOUT ROWID;

    -- Until now nobody knew whether such a page hung, crashed or was killed: each is tried once more.
    INSERT INTO failed_pages SELECT doc_id, page, 'read', 'killed', error, 1 FROM pages
        WHERE error = 'the page was skipped';
    INSERT INTO failed_pages SELECT doc_id, page, 'ocr', 'killed', error, 1 FROM pages
        WHERE error = 'OCR failed: the PDF library crashed on it';
    """,
    """
    -- What people call a document. Written while an ingest runs, so nothing else is in it.
    CREATE TABLE tags (
        doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
        tag TEXT NOT NULL,
        PRIMARY KEY (doc_id, tag)
    ) WITHOUT ROWID;

    -- Counted with every question; without it all pages would be read, text and all.
    CREATE INDEX pages_without_words ON pages (words) WHERE words = 0;

    -- SQLite's own. The numbers of vectors were its to give, and known to it alone.
    INSERT INTO meta SELECT name || '_seq', CAST(seq AS TEXT) FROM sqlite_sequence
        WHERE name IN ('vectors', 'page_vectors');
    """,
    """
    -- What a document is called for as long as its file lives, whatever is written into it.
    ALTER TABLE documents ADD COLUMN file_id TEXT NOT NULL DEFAULT '';
    UPDATE documents SET file_id = 'file-' || doc_id;
    CREATE UNIQUE INDEX documents_by_file_id ON documents (file_id);

    -- Ids that documents had before their files changed; they go on meaning what the file holds now.
    CREATE TABLE former_ids (
        former_id TEXT PRIMARY KEY,
        doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE
    ) WITHOUT ROWID;
    CREATE INDEX former_ids_by_doc ON former_ids (doc_id);
    """,
    """
    -- What memories belong to. `version` is another whenever one is gone, `last_seq` grows with every other change: so
    -- whoever has read them knows what to read again.
    CREATE TABLE memory_tenants (
        tenant TEXT PRIMARY KEY,
        version INTEGER NOT NULL,
        last_seq INTEGER NOT NULL
    ) WITHOUT ROWID;

    -- Every table of memories begins with the tenant: a number or an id alone finds nothing. What is long stands last.
    CREATE TABLE memories (
        tenant TEXT NOT NULL REFERENCES memory_tenants ON DELETE CASCADE,
        memory_no INTEGER NOT NULL,  -- in the order of arrival
        seq INTEGER NOT NULL,  -- of its last change
        id TEXT NOT NULL,
        key TEXT NOT NULL,  -- under which a caller may tell it again; empty without one
        digest TEXT NOT NULL,  -- the same for whatever says the same
        joined_to INTEGER,  -- the memory that says the same, and as which this one is found
        superseded_by INTEGER,  -- the memory that says it anew
        type TEXT NOT NULL,
        category TEXT NOT NULL,
        importance DOUBLE PRECISION NOT NULL,
        namespace TEXT NOT NULL,
        session TEXT NOT NULL,
        persona TEXT NOT NULL,
        speaker TEXT NOT NULL,
        created_at TEXT NOT NULL,
        told_at TEXT NOT NULL,  -- last, by itself or by one that is joined to it
        used_at TEXT NOT NULL,
        expires_at TEXT NOT NULL,
        helped INTEGER NOT NULL,
        not_helped INTEGER NOT NULL,
        tags TEXT NOT NULL,  -- JSON
        metadata TEXT NOT NULL,  -- JSON
        text TEXT NOT NULL,
        PRIMARY KEY (tenant, memory_no)
    );
    CREATE UNIQUE INDEX memories_by_id ON memories (tenant, id);
    CREATE UNIQUE INDEX memories_by_key ON memories (tenant, key) WHERE key <> '';
    CREATE INDEX memories_by_seq ON memories (tenant, seq);
    -- With the number at their end, they serve what is ordered by it: else all of a tenant's would be read in order.
    CREATE INDEX memories_by_digest ON memories (tenant, digest, memory_no);
    CREATE INDEX memories_by_session ON memories (tenant, session, memory_no);
    CREATE INDEX memories_by_expiry ON memories (tenant, expires_at) WHERE expires_at <> '';
    CREATE INDEX memories_by_joined ON memories (tenant, joined_to, memory_no) WHERE joined_to IS NOT NULL;
    CREATE INDEX memories_by_newer ON memories (tenant, superseded_by, memory_no) WHERE superseded_by IS NOT NULL;

    -- The words of a memory as full-text search has them, in order; one that is joined to another has none.
    CREATE TABLE memory_words (
        tenant TEXT NOT NULL,
        memory_no INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (tenant, memory_no),
        FOREIGN KEY (tenant, memory_no) REFERENCES memories ON DELETE CASCADE
    ) WITHOUT ROWID;

    CREATE TABLE memory_vectors (
        tenant TEXT NOT NULL,
        memory_no INTEGER NOT NULL,
        encoder TEXT NOT NULL,
        vector BLOB NOT NULL,  -- float16, little endian
        PRIMARY KEY (tenant, memory_no),
        FOREIGN KEY (tenant, memory_no) REFERENCES memories ON DELETE CASCADE
    );

    -- What has one value at a time: where somebody lives, when a meeting is.
    CREATE TABLE memory_facts (
        tenant TEXT NOT NULL,
        fact TEXT NOT NULL,
        memory_no INTEGER NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (tenant, fact, memory_no),
        FOREIGN KEY (tenant, memory_no) REFERENCES memories ON DELETE CASCADE
    ) WITHOUT ROWID;
    CREATE INDEX memory_facts_by_memory ON memory_facts (tenant, memory_no);

    -- What a summary was made from, by id: forgotten with it.
    CREATE TABLE memory_sources (
        tenant TEXT NOT NULL,
        source_id TEXT NOT NULL,
        memory_no INTEGER NOT NULL,
        PRIMARY KEY (tenant, source_id, memory_no),
        FOREIGN KEY (tenant, memory_no) REFERENCES memories ON DELETE CASCADE
    ) WITHOUT ROWID;
    CREATE INDEX memory_sources_by_memory ON memory_sources (tenant, memory_no);

    CREATE TABLE memory_feedback (
        tenant TEXT NOT NULL,
        memory_no INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        helped INTEGER NOT NULL,
        score DOUBLE PRECISION NOT NULL,  -- that it was recalled with
        given_at TEXT NOT NULL,
        PRIMARY KEY (tenant, memory_no, seq),
        FOREIGN KEY (tenant, memory_no) REFERENCES memories ON DELETE CASCADE
    ) WITHOUT ROWID;
    """,
    """
    -- What was asked in a session, in order. What is long stands last.
    CREATE TABLE turns (
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        turn_no INTEGER NOT NULL,
        asked_at TEXT NOT NULL,
        model TEXT NOT NULL,  -- that wrote the answer; empty without one
        question TEXT NOT NULL,
        searched TEXT NOT NULL,
        answer TEXT NOT NULL,
        PRIMARY KEY (tenant, session, turn_no)
    );

    -- The pages that answered. A document takes its quotes with it when it goes, and leaves its place to what its file
    -- holds next: `session_turns.leave_sessions` sees to it, for to read a document again also deletes its row.
    CREATE TABLE turn_sources (
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        turn_no INTEGER NOT NULL,
        citation INTEGER NOT NULL,
        doc_id TEXT NOT NULL,
        page INTEGER NOT NULL,
        score DOUBLE PRECISION NOT NULL,
        quotes TEXT NOT NULL,  -- JSON
        PRIMARY KEY (tenant, session, turn_no, citation),
        FOREIGN KEY (tenant, session, turn_no) REFERENCES turns ON DELETE CASCADE
    );
    CREATE INDEX turn_sources_by_doc ON turn_sources (doc_id);
    """,
    """
    -- What is neither a document nor a memory: pieces of code, commits, experiences, values. A parent is what they were
    -- read from (a file, a repository) or belong to; `stamp` tells whether it is still the one that was read.
    CREATE TABLE item_parents (
        kind TEXT NOT NULL,
        parent TEXT NOT NULL,
        stamp TEXT NOT NULL,
        read_at TEXT NOT NULL,
        metadata TEXT NOT NULL,  -- JSON
        PRIMARY KEY (kind, parent)
    ) WITHOUT ROWID;

    -- What is long stands last.
    CREATE TABLE items (
        item_no INTEGER PRIMARY KEY,  -- the `seq` it began with, so it is never given twice
        kind TEXT NOT NULL,
        parent TEXT NOT NULL,
        key TEXT NOT NULL,  -- with the kind its lasting name
        seq INTEGER NOT NULL,  -- of its last change
        created_at TEXT NOT NULL,
        length INTEGER NOT NULL,  -- words, as full-text search counts them
        title_length INTEGER NOT NULL,  -- different ones of its title
        prior DOUBLE PRECISION NOT NULL,  -- is added to its score, whatever is asked
        title TEXT NOT NULL,
        metadata TEXT NOT NULL,  -- JSON
        words TEXT NOT NULL,  -- it is found by, besides its own
        embedded TEXT NOT NULL,  -- what encoders see, parts divided by form feeds; empty: title and text
        text TEXT NOT NULL,
        FOREIGN KEY (kind, parent) REFERENCES item_parents ON DELETE CASCADE
    );
    CREATE UNIQUE INDEX items_by_key ON items (kind, key);
    CREATE INDEX items_by_parent ON items (kind, parent);
    CREATE INDEX items_by_kind ON items (kind, seq, length, title_length, prior);  -- all that is read of every item
    CREATE UNIQUE INDEX items_by_seq ON items (seq);

    CREATE TABLE item_vectors (
        item_no INTEGER NOT NULL REFERENCES items ON DELETE CASCADE,
        part INTEGER NOT NULL,
        encoder TEXT NOT NULL,
        vector BLOB NOT NULL,  -- float16, little endian
        PRIMARY KEY (item_no, part)
    );

    -- SQLite's own. Each word has the sign of its kind before it (fulltext.item_words), so that rare words are counted
    -- within a kind. rowid is item_no.
    CREATE VIRTUAL TABLE item_words USING fts5 (
        title, body, words,
        tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '.'"
    );
    -- SQLite's own.
    CREATE VIRTUAL TABLE item_vocabulary USING fts5vocab (item_words, row);
    """,
    """
    -- What a thing is to a policy: classification, status, module, project. A target is `document:<file id>`, a ref
    -- (pages by the file id, so that they outlast a change of the file), `path:<pattern>` or `tag:<tag>`. The tenant is
    -- whose memory or session it is; of everything else it is empty.
    CREATE TABLE labels (
        tenant TEXT NOT NULL,
        target TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        origin TEXT NOT NULL,  -- user, or mark: what a page says of itself, which a person has confirmed
        given_at TEXT NOT NULL,
        PRIMARY KEY (tenant, target, name)
    ) WITHOUT ROWID;

    -- Who saw what, by which decision. Each entry's hash is keyed, and covers all of it and the hash before it.
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        at TEXT NOT NULL,
        kind TEXT NOT NULL,  -- access, or a mark of the chain's own: checkpoint, restart, accepted
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        decision TEXT NOT NULL,
        denied INTEGER NOT NULL,  -- of the things that it decided about
        hash TEXT NOT NULL,
        entry TEXT NOT NULL  -- JSON
    );
    CREATE INDEX audit_by_decision ON audit (decision);
    """,
    """
    -- The graph. Made from the other tables by `research.graph`, and made anew where it is missing. A node goes with
    -- what it stands for, and takes its edges along; files, sessions and the like stand for themselves.
    CREATE TABLE nodes (
        node_no INTEGER PRIMARY KEY,
        ref TEXT NOT NULL,
        name TEXT NOT NULL,  -- a section's heading; else empty
        doc_id TEXT REFERENCES documents ON DELETE CASCADE,
        item_no INTEGER REFERENCES items ON DELETE CASCADE,
        tenant TEXT REFERENCES memory_tenants ON DELETE CASCADE,  -- whose memory or session it is
        memory_no INTEGER,
        FOREIGN KEY (tenant, memory_no) REFERENCES memories ON DELETE CASCADE
    );
    CREATE UNIQUE INDEX nodes_by_ref ON nodes (ref, COALESCE(tenant, ''));
    CREATE INDEX nodes_by_doc ON nodes (doc_id) WHERE doc_id IS NOT NULL;
    CREATE INDEX nodes_by_item ON nodes (item_no) WHERE item_no IS NOT NULL;
    CREATE INDEX nodes_by_memory ON nodes (tenant, memory_no) WHERE tenant IS NOT NULL;
    CREATE INDEX nodes_by_themselves ON nodes (node_no)
        WHERE doc_id IS NULL AND item_no IS NULL AND memory_no IS NULL;

    -- Kinds are numbers (`edges.EDGE_KINDS`): with a node, the indexes give the weightiest first.
    CREATE TABLE edges (
        edge_no INTEGER PRIMARY KEY,
        source INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
        kind INTEGER NOT NULL,
        target INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
        name INTEGER NOT NULL  -- that was mentioned: its holder, a table of the document; 0: known without
    );
    CREATE UNIQUE INDEX edges_by_source ON edges (source, kind, target, name, edge_no);
    CREATE INDEX edges_by_target ON edges (target, kind, source, edge_no);

    -- What nodes are called, and which names nodes mention: what comes later is found by those before it. A name is the
    -- digest of one.
    CREATE TABLE node_names (
        name INTEGER NOT NULL,
        node_no INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
        PRIMARY KEY (name, node_no)
    ) WITHOUT ROWID;
    CREATE INDEX node_names_by_node ON node_names (node_no);
    CREATE TABLE mentions (
        name INTEGER NOT NULL,
        node_no INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
        kind INTEGER NOT NULL,
        PRIMARY KEY (name, node_no, kind)
    ) WITHOUT ROWID;
    CREATE INDEX mentions_by_node ON mentions (node_no);

    -- How far the graph has come, and by which rules.
    CREATE TABLE graphed_documents (
        doc_id TEXT PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
        rules INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE graphed_items (rules INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
    CREATE TABLE graphed_tenants (
        tenant TEXT PRIMARY KEY REFERENCES memory_tenants ON DELETE CASCADE,
        seq INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    -- Packages: what was asked, and what was built of it. What is long stands last.
    CREATE TABLE package_requests (
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        request_id TEXT NOT NULL,
        asked_at TEXT NOT NULL,
        request TEXT NOT NULL,  -- JSON
        PRIMARY KEY (tenant, principal, request_id)
    );
    CREATE TABLE packages (
        package_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        request_id TEXT NOT NULL,
        built_at TEXT NOT NULL,
        expires_at TEXT NOT NULL,
        policy TEXT NOT NULL,
        revision TEXT NOT NULL,  -- of the index's content; empty: something that it held is gone since
        record TEXT NOT NULL,  -- JSON, without content
        FOREIGN KEY (tenant, principal, request_id) REFERENCES package_requests ON DELETE CASCADE
    );
    CREATE INDEX packages_by_request ON packages (tenant, principal, request_id);
    CREATE INDEX packages_by_time ON packages (built_at);
    CREATE INDEX packages_left ON packages (revision) WHERE revision = '';
    CREATE TABLE package_cache (
        package_id TEXT PRIMARY KEY REFERENCES packages ON DELETE CASCADE,
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        policy TEXT NOT NULL,
        revision TEXT NOT NULL,
        put_at TEXT NOT NULL,
        expires_at TEXT NOT NULL,
        digest TEXT NOT NULL,  -- SHA-256 of the package
        package BLOB NOT NULL  -- JSON; empty where another server keeps it
    );
    -- What a package holds text of: what is removed takes it along. `owner` is what goes as a whole, a document or a
    -- file; `useful` is 1 or -1 where somebody said so.
    CREATE TABLE package_sources (
        package_id TEXT NOT NULL REFERENCES packages ON DELETE CASCADE,
        ref TEXT NOT NULL,
        owner TEXT NOT NULL,
        tenant TEXT NOT NULL,
        useful INTEGER NOT NULL,
        PRIMARY KEY (package_id, ref)
    );
    CREATE INDEX package_sources_by_ref ON package_sources (tenant, ref, useful);
    CREATE INDEX package_sources_by_owner ON package_sources (owner);
    -- The neighbourhood that a package was built with.
    CREATE TABLE projections (
        projection_id TEXT PRIMARY KEY,
        made_at TEXT NOT NULL,
        projection TEXT NOT NULL  -- JSON
    );
    """,
    """
    -- Its sentences, rows and so on, with the rules that found them (research/units.py).
    ALTER TABLE pages ADD COLUMN units BLOB NOT NULL DEFAULT x'';
    """,
    """
    -- Rules guessed from them which memory another supersedes: what they have marked is marked no more.
    DROP TABLE memory_facts;
    UPDATE memories SET superseded_by = NULL;
    """,
)

VERSION = len(_STEPS)


def migrate(connection: sqlite3.Connection, *, version: int = VERSION) -> None:
    """Bring the catalog to `VERSION`. Raises if it was written by a newer ctx."""
    while (number := version_of(connection) + 1) <= version:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if version_of(connection) < number:  # several processes may meet an old catalog at once
                for statement in _statements(_STEPS[number - 1]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


# How PostgreSQL writes what these tables need, in the order of replacing.
_POSTGRESQL = (
    ("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
    ("INTEGER", "BIGINT"),
    ("BLOB", "BYTEA"),
    ("DEFAULT x''", "DEFAULT ''"),
    ("WITHOUT ROWID", ""),
)


def statements(dialect: Dialect) -> Iterator[str]:
    """All that makes an empty database a catalog. Full text is each dialect's own affair."""
    for statement in (statement for step in _STEPS for statement in _statements(step)):
        if dialect == "sqlite":
            yield statement
        elif "-- SQLite's own" not in statement:
            yield reduce(lambda text, words: text.replace(*words), _POSTGRESQL, statement)


def _statements(script: str) -> Iterator[str]:
    """One by one, because a script run as a whole ends the transaction it stands in."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def version_of(connection: sqlite3.Connection) -> int:
    """The catalog's schema version; 0 for an empty file."""
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found > VERSION:
        raise NewerIndexError.of("this index", found, VERSION)
    return found
