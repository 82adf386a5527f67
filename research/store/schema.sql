-- The catalog: every table, in an order in which parents stand before their children. Its number is
-- `catalog.SCHEMA_VERSION`. A column is one line, and what is long stands last in its table: the others are read
-- without it. What SQL cannot say of a value (times, names on one line, packed texts, vectors) is in `checks.py`.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;

CREATE TABLE documents (
    doc_id TEXT NOT NULL PRIMARY KEY CHECK (doc_id = substr(sha256, 1, 16)),
    sha256 TEXT NOT NULL UNIQUE CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
    filename TEXT NOT NULL CHECK (filename NOT IN ('', '.', '..') AND filename NOT GLOB '*/*'),
    extension TEXT NOT NULL CHECK (extension NOT IN ('.', '..') AND extension NOT GLOB '*/*'),
    title TEXT NOT NULL,
    num_pages INTEGER NOT NULL CHECK (num_pages BETWEEN 1 AND 999999999),
    timestamp TEXT NOT NULL,
    source_path TEXT NOT NULL CHECK (source_path <> ''),
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    reader_version INTEGER NOT NULL CHECK (reader_version >= 0),
    warnings TEXT NOT NULL DEFAULT '[]' CHECK (warnings GLOB '[[]*]'),
    -- What a document is called for as long as its file lives, whatever is written into it.
    file_id TEXT NOT NULL UNIQUE CHECK (file_id GLOB 'file-????????????????*' AND substr(file_id, 6) NOT GLOB '*[^-0-9a-f]*')
) STRICT;

-- Ids that documents had before their files changed; they go on meaning what the file holds now.
CREATE TABLE former_ids (
    former_id TEXT NOT NULL PRIMARY KEY CHECK (former_id GLOB '????????????????*' AND replace(former_id, 'file-', '') NOT GLOB '*[^-0-9a-f]*'),
    doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE
) WITHOUT ROWID, STRICT;
CREATE INDEX former_ids_by_doc ON former_ids (doc_id);

-- Every path a document was seen at, with the file's identity when it was last hashed.
CREATE TABLE files (
    path TEXT NOT NULL PRIMARY KEY CHECK (path <> ''),
    doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
    size INTEGER NOT NULL CHECK (size >= 0),
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL
) STRICT;
CREATE INDEX files_by_doc ON files (doc_id);

CREATE TABLE pages (
    page_id INTEGER PRIMARY KEY CHECK (page_id > 0),
    doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
    page INTEGER NOT NULL CHECK (page BETWEEN 1 AND 999999999),  -- nine digits, as in an image's name
    label TEXT NOT NULL,
    section_path TEXT NOT NULL,
    parent_heading TEXT NOT NULL,
    num_headings INTEGER NOT NULL CHECK (num_headings >= 0),
    num_tables INTEGER NOT NULL CHECK (num_tables >= 0),
    num_pictures INTEGER NOT NULL CHECK (num_pictures >= 0),
    error TEXT NOT NULL,
    words INTEGER NOT NULL CHECK (words >= 0),  -- as full-text search counts them
    image INTEGER NOT NULL DEFAULT 0 CHECK (image IN (0, 1)),  -- 1: its image and thumbnail are drawn
    needs_ocr INTEGER NOT NULL DEFAULT 0 CHECK (needs_ocr IN (0, 1)),
    ocr_engine TEXT NOT NULL DEFAULT '',
    markdown BLOB NOT NULL,  -- zlib
    units BLOB NOT NULL DEFAULT x'',  -- its sentences, rows and so on, with the rules that found them (research/units.py)
    UNIQUE (doc_id, page)
) STRICT;
-- Counted with every question; without it all pages would be read, text and all.
CREATE INDEX pages_without_words ON pages (words) WHERE words = 0;

-- What OCR read, line by line with its box, so that lines can be embedded again without reading the page again.
CREATE TABLE page_lines (
    page_id INTEGER PRIMARY KEY REFERENCES pages ON DELETE CASCADE,
    lines BLOB NOT NULL  -- zlib of JSON
) STRICT;

