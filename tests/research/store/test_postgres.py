"""Every statement that no file claims as SQLite's own runs on PostgreSQL too, and says the same there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experience_history import experience
from graph_history import graph
from index_making import DIM, JPEG, WEBP, chunks_of, stamp
from item_history import code
from label_history import label
from memory_making import tell, told
from numpy.typing import NDArray
from postgres import PostgresCatalog, running_server

from research.errors import NothingFoundError
from research.memories import AskedTurn, CitedPage, Within
from research.records import PAGE_GIVEN_UP, DocumentInfo, FailedPage, Line, Page
from research.store.catalog import (
    chunk_vectors,
    document_names,
    document_writes,
    documents,
    governance,
    labels,
    ledger,
    memories,
    memory_writes,
    packages,
    page_vectors,
    pages,
    session_turns,
)
from research.store.catalog.catalog import Catalog
from research.store.catalog.chunk_vectors import revision_of
from research.store.catalog.documents import FileStamp, Scope
from research.store.catalog.governance import AuditRow
from research.store.catalog.labels import content_revision
from research.store.catalog.ledger import CRASHED, KILLED, TIMEOUT, FailedFile
from research.store.catalog.packages import CachedRow
from research.store.catalog.page_vectors import PageBlobs
from research.store.files import images
from research.store.files.paths import IndexPaths
from research.store.fulltext.lookups import numbered_pages
from research.store.upkeep import integrity
from research.store.vectors import generations, writer
from research.store.vectors.index import TEXT, VISUAL, VectorIndex, exact_scan

ROOT = Path(__file__).parents[3]
STATEMENT = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s")
# Its statements are for Chroma's database, which is SQLite's.
CHROMAS = {
    "research/store/vectors/generations.py": ("PRAGMA quick_check(1)",),
    "research/store/vectors/chroma.py": ("PRAGMA page_size = {_PAGE_SIZE}",),
}
FIRST, SECOND, THIRD, MODEL = (f"{number:016x}" for number in range(1, 5))


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """The same history on SQLite and on PostgreSQL."""
    folder = tmp_path_factory.mktemp("dialects")
    paths = [IndexPaths(folder / name) for name in ("sqlite", "postgresql")]
    with running_server() as address, Catalog(paths[0], writable=True) as ours:
        paths[1].create()
        theirs = PostgresCatalog(address, paths[1])
        for catalog in (ours, theirs):
            catalog.set_meta("catalog_id", "0" * 32)
        yield [ours, theirs]
        theirs.close()


@pytest.mark.slow
def test_they_agree_on_everything(catalogs: list[Any]) -> None:
    for step in (
        _read,
        _converse,
        _build_packages,
        _remember,
        _correct,
        _forget,
        _embed,
        _recognise,
        _draw,
        _give_up,
        _move,
        _publish,
        _see,
        code,
        experience,
        _record_access,
        label,
        _cache_packages,
        graph,
        _look_after,
    ):
        told = [step(catalog) for catalog in catalogs]
        assert told[0] == told[1], step.__name__
        seen = [_everything(catalog) for catalog in catalogs]
        for question, answer in seen[0].items():
            assert seen[1][question] == answer, f"{question} after {step.__name__}"
    _all_statements_were_run(catalogs[1].connection.statements)


def _read(catalog: Any) -> None:
    _add(catalog, FIRST, "a.pdf", ["walrus", "", "seal on ice"], ocr={2, 3})
    _add(catalog, SECOND, "b.pdf", ["orca", "narwhal"], images=True, failed=[FailedPage(2, "read", KILLED, "gone")])
    _add(catalog, SECOND, "b.pdf", ["orca", "narwhal"], images=True)  # read again, in its own place
    _add(catalog, THIRD, "c.pdf", [PAGE_GIVEN_UP])
    catalog.connection.execute("UPDATE pages SET error = ? WHERE doc_id = ?", (PAGE_GIVEN_UP, THIRD))
    labels.add_tags(catalog, [FIRST], ["animals", "north"])
    labels.remove_tags(catalog, [FIRST], ["north", "nowhere"])


def _converse(catalog: Any) -> object:
    """Turns that cite documents which are moved, changed and removed later on."""
    cited = [CitedPage(number, doc_id, 1, 0.5, ("ice",)) for number, doc_id in enumerate((FIRST, THIRD, "f" * 16), 1)]
    turn = AskedTurn("Where?", "Where? ice", tuple(cited), asked_at="2026-01-01T00:00:00+00:00")
    with catalog.transaction() as connection:
        for session in ("north", "north", "south"):
            number = session_turns.add_turn(connection, "anna", session, turn)
        session_turns.keep_answer(connection, "anna", "north", 2, answer="On ice [1].", model="tiny")
        session_turns.add_turn(connection, "ben", "north", turn)
        gone = session_turns.remove_session(connection, "ben", "north")
        session_turns.leave_sessions(connection, ["9" * 16], heir=SECOND)
    return number, gone


def _cache_packages(catalog: Any) -> object:
    """Put, put again, found, over; one without a record is not kept, and one goes with its record."""
    told = []
    with catalog.transaction() as connection:
        for table in ("package_requests", "packages"):
            columns = _columns(catalog, table)
            names = ", ".join(columns)
            for package_id in ("made-a", "made-b")[: 1 if table == "package_requests" else 2]:
                made = {"package_id": package_id, "request": "{}", "record": "{}"}
                values = [made.get(name, "made") for name in columns]
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", values)
        for package_id, day in (("made-a", 1), ("made-a", 2), ("made-b", 9), ("nowhere", 9)):
            put, until = f"2026-01-0{day}T00:00:00+00:00", f"2026-01-0{day}T00:30:00+00:00"
            row = CachedRow(package_id, "lab", "ann", "policy", f"content-{day}", put, until, "ab" * 32, b"{}\x00")
            packages.put_cached(connection, row)
        for moment in ("2026-01-02T00:10:00+00:00", "2026-01-10T00:00:00+00:00"):
            told.append(packages.expired_ids(connection, moment))
    told.append([packages.get_cached(catalog, name) for name in ("made-a", "made-b", "nowhere")])
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM packages WHERE package_id = ?", ("made-a",))
        told.append(sorted(packages.cached_ids(catalog)))
        packages.remove_cached(connection, ["made-b"])
        told.append(sorted(packages.cached_ids(catalog)))
        packages.clear_cached(connection)
        connection.execute("DELETE FROM packages WHERE package_id = ?", ("made-b",))
        connection.execute("DELETE FROM package_requests WHERE request_id = ?", ("made",))
    assert [[each is None for each in each_of] for each_of in told[2:3]] == [[False, False, True]]
    return told


def _columns(catalog: Any, table: str) -> list[str]:
    if isinstance(catalog, PostgresCatalog):
        query, names = "SELECT column_name FROM information_schema.columns WHERE table_name = ?", (table,)
        return [str(row[0]) for row in catalog.connection.execute(query, names)]
    return [str(row[1]) for row in catalog.connection.execute(f"PRAGMA table_info({table})")]


def _build_packages(catalog: Any) -> object:
    """Packages that hold text of documents which are changed and removed later on."""
    anna, ben = packages.Whose("anna", "agent"), packages.Whose("ben", "agent")
    days = [f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2, 3)]
    with catalog.transaction() as connection:
        for whose, name, at in ((anna, "a", days[0]), (anna, "b", days[1]), (ben, "a", days[2])):
            packages.put_request(connection, whose, packages.StoredRequest(name, at, "{}"))
            stored = packages.StoredPackage(f"{whose.tenant}-{name}", name, at, at, "owner", "1-1-0", "{}")
            packages.put_package(connection, whose, stored, [f"page:{FIRST}#1", f"page:{THIRD}#1", "memory:m"])
        told = packages.give_feedback(connection, "anna-b", [f"page:{FIRST}#1", "memory:none"], 1)
        packages.put_package(connection, anna, stored, [f"page:{FIRST}#1"])
        gone = packages.prune(connection, days[1])
        packages.leave_packages(connection, ["memory:m"])
        left = sorted(packages.left_packages(catalog))
        packages.forget_left(connection, left[:1])
    return told, gone, left


def _record_access(catalog: Any) -> object:
    """Entries of the audit: added, found, and the old ones replaced."""
    with catalog.transaction() as connection:
        for number in range(1, 5):
            at = f"2026-01-0{number}T00:00:00+00:00"
            made = AuditRow(number, at, "access", "lab", "ann", f"d{number}", number % 2, "ab" * 32, "{}")
            governance.add_rows(connection, [made])
        told = [governance.last_before(connection, f"2026-01-0{day}") for day in (1, 3, 9)]
        found = [governance.first_row(connection), governance.last_row(connection), governance.row_at(connection, 2)]
        governance.remove_through(connection, 1)
    narrow = governance.list_rows(catalog, tenant="lab", principal="ann", since="2026-01-03", denied=True, limit=9)
    decided = governance.row_of_decision(catalog, "d3"), governance.row_of_decision(catalog, "d1")
    return told, found, narrow, decided, list(governance.rows_between(catalog.connection, 2, 3))


def _remember(catalog: Any) -> object:
    """Memories of two tenants: told, told again, joined, superseded, embedded, with feedback."""
    outcomes = tell(
        catalog,
        "anna",
        told("Tim lives in Kiel", id="kiel", tags='["people"]', key="k"),
        told("tim lives in kiel", session="s"),
        told("Tim moved to Bonn", replaces="kiel", created_at="2026-02-01T00:00:00+00:00", session="s"),
        told("They spoke of Tim", type="session_summary", session="s", sources=("kiel",)),
        told("gone tomorrow", expires_at="2026-01-02T00:00:00+00:00", namespace="n", persona="p"),
    )
    outcomes += tell(catalog, "anna", told("Tim lives in Kiel", id="kiel"), told("another", key="k"), told("near"))
    outcomes += tell(catalog, "anna", told("tim lives in kiel", session="s", created_at="2026-01-05T00:00:00+00:00"))
    outcomes += tell(catalog, "ben", told("Tim lives in Kiel", id="kiel"))
    with catalog.transaction() as connection:
        number = memories.numbers_of(connection, "anna", ["kiel"])["kiel"]
        memory_writes.write_vectors(connection, "anna", "made-up", [number, 99], _unit(2))
        memory_writes.write_vectors(connection, "anna", "made-up", [number], _unit(1))
        memory_writes.give_feedback(connection, "anna", number, helped=True, score=0.5, at="2026-01-03T00:00:00+00:00")
        memory_writes.note_used(connection, "anna", {number: "2026-01-04T00:00:00+00:00"})
        near = memories.numbers_of(connection, "anna", [told("near").id])
        joined = memory_writes.join(connection, "anna", next(iter(near.values())), number)
    return outcomes, joined, memories.count_memories(catalog), memories.tenants(catalog)


def _correct(catalog: Any) -> object:
    """Words as another version had them, and links to nothing."""
    catalog.connection.execute("UPDATE memory_words SET body = 'other' WHERE tenant = ?", ("ben",))
    outdated = list(memories.outdated_words(catalog.connection))
    with catalog.transaction() as connection:
        memories.update_words(connection)
        memories.drop_words(connection, "ben", 1)
        memories.update_words(connection)
    catalog.connection.execute("UPDATE memories SET superseded_by = 77 WHERE tenant = ?", ("ben",))
    catalog.connection.execute("UPDATE memory_vectors SET vector = ?", (b"short",))
    found = []
    for check in (integrity.check_memories, integrity.check_vectors):
        for problem in list(check(catalog)):
            found.append(problem.message)
            assert problem.fix is not None
            problem.fix(catalog)
    return outdated, found


def _forget(catalog: Any) -> object:
    with catalog.transaction() as connection:
        expired = memory_writes.expired(connection, "anna", "2026-01-03T00:00:00+00:00", 9)
        gone = memory_writes.forget(connection, "anna", expired)
        number = memories.numbers_of(connection, "anna", ["kiel"])["kiel"]
        made = memory_writes.summaries_of(connection, "anna", [number])
        gone += memory_writes.forget(connection, "anna", [number])
        left = [memory_writes.chosen(connection, "anna", within, 9) for within in (Within(session="s"), Within())]
        gone += memory_writes.forget(connection, "ben", memory_writes.chosen(connection, "ben", Within(), 9))
    return expired, gone, made, left


def _embed(catalog: Any) -> None:
    chunk_vectors.set_encoder(catalog, "made-up", DIM)
    page_vectors.set_encoder(catalog, "regions:made-up", DIM)
    waiting = [chunk.chunk_id for chunk in chunk_vectors.pending_chunks(catalog)]
    chunk_vectors.write_vectors(catalog, waiting[:2], _unit(2))
    ledger.close_ledger(catalog)
    chunk_vectors.write_vectors(catalog, waiting, _unit(len(waiting)))  # two of them anew
    ledger.close_ledger(catalog)


def _recognise(catalog: Any) -> None:
    lines = [Line("walrus", (0.1, 0.1, 0.5, 0.2)), Line("ice", (0.0, 0.0, 1.0, 1.0))]
    for text in ("read by OCR", "read better"):
        page = Page(2, text, ocr_engine="tesseract")
        document_writes.write_ocr(catalog, FIRST, page, chunks_of(2, text), lines)
    document_writes.write_ocr(catalog, "f" * 16, Page(1, ""), [], [])  # of a document that was removed
    document_writes.give_up_ocr(catalog, FIRST, [FailedPage(3, "ocr", CRASHED, "it crashed")])
    document_writes.needs_no_ocr(catalog, FIRST, [1])
    missing = page_vectors.pages_with_new_lines(catalog)
    page_vectors.write(catalog, [PageBlobs(page_id, b"", b"", b"", b"packed") for page_id in missing])
    page_vectors.set_problem(catalog, "none left")


def _draw(catalog: Any) -> object:
    ledger.ask_for_images(catalog)
    for name, content in (("image_path", JPEG), ("thumbnail_path", WEBP)):
        path = Path(getattr(catalog.paths, name)(FIRST, 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    document_writes.mark_drawn(catalog, FIRST, [1, 2], published=99, failed=[FailedPage(3, "images", TIMEOUT, "slow")])
    document_writes.mark_drawn(catalog, SECOND, [], published=0)
    missing = images.missing(catalog)
    images.forget(catalog, missing)
    return missing


def _give_up(catalog: Any) -> object:
    told = ledger.nameless(catalog)
    ledger.name_them(catalog)
    record = FailedFile("/docs/bad.pdf", "ab" * 32, 1, TIMEOUT, "slow")
    ledger.record_file(catalog, record)
    ledger.record_file(catalog, replace(record, tries=2))
    ledger.reopen(catalog)
    ledger.reopen(catalog, waiting_of=[FIRST])
    found = ledger.failed_file(catalog, "/docs/bad.pdf"), ledger.to_read_again(catalog, waiting=True)
    ledger.forget_files_gone(catalog)
    return told, found, ledger.failed_file(catalog, "/docs/bad.pdf")


def _move(catalog: Any) -> None:
    document_writes.note_file(catalog, FIRST, FileStamp("/docs/copy.pdf", 2, 2, 2, 2))
    document_writes.note_file(catalog, FIRST, FileStamp("/docs/copy.pdf", 3, 3, 3, 3))
    document_writes.rename_document(catalog, SECOND, "/docs/b.pdf", stamp("/new/Fresh.pdf"), "Fresh.pdf")
    _add(catalog, "e" * 16, "a.pdf", ["a changed file"])  # the copy keeps the first
    _add(catalog, "d" * 16, "a.pdf", ["changed again"])  # and this one takes over
    document_writes.remove_document(catalog, THIRD)


def _publish(catalog: Any) -> object:
    """What the collections get, and what is found in them and by a scan."""
    told: list[object] = [writer.text_keys(catalog), writer.visual_keys(catalog)]
    writer.publish(catalog)
    told += [replace(generations.state_of(catalog), generation=None), *_nearest(catalog)]
    chunk_vectors.touch_vectors(catalog.connection, FIRST)
    writer.publish(catalog)
    return [*told, *_nearest(catalog)]


def _see(catalog: Any) -> object:
    """A visual model takes the place of `regions`."""
    page_vectors.set_encoder(catalog, "colpali:made-up", DIM)
    _add(catalog, MODEL, "d.pdf", ["one", "two", "three"])
    document_writes.mark_drawn(catalog, MODEL, [1, 2, 3], published=0)
    unseen = page_vectors.unseen_images(catalog)
    first = _unit(1)[0].astype("<f2").tobytes()
    page_vectors.write(catalog, [PageBlobs(unseen[0].page_id, first, b"boxes", b"sketch", b"vectors")])
    page_vectors.give_up(catalog, unseen[1], FailedPage(unseen[1].page, "visual", KILLED, "gone"))
    ledger.reopen(catalog)
    told = [generations.state_of(catalog).missing, writer.visual_keys(catalog)]
    writer.publish(catalog)
    return [[replace(image, path="") for image in unseen], *told, *_nearest(catalog)]


def _look_after(catalog: Any) -> object:
    """What the doctor finds of the catalog's own contents, and mends."""
    catalog.connection.execute("DELETE FROM ledger WHERE stage = 'vectors'")
    catalog.connection.execute("UPDATE documents SET num_pages = 9 WHERE doc_id = ?", (MODEL,))
    catalog.connection.execute("UPDATE vectors SET vector = ? WHERE seq = (SELECT MIN(seq) FROM vectors)", (b"short",))
    told = []
    for check in (integrity.check_documents, integrity.check_texts, integrity.check_vectors, integrity.check_ledger):
        for problem in list(check(catalog)):
            told.append((problem.name, problem.message))
            if problem.fix is not None:
                problem.fix(catalog)
    chunk_vectors.set_encoder(catalog, "another", DIM)
    return told