CREATE TABLE chunks (
    chunk_id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (chunk_id > 0),
    page_id INTEGER NOT NULL REFERENCES pages ON DELETE CASCADE,
    ordinal INTEGER NOT NULL CHECK (ordinal BETWEEN 0 AND 1000000),
    context TEXT NOT NULL,
    tokens INTEGER NOT NULL CHECK (tokens BETWEEN 0 AND 1000000),
    box TEXT NOT NULL CHECK (box GLOB '[[]*]'),
    regions TEXT NOT NULL DEFAULT '[]' CHECK (regions GLOB '[[]*]'),  -- [start, x0, y0, x1, y1] a block
    text BLOB NOT NULL,  -- zlib
    UNIQUE (page_id, ordinal)
) STRICT;

-- `seq` grows with every write, so "what came after the last published generation" is one comparison.
CREATE TABLE vectors (
    seq INTEGER PRIMARY KEY CHECK (seq > 0),
    chunk_id INTEGER NOT NULL UNIQUE REFERENCES chunks ON DELETE CASCADE,
    vector BLOB NOT NULL  -- float16, little endian
) STRICT;

-- What the visual encoder saw on a page.
CREATE TABLE page_vectors (
    seq INTEGER PRIMARY KEY CHECK (seq > 0),
    page_id INTEGER NOT NULL UNIQUE REFERENCES pages ON DELETE CASCADE,
    first BLOB NOT NULL,  -- one vector for the visual collection, float16
    boxes BLOB NOT NULL,  -- four 16-bit fractions of the page a vector
    sketch BLOB NOT NULL,  -- one bit a dimension
    vectors BLOB NOT NULL  -- 16 bits a dimension, one scale a vector
) STRICT;

-- What a document still needs; a finished document has no row.
CREATE TABLE ledger (
    doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
    stage TEXT NOT NULL CHECK (stage IN ('read', 'vectors', 'images', 'ocr', 'visual')),
    PRIMARY KEY (doc_id, stage)
) WITHOUT ROWID, STRICT;

-- Pages that a stage gave up, and why. Page 0 stands for the whole document.
CREATE TABLE failed_pages (
    doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
    page INTEGER NOT NULL CHECK (page BETWEEN 0 AND 999999999),
    stage TEXT NOT NULL CHECK (stage IN ('read', 'vectors', 'images', 'ocr', 'visual')),
    code TEXT NOT NULL CHECK (code <> '' AND code NOT GLOB '*[^a-z_]*'),
    reason TEXT NOT NULL,
    tries INTEGER NOT NULL CHECK (tries >= 0),
    PRIMARY KEY (doc_id, page, stage)
) WITHOUT ROWID, STRICT;

-- Files of which nothing could be read in the time they have; without a document there is no page to name.
CREATE TABLE failed_files (
    path TEXT NOT NULL PRIMARY KEY CHECK (path <> ''),
    sha256 TEXT NOT NULL CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
    reader_version INTEGER NOT NULL CHECK (reader_version >= 0),
    code TEXT NOT NULL CHECK (code <> '' AND code NOT GLOB '*[^a-z_]*'),
    reason TEXT NOT NULL,
    tries INTEGER NOT NULL CHECK (tries >= 0)
) WITHOUT ROWID, STRICT;

-- SQLite's own. Words come analysed (analyzer.py), so FTS only has to split at spaces. rowid is page_id.
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
) WITHOUT ROWID, STRICT;
CREATE INDEX name_words_by_doc ON name_words (doc_id);

-- What people call a document. Written while an ingest runs, so nothing else is in it.
CREATE TABLE tags (
    doc_id TEXT NOT NULL REFERENCES documents ON DELETE CASCADE,
    tag TEXT NOT NULL CHECK (length(tag) BETWEEN 1 AND 100),
    PRIMARY KEY (doc_id, tag)
) WITHOUT ROWID, STRICT;

-- What memories belong to. `version` is another whenever one is gone, `last_seq` grows with every other change: so
-- whoever has read them knows what to read again.
CREATE TABLE memory_tenants (
    tenant TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL CHECK (version >= 0),
    last_seq INTEGER NOT NULL CHECK (last_seq >= 0)
) WITHOUT ROWID, STRICT;