def _everything(catalog: Any) -> dict[str, object]:
    """What all reading functions say."""
    known = documents.all_documents(catalog)
    ids = sorted(pages.page_ids_of(catalog, [info.doc_id for info in known]))
    keys = [f"{info.doc_id}:{page}:0" for info in known for page in (1, 2)]
    question = _unit(1)[0]
    return {
        "documents": known,
        "document": [documents.get_document(catalog, doc_id) for doc_id in (FIRST, THIRD)],
        "by hash": [documents.document_of_hash(catalog, info.sha256) for info in known],
        "reader version": [documents.reader_version_of(catalog, doc_id) for doc_id in (FIRST, THIRD)],
        "at path": documents.document_at_path(catalog, "/docs/copy.pdf"),
        "paths": [documents.paths_of(catalog, info.doc_id) for info in known],
        "below": documents.paths_below(catalog, "/docs"),
        "unfinished": {stage: sorted(ids) for stage, ids in ledger.unfinished(catalog).items()},
        "tags": [[labels.tags_of(catalog, info.doc_id) for info in known], labels.all_tags(catalog)],
        "known": document_names.known_documents(catalog),
        "named": [_named(catalog, name) for name in ("a", "copy.pdf", "FRESH", "t", "eeee", "file-" + "e" * 16, "?")],
        "ids": document_names.current_ids(catalog, [FIRST, THIRD, "e" * 16, "file-" + "e" * 16]),
        "scope": [
            scope.page_ids(catalog)
            for scope in (
                Scope(frozenset([FIRST, SECOND])),
                Scope(pages=((1, 1), (3, 9))),
                Scope(frozenset([FIRST]), ((2, 2),)),
            )
        ],
        "totals": pages.totals(catalog),
        "pages": sorted(_without_folder(catalog, pages.get_pages(catalog, ids).values()), key=repr),
        "with text": sorted(text.text for _, text in pages.get_pages_with_text(catalog, ids).values()),
        "pages of": _without_folder(catalog, pages.pages_of(catalog, [info.doc_id for info in known])),
        "page": [pages.get_page(catalog, info.doc_id, 99) for info in known],
        "page ids": pages.page_ids_at(catalog, [f"{info.doc_id}:1" for info in known]),
        "places": pages.places_of(catalog, ids),
        "owners": pages.documents_of(catalog, ids),
        "markdown": [pages.page_markdown(catalog, info.doc_id, 1) for info in known],
        "markdowns": sorted(pages.markdown_of(catalog, ids)),
        "whole": [pages.document_markdown(catalog, info.doc_id) for info in known],
        "texts": [list(pages.page_texts(catalog, info.doc_id)) for info in known],
        "numbered": numbered_pages(catalog, [info.doc_id for info in known], [1, -1]),
        "pending": list(chunk_vectors.pending_chunks(catalog)),
        "chunks": (
            chunk_vectors.count_chunks(catalog),
            ledger.count_pending(catalog),
            chunk_vectors.longest_chunk(catalog),
        ),
        "embedded": chunk_vectors.count_embedded(catalog, range(1, 50)),
        "sequences": (chunk_vectors.last_sequence(catalog), page_vectors.last_sequence(catalog), revision_of(catalog)),
        "vectors of pages": _plain(chunk_vectors.vectors_of_pages(catalog, ids)),
        "nearest": chunk_vectors.nearest_on_pages(catalog, ids, question),
        "means": {page_id: mean.tolist() for page_id, mean in chunk_vectors.page_means(catalog, ids).items()},
        "of chunks": chunk_vectors.page_ids_of_chunks(catalog, keys, through_seq=5),
        "side": (page_vectors.visual_side(catalog), page_vectors.count(catalog), page_vectors.count_unseen(catalog)),
        "lines": [page_vectors.lines_of(catalog, page_id) for page_id in ids],
        "new lines": page_vectors.pages_with_new_lines(catalog),
        "embedded lines": page_vectors.embedded_lines_of(catalog, ids),
        "seen": sorted(map(tuple, page_vectors.seen_of(catalog, ids))),
        "page vectors": [list(page_vectors.vectors_of(catalog, some)) for some in (ids, None)],
        "sketches": [list(page_vectors.sketches_of(catalog, some)) for some in (ids, None)],
        "for ocr": (ledger.count_for_ocr(catalog), [ledger.pages_for_ocr(catalog, info.doc_id) for info in known]),
        "sessions": (session_turns.list_sessions(catalog, "anna"), session_turns.count_turns(catalog)),
        "turns": [session_turns.turns_of(catalog, "anna", "north", last=last) for last in (None, 1)],
        "lost": (session_turns.lost_documents(catalog), packages.lost_documents(catalog)),
        "packages": [
            (
                packages.list_packages(catalog, whose, 9),
                [packages.get_package(catalog, whose, name) for name in ("anna-b", "ben-a")],
                [packages.package_of_request(catalog, whose, name) for name in "ab"],
                [packages.get_request(catalog, whose, name) for name in "ab"],
                packages.uses_of(catalog, whose.tenant, [f"page:{FIRST}#1", f"page:{THIRD}#1", "memory:m"]),
            )
            for whose in (packages.Whose("anna", "agent"), packages.Whose("ben", "agent"))
        ],
        "left": sorted(packages.left_packages(catalog)),
        "content": content_revision(catalog, "nobody").partition("-")[2],
        "memories": [
            list(memories.list_memories(catalog, "anna", within, now=now, newest=newest))
            for within in (Within(), Within("s", "p", "n", ("memory",)), Within(tags=("people",)))
            for now, newest in (("", True), ("2026-01-03T00:00:00+00:00", False))
        ],
        "searched": memories.rows_after(catalog, "anna", 2),
        "changed": getattr(memories.tenant_state(catalog, "anna"), "last_seq", None),
        "memory vectors": [
            _plain(memories.vectors_of(catalog, "anna", "made-up", numbers)) for numbers in (None, [1, 2, 3])
        ],
        "to embed": memories.pending_vectors(catalog, "anna", "made-up", 9),
        "given up": (ledger.given_up(catalog), [ledger.failures_of(catalog, info.doc_id) for info in known]),
        "again": [ledger.to_read_again(catalog, waiting=waiting) for waiting in (False, True)],
    }


def _named(catalog: Any, name: str) -> list[str]:
    try:
        return [info.doc_id for info in document_names.select_documents(catalog, [name])]
    except NothingFoundError as error:
        return [error.message]


def _add(catalog: Any, doc_id: str, name: str, texts: list[str], *, ocr: set[int] = frozenset(), **more: Any) -> None:
    path = f"/docs/{name}"
    info = DocumentInfo(doc_id, name, "pdf", "T", len(texts), "2026-01-01T00:00:00+00:00", path, 1, doc_id * 4)
    made = [
        (Page(number, text, needs_ocr=number in ocr), chunks_of(number, text))
        for number, text in enumerate(texts, start=1)
    ]
    document_writes.add_document(catalog, info, stamp(path), made, reader_version=1, **more)


def _unit(count: int) -> NDArray[np.float32]:
    made = np.random.default_rng(count).standard_normal((count, DIM)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def _nearest(catalog: Any) -> list[object]:
    chroma, vector = VectorIndex(catalog.paths), _unit(1)[0]
    answers = [
        nearest(catalog, vector, 5, collection=collection)
        for nearest in (exact_scan, chroma.nearest)
        for collection in (TEXT, VISUAL)
    ]
    chroma.refresh()
    return [[(page_id, round(cosine, 4)) for page_id, cosine in answer.pairs] for answer in answers]


def _plain(found: tuple[list[int], NDArray[np.float32]]) -> object:
    return sorted(zip(found[0], found[1].tolist(), strict=True))


def _without_folder(catalog: Any, found: Any) -> list[object]:
    return [replace(page, image_path="", thumb_path="") for page in found]


def _all_statements_were_run(statements: list[str]) -> None:
    """Each beginning of a statement that stands in the source is the beginning of one that ran."""
    begun = [" ".join(statement.split()) for statement in statements]
    left = [
        f"{path}:{line}: {text}"
        for path, line, text in _portable_statements()
        if not any(" ".join(text.split()) in statement for statement in begun)
    ]
    assert left == [], "\n".join(left)


def _portable_statements() -> Iterator[tuple[str, int, str]]:
    """File, line and text of every statement that no file claims as SQLite's own; up to what is filled in later."""
    for path in sorted(path for package in ("research", "ingest", "cli") for path in (ROOT / package).rglob("*.py")):
        source, name = path.read_text(), str(path.relative_to(ROOT))
        if "SQLite's own" in source.partition("\n")[0]:
            continue
        pragmas = [text for text in re.findall(r"\"(PRAGMA [^\"]*)\"", source) if text not in CHROMAS.get(name, ())]
        assert pragmas == [], f"{name} is SQLite's own and does not say so"
        for node in ast.walk(ast.parse(source)):
            first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and STATEMENT.match(first.value):
                yield name, first.lineno, first.value