-- Every table of memories begins with the tenant: a number or an id alone finds nothing.
CREATE TABLE memories (
    tenant TEXT NOT NULL REFERENCES memory_tenants ON DELETE CASCADE,
    memory_no INTEGER NOT NULL CHECK (memory_no > 0),  -- in the order of arrival
    seq INTEGER NOT NULL CHECK (seq > 0),  -- of its last change
    id TEXT NOT NULL,
    key TEXT NOT NULL,  -- under which a caller may tell it again; empty without one
    digest TEXT NOT NULL CHECK (length(digest) = 40 AND digest NOT GLOB '*[^0-9a-f]*'),  -- of what it says
    joined_to INTEGER CHECK (joined_to > 0 AND joined_to <> memory_no),  -- the memory that says the same, and as which this one is found
    superseded_by INTEGER CHECK (superseded_by > 0 AND superseded_by <> memory_no),  -- the memory that says it anew
    type TEXT NOT NULL,
    category TEXT NOT NULL,
    importance REAL NOT NULL CHECK (importance BETWEEN 0 AND 1),
    namespace TEXT NOT NULL,
    session TEXT NOT NULL,
    persona TEXT NOT NULL,
    speaker TEXT NOT NULL,
    created_at TEXT NOT NULL,
    told_at TEXT NOT NULL,  -- last, by itself or by one that is joined to it
    used_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    helped INTEGER NOT NULL CHECK (helped >= 0),
    not_helped INTEGER NOT NULL CHECK (not_helped >= 0),
    tags TEXT NOT NULL CHECK (tags GLOB '[[]*]'),
    metadata TEXT NOT NULL CHECK (metadata GLOB '{*}'),
    text TEXT NOT NULL,
    PRIMARY KEY (tenant, memory_no)
) STRICT;
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
) WITHOUT ROWID, STRICT;

CREATE TABLE memory_vectors (
    tenant TEXT NOT NULL,
    memory_no INTEGER NOT NULL,
    encoder TEXT NOT NULL CHECK (encoder <> ''),
    vector BLOB NOT NULL,  -- float16, little endian
    PRIMARY KEY (tenant, memory_no),
    FOREIGN KEY (tenant, memory_no) REFERENCES memories ON DELETE CASCADE
) STRICT;

-- What a summary was made from, by id: forgotten with it.
CREATE TABLE memory_sources (
    tenant TEXT NOT NULL,
    source_id TEXT NOT NULL,
    memory_no INTEGER NOT NULL,
    PRIMARY KEY (tenant, source_id, memory_no),
    FOREIGN KEY (tenant, memory_no) REFERENCES memories ON DELETE CASCADE
) WITHOUT ROWID, STRICT;
CREATE INDEX memory_sources_by_memory ON memory_sources (tenant, memory_no);

CREATE TABLE memory_feedback (
    tenant TEXT NOT NULL,
    memory_no INTEGER NOT NULL,
    seq INTEGER NOT NULL CHECK (seq > 0),
    helped INTEGER NOT NULL CHECK (helped IN (0, 1)),
    score REAL NOT NULL CHECK (score BETWEEN 0 AND 1),  -- that it was recalled with
    given_at TEXT NOT NULL,
    PRIMARY KEY (tenant, memory_no, seq),
    FOREIGN KEY (tenant, memory_no) REFERENCES memories ON DELETE CASCADE
) STRICT;

-- What was asked in a session, in order.
CREATE TABLE turns (
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    turn_no INTEGER NOT NULL CHECK (turn_no > 0),
    asked_at TEXT NOT NULL,
    model TEXT NOT NULL,  -- that wrote the answer; empty without one
    question TEXT NOT NULL,
    searched TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (tenant, session, turn_no)
) STRICT;

-- The pages that answered. A document takes its quotes with it when it goes, and leaves its place to what its file
-- holds next: `Sessions.leave` sees to it, for to read a document again also deletes its row.
CREATE TABLE turn_sources (
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    turn_no INTEGER NOT NULL,
    citation INTEGER NOT NULL CHECK (citation > 0),
    doc_id TEXT NOT NULL CHECK (length(doc_id) = 16 AND doc_id NOT GLOB '*[^0-9a-f]*'),
    page INTEGER NOT NULL CHECK (page BETWEEN 1 AND 999999999),
    score REAL NOT NULL CHECK (score BETWEEN 0 AND 1),
    quotes TEXT NOT NULL CHECK (quotes GLOB '[[]*]'),
    PRIMARY KEY (tenant, session, turn_no, citation),
    FOREIGN KEY (tenant, session, turn_no) REFERENCES turns ON DELETE CASCADE
) STRICT;
CREATE INDEX turn_sources_by_doc ON turn_sources (doc_id);

-- What is neither a document nor a memory: pieces of code, commits, experiences, values. A parent is what they were
-- read from (a file, a repository) or belong to; `stamp` tells whether it is still the one that was read.
CREATE TABLE item_parents (
    kind TEXT NOT NULL CHECK (kind IN ('code', 'commit', 'experience', 'value')),
    parent TEXT NOT NULL CHECK (length(parent) BETWEEN 1 AND 8192),
    stamp TEXT NOT NULL,
    read_at TEXT NOT NULL,
    metadata TEXT NOT NULL CHECK (metadata GLOB '{*}'),
    PRIMARY KEY (kind, parent)
) WITHOUT ROWID, STRICT;

CREATE TABLE items (
    item_no INTEGER PRIMARY KEY CHECK (item_no BETWEEN 1 AND seq),  -- the `seq` it began with, so it is never given twice
    kind TEXT NOT NULL,
    parent TEXT NOT NULL,
    key TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 8192),  -- with the kind its lasting name
    seq INTEGER NOT NULL,  -- of its last change
    created_at TEXT NOT NULL,
    length INTEGER NOT NULL CHECK (length >= 0),  -- words, as full-text search counts them
    title_length INTEGER NOT NULL CHECK (title_length >= 0),  -- different ones of its title
    prior REAL NOT NULL CHECK (prior BETWEEN -1 AND 1),  -- is added to its score, whatever is asked
    title TEXT NOT NULL,
    metadata TEXT NOT NULL CHECK (metadata GLOB '{*}'),
    words TEXT NOT NULL,  -- it is found by, besides its own
    embedded TEXT NOT NULL,  -- what encoders see, parts divided by form feeds; empty: title and text
    text TEXT NOT NULL,
    FOREIGN KEY (kind, parent) REFERENCES item_parents ON DELETE CASCADE
) STRICT;
CREATE UNIQUE INDEX items_by_key ON items (kind, key);
CREATE INDEX items_by_parent ON items (kind, parent);
CREATE INDEX items_by_kind ON items (kind, seq, length, title_length, prior);  -- all that is read of every item
CREATE UNIQUE INDEX items_by_seq ON items (seq);

CREATE TABLE item_vectors (
    item_no INTEGER NOT NULL REFERENCES items ON DELETE CASCADE,
    part INTEGER NOT NULL CHECK (part >= 0),
    encoder TEXT NOT NULL CHECK (encoder <> ''),
    vector BLOB NOT NULL,  -- float16, little endian
    PRIMARY KEY (item_no, part)
) STRICT;

-- SQLite's own. Each word has the sign of its kind before it (words.py), so that rare words are counted
-- within a kind. rowid is item_no.
CREATE VIRTUAL TABLE item_words USING fts5 (
    title, body, words,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co' tokenchars '.'"
);
-- SQLite's own.
CREATE VIRTUAL TABLE item_vocabulary USING fts5vocab (item_words, row);

-- What a thing is to a policy. A target is `document:<file id>`, a ref (pages by the file id, so that they outlast a
-- change of the file), `path:<pattern>` or `tag:<tag>`. The tenant is whose memory or session it is; of everything else
-- it is empty.
CREATE TABLE labels (
    tenant TEXT NOT NULL,
    target TEXT NOT NULL CHECK (target GLOB '*:*' AND length(target) <= 8192),
    name TEXT NOT NULL CHECK (name IN ('classification', 'status', 'module', 'project')),
    value TEXT NOT NULL CHECK (length(value) BETWEEN 1 AND 100 AND (name <> 'classification' OR value IN ('Public', 'Internal', 'Confidential', 'Restricted'))),
    origin TEXT NOT NULL CHECK (origin IN ('user', 'mark')),  -- mark: what a page says of itself, which a person has confirmed
    given_at TEXT NOT NULL,
    PRIMARY KEY (tenant, target, name)
) WITHOUT ROWID, STRICT;

-- Who saw what, by which decision. Each entry's hash covers all of it and the hash before it.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY CHECK (seq > 0),
    at TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('access', 'checkpoint', 'restart', 'accepted')),  -- all but access are marks of the chain's own
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    decision TEXT NOT NULL,
    denied INTEGER NOT NULL CHECK (denied >= 0),  -- of the things that it decided about
    hash TEXT NOT NULL CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*'),
    entry TEXT NOT NULL CHECK (entry GLOB '{*}')
) STRICT;
CREATE INDEX audit_by_decision ON audit (decision);

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
) STRICT;
CREATE UNIQUE INDEX nodes_by_ref ON nodes (ref, COALESCE(tenant, ''));
CREATE INDEX nodes_by_doc ON nodes (doc_id) WHERE doc_id IS NOT NULL;
CREATE INDEX nodes_by_item ON nodes (item_no) WHERE item_no IS NOT NULL;
CREATE INDEX nodes_by_memory ON nodes (tenant, memory_no) WHERE tenant IS NOT NULL;
CREATE INDEX nodes_by_themselves ON nodes (node_no)
    WHERE doc_id IS NULL AND item_no IS NULL AND memory_no IS NULL;

-- Kinds are numbers (`graph.EDGE_KINDS`): with a node, the indexes give the weightiest first.
CREATE TABLE edges (
    edge_no INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    kind INTEGER NOT NULL,
    target INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    name INTEGER NOT NULL  -- that was mentioned: its holder, a table of the document; 0: known without
) STRICT;
CREATE UNIQUE INDEX edges_by_source ON edges (source, kind, target, name, edge_no);
CREATE INDEX edges_by_target ON edges (target, kind, source, edge_no);

-- What nodes are called, and which names nodes mention: what comes later is found by those before it. A name is the
-- digest of one.
CREATE TABLE node_names (
    name INTEGER NOT NULL,
    node_no INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    PRIMARY KEY (name, node_no)
) WITHOUT ROWID, STRICT;
CREATE INDEX node_names_by_node ON node_names (node_no);
CREATE TABLE mentions (
    name INTEGER NOT NULL,
    node_no INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    kind INTEGER NOT NULL,
    PRIMARY KEY (name, node_no, kind)
) WITHOUT ROWID, STRICT;
CREATE INDEX mentions_by_node ON mentions (node_no);

-- How far the graph has come, and by which rules.
CREATE TABLE graphed_documents (
    doc_id TEXT NOT NULL PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    rules INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE TABLE graphed_items (rules INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
CREATE TABLE graphed_tenants (
    tenant TEXT NOT NULL PRIMARY KEY REFERENCES memory_tenants ON DELETE CASCADE,
    seq INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

-- Packages: what was asked, and what was built of it.
CREATE TABLE package_requests (
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    request_id TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    request TEXT NOT NULL CHECK (request GLOB '{*}'),
    PRIMARY KEY (tenant, principal, request_id)
) STRICT;
CREATE TABLE packages (
    package_id TEXT NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    request_id TEXT NOT NULL,
    built_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    policy TEXT NOT NULL,
    revision TEXT NOT NULL,  -- of the index's content; empty: something that it held is gone since
    record TEXT NOT NULL CHECK (record GLOB '{*}'),  -- without content
    FOREIGN KEY (tenant, principal, request_id) REFERENCES package_requests ON DELETE CASCADE
) STRICT;
CREATE INDEX packages_by_request ON packages (tenant, principal, request_id);
CREATE INDEX packages_by_time ON packages (built_at);
CREATE INDEX packages_left ON packages (revision) WHERE revision = '';
CREATE TABLE package_cache (
    package_id TEXT NOT NULL PRIMARY KEY REFERENCES packages ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    principal TEXT NOT NULL,
    policy TEXT NOT NULL,
    revision TEXT NOT NULL,
    put_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    digest TEXT NOT NULL CHECK (length(digest) = 64 AND digest NOT GLOB '*[^0-9a-f]*'),  -- SHA-256 of the package
    package BLOB NOT NULL  -- JSON; empty where another server keeps it
) STRICT;
-- What a package holds text of: what is removed takes it along. `owner` is what goes as a whole, a document or a
-- file; `useful` is 1 or -1 where somebody said so.
CREATE TABLE package_sources (
    package_id TEXT NOT NULL REFERENCES packages ON DELETE CASCADE,
    ref TEXT NOT NULL CHECK (ref GLOB '*:*' AND length(ref) <= 8192),
    owner TEXT NOT NULL CHECK (owner GLOB '*:*' AND length(owner) <= 8192),
    tenant TEXT NOT NULL,
    useful INTEGER NOT NULL CHECK (useful IN (-1, 0, 1)),
    PRIMARY KEY (package_id, ref)
) STRICT;
CREATE INDEX package_sources_by_ref ON package_sources (tenant, ref, useful);
CREATE INDEX package_sources_by_owner ON package_sources (owner);
-- The neighbourhood that a package was built with.
CREATE TABLE projections (
    projection_id TEXT NOT NULL PRIMARY KEY,
    made_at TEXT NOT NULL,
    projection TEXT NOT NULL CHECK (projection GLOB '{*}')
) STRICT;
