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
from research.store import generations, integrity, packages
from research.store import publish as writer
from research.store.catalog import Catalog
from research.store.documents import FileStamp
from research.store.governance import AuditRow
from research.store.ledger import CRASHED, KILLED, TIMEOUT, FailedFile
from research.store.names import Scope
from research.store.nearest import TEXT, VISUAL, VectorIndex, exact_scan
from research.store.packages import CachedRow
from research.store.paths import IndexPaths
from research.store.vectors import PageBlobs

ROOT = Path(__file__).parents[3]
STATEMENT = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\s")
# Its statements are for Chroma's database, which is SQLite's.
CHROMAS = {"research/store/generations.py": ("PRAGMA quick_check(1)", "PRAGMA page_size = {_PAGE_SIZE}")}
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
            catalog.write_meta({"catalog_id": "0" * 32})
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
    catalog.execute("UPDATE pages SET error = ? WHERE doc_id = ?", (PAGE_GIVEN_UP, THIRD))
    catalog.labels.add_tags([FIRST], ["animals", "north"])
    catalog.labels.remove_tags([FIRST], ["north", "nowhere"])


def _converse(catalog: Any) -> object:
    """Turns that cite documents which are moved, changed and removed later on."""
    cited = [CitedPage(number, doc_id, 1, 0.5, ("ice",)) for number, doc_id in enumerate((FIRST, THIRD, "f" * 16), 1)]
    turn = AskedTurn("Where?", "Where? ice", tuple(cited), asked_at="2026-01-01T00:00:00+00:00")
    with catalog.transaction() as connection:
        for session in ("north", "north", "south"):
            number = connection.sessions.add("anna", session, turn)
        connection.sessions.keep_answer("anna", "north", 2, answer="On ice [1].", model="tiny")
        connection.sessions.add("ben", "north", turn)
        gone = connection.sessions.remove("ben", "north")
        connection.sessions.leave(["9" * 16], heir=SECOND)
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
            connection.packages.put_cached(row)
        for moment in ("2026-01-02T00:10:00+00:00", "2026-01-10T00:00:00+00:00"):
            told.append(connection.packages.expired_ids(moment))
    told.append([catalog.packages.cached(name) for name in ("made-a", "made-b", "nowhere")])
    with catalog.transaction() as connection:
        connection.execute("DELETE FROM packages WHERE package_id = ?", ("made-a",))
        told.append(catalog.column("SELECT package_id FROM package_cache ORDER BY 1"))
        connection.packages.remove_cached(["made-b"])
        told.append(catalog.column("SELECT package_id FROM package_cache ORDER BY 1"))
        connection.execute("DELETE FROM package_cache")
        connection.execute("DELETE FROM packages WHERE package_id = ?", ("made-b",))
        connection.execute("DELETE FROM package_requests WHERE request_id = ?", ("made",))
    assert [[each is None for each in each_of] for each_of in told[2:3]] == [[False, False, True]]
    return told


def _columns(catalog: Any, table: str) -> list[str]:
    if isinstance(catalog, PostgresCatalog):
        query, names = "SELECT column_name FROM information_schema.columns WHERE table_name = ?", (table,)
        return [str(row[0]) for row in catalog.execute(query, names)]
    return [str(row[1]) for row in catalog.execute(f"PRAGMA table_info({table})")]


def _build_packages(catalog: Any) -> object:
    """Packages that hold text of documents which are changed and removed later on."""
    anna, ben = packages.Whose("anna", "agent"), packages.Whose("ben", "agent")
    days = [f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2, 3)]
    with catalog.transaction() as connection:
        for whose, name, at in ((anna, "a", days[0]), (anna, "b", days[1]), (ben, "a", days[2])):
            connection.packages.put_request(whose, packages.StoredRequest(name, at, "{}"))
            stored = packages.StoredPackage(f"{whose.tenant}-{name}", name, at, at, "owner", "1-1-0", "{}")
            connection.packages.put(whose, stored, [f"page:{FIRST}#1", f"page:{THIRD}#1", "memory:m"])
        told = connection.packages.give_feedback("anna-b", [f"page:{FIRST}#1", "memory:none"], 1)
        connection.packages.put(anna, stored, [f"page:{FIRST}#1"])
        gone = connection.packages.prune(days[1])
        connection.packages.leave(["memory:m"])
        left = sorted(catalog.packages.left())
        connection.packages.forget_left(left[:1])
    return told, gone, left


def _record_access(catalog: Any) -> object:
    """Entries of the audit: added, found, and the old ones replaced."""
    with catalog.transaction() as connection:
        for number in range(1, 5):
            at = f"2026-01-0{number}T00:00:00+00:00"
            made = AuditRow(number, at, "access", "lab", "ann", f"d{number}", number % 2, "ab" * 32, "{}")
            connection.audit.add([made])
        told = [connection.audit.last_before(f"2026-01-0{day}") for day in (1, 3, 9)]
        found = [connection.audit.first(), connection.audit.last(), connection.audit.at(2)]
        connection.audit.remove_through(1)
    narrow = catalog.audit.select(tenant="lab", principal="ann", since="2026-01-03", denied=True, limit=9)
    decided = catalog.audit.of_decision("d3"), catalog.audit.of_decision("d1")
    return told, found, narrow, decided, list(catalog.audit.between(2, 3))


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
        number = connection.memories.numbers("anna", ["kiel"])["kiel"]
        connection.memories.write_vectors("anna", "made-up", [number, 99], _unit(2))
        connection.memories.write_vectors("anna", "made-up", [number], _unit(1))
        connection.memories.give_feedback("anna", number, helped=True, score=0.5, at="2026-01-03T00:00:00+00:00")
        connection.memories.note_used("anna", {number: "2026-01-04T00:00:00+00:00"})
        near = connection.memories.numbers("anna", [told("near").id])
        joined = connection.memories.join("anna", next(iter(near.values())), number)
    return outcomes, joined, catalog.memories.count(), catalog.memories.tenants()


def _correct(catalog: Any) -> object:
    """Words as another version had them, and links to nothing."""
    catalog.execute("UPDATE memory_words SET body = 'other' WHERE tenant = ?", ("ben",))
    outdated = list(catalog.memories.outdated_words())
    with catalog.transaction() as connection:
        connection.memories.update_words()
        connection.memories.drop_words("ben", 1)
        connection.memories.update_words()
    catalog.execute("UPDATE memories SET superseded_by = 77 WHERE tenant = ?", ("ben",))
    catalog.execute("UPDATE memory_vectors SET vector = ?", (b"short",))
    found = []
    for check in (integrity.check_memories, integrity.check_vectors):
        for problem in list(check(catalog)):
            found.append(problem.message)
            assert problem.fix is not None
            problem.fix(catalog)
    return outdated, found


def _forget(catalog: Any) -> object:
    with catalog.transaction() as connection:
        expired = connection.memories.expired("anna", "2026-01-03T00:00:00+00:00", 9)
        gone = connection.memories.forget("anna", expired)
        number = connection.memories.numbers("anna", ["kiel"])["kiel"]
        made = connection.memories.summaries("anna", [number])
        gone += connection.memories.forget("anna", [number])
        left = [connection.memories.chosen("anna", within, 9) for within in (Within(session="s"), Within())]
        gone += connection.memories.forget("ben", connection.memories.chosen("ben", Within(), 9))
    return expired, gone, made, left


def _embed(catalog: Any) -> None:
    catalog.chunks.set_encoder("made-up", DIM)
    catalog.visual.set_encoder("regions:made-up", DIM)
    waiting = [chunk.chunk_id for chunk in catalog.chunks.pending()]
    catalog.chunks.write(waiting[:2], _unit(2))
    catalog.ledger.close()
    catalog.chunks.write(waiting, _unit(len(waiting)))  # two of them anew
    catalog.ledger.close()


def _recognise(catalog: Any) -> None:
    lines = [Line("walrus", (0.1, 0.1, 0.5, 0.2)), Line("ice", (0.0, 0.0, 1.0, 1.0))]
    for text in ("read by OCR", "read better"):
        page = Page(2, text, ocr_engine="tesseract")
        catalog.documents.write_ocr(FIRST, page, chunks_of(2, text), lines)
    catalog.documents.write_ocr("f" * 16, Page(1, ""), [], [])  # of a document that was removed
    catalog.documents.give_up_ocr(FIRST, [FailedPage(3, "ocr", CRASHED, "it crashed")])
    catalog.documents.needs_no_ocr(FIRST, [1])
    missing = catalog.visual.pages_with_new_lines()
    catalog.visual.write([PageBlobs(page_id, b"", b"", b"", b"packed") for page_id in missing])
    catalog.visual.set_problem("none left")


def _draw(catalog: Any) -> object:
    catalog.ledger.ask_for_images()
    for name, content in (("image_path", JPEG), ("thumbnail_path", WEBP)):
        path = Path(getattr(catalog.paths, name)(FIRST, 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    catalog.documents.mark_drawn(FIRST, [1, 2], published=99, failed=[FailedPage(3, "images", TIMEOUT, "slow")])
    catalog.documents.mark_drawn(SECOND, [], published=0)
    missing = catalog.pages.missing_images()
    catalog.pages.forget_images(missing)
    return missing


def _give_up(catalog: Any) -> object:
    told = catalog.ledger.count_unnoted()
    catalog.ledger.note_unnoted()
    record = FailedFile("/docs/bad.pdf", "ab" * 32, 1, TIMEOUT, "slow")
    catalog.ledger.record_file(record)
    catalog.ledger.record_file(replace(record, tries=2))
    catalog.ledger.reopen()
    catalog.ledger.reopen(waiting_of=[FIRST])
    found = catalog.ledger.failed_file("/docs/bad.pdf"), catalog.ledger.to_read_again(waiting=True)
    catalog.ledger.forget_missing_files()
    return told, found, catalog.ledger.failed_file("/docs/bad.pdf")


def _move(catalog: Any) -> None:
    catalog.documents.note_file(FIRST, FileStamp("/docs/copy.pdf", 2, 2, 2, 2))
    catalog.documents.note_file(FIRST, FileStamp("/docs/copy.pdf", 3, 3, 3, 3))
    catalog.documents.rename(SECOND, "/docs/b.pdf", stamp("/new/Fresh.pdf"), "Fresh.pdf")
    _add(catalog, "e" * 16, "a.pdf", ["a changed file"])  # the copy keeps the first
    _add(catalog, "d" * 16, "a.pdf", ["changed again"])  # and this one takes over
    catalog.documents.remove(THIRD)


def _publish(catalog: Any) -> object:
    """What the collections get, and what is found in them and by a scan."""
    told: list[object] = [writer.text_keys(catalog), writer.visual_keys(catalog)]
    writer.publish(catalog)
    told += [replace(generations.state_of(catalog), generation=None), *_nearest(catalog)]
    catalog.chunks.touch(FIRST)
    writer.publish(catalog)
    return [*told, *_nearest(catalog)]


def _see(catalog: Any) -> object:
    """A visual model takes the place of `regions`."""
    catalog.visual.set_encoder("colpali:made-up", DIM)
    _add(catalog, MODEL, "d.pdf", ["one", "two", "three"])
    catalog.documents.mark_drawn(MODEL, [1, 2, 3], published=0)
    unseen = catalog.visual.unseen_images()
    first = _unit(1)[0].astype("<f2").tobytes()
    catalog.visual.write([PageBlobs(unseen[0].page_id, first, b"boxes", b"sketch", b"vectors")])
    catalog.visual.give_up(unseen[1], FailedPage(unseen[1].page, "visual", KILLED, "gone"))
    catalog.ledger.reopen()
    told = [generations.state_of(catalog).missing, writer.visual_keys(catalog)]
    writer.publish(catalog)
    return [[replace(image, path="") for image in unseen], *told, *_nearest(catalog)]


def _look_after(catalog: Any) -> object:
    """What the doctor finds of the catalog's own contents, and mends."""
    catalog.execute("DELETE FROM ledger WHERE stage = 'vectors'")
    catalog.execute("UPDATE documents SET num_pages = 9 WHERE doc_id = ?", (MODEL,))
    catalog.execute("UPDATE vectors SET vector = ? WHERE seq = (SELECT MIN(seq) FROM vectors)", (b"short",))
    told = []
    for check in (integrity.check_documents, integrity.check_texts, integrity.check_vectors, integrity.check_ledger):
        for problem in list(check(catalog)):
            told.append((problem.name, problem.message))
            if problem.fix is not None:
                problem.fix(catalog)
    catalog.chunks.set_encoder("another", DIM)
    return told


def _everything(catalog: Any) -> dict[str, object]:
    """What all reading functions say."""
    known = catalog.documents.all()
    ids = sorted(catalog.pages.ids_of([info.doc_id for info in known]))
    keys = [f"{info.doc_id}:{page}:0" for info in known for page in (1, 2)]
    question = _unit(1)[0]
    return {
        "documents": known,
        "document": [catalog.documents.get(doc_id) for doc_id in (FIRST, THIRD)],
        "by hash": [catalog.documents.of_hash(info.sha256) for info in known],
        "reader version": [catalog.documents.reader_version(doc_id) for doc_id in (FIRST, THIRD)],
        "at path": catalog.documents.at_path("/docs/copy.pdf"),
        "paths": [catalog.documents.paths(info.doc_id) for info in known],
        "below": catalog.documents.paths_below("/docs"),
        "unfinished": {stage: sorted(ids) for stage, ids in catalog.ledger.unfinished().items()},
        "tags": [[catalog.labels.tags(info.doc_id) for info in known], catalog.labels.all_tags()],
        "known": catalog.names.known(),
        "named": [_named(catalog, name) for name in ("a", "copy.pdf", "FRESH", "t", "eeee", "file-" + "e" * 16, "?")],
        "ids": catalog.names.current_ids([FIRST, THIRD, "e" * 16, "file-" + "e" * 16]),
        "scope": [
            scope.page_ids(catalog)
            for scope in (
                Scope(frozenset([FIRST, SECOND])),
                Scope(pages=((1, 1), (3, 9))),
                Scope(frozenset([FIRST]), ((2, 2),)),
            )
        ],
        "totals": catalog.pages.totals(),
        "pages": sorted(_without_folder(catalog, catalog.pages.get_many(ids).values()), key=repr),
        "with text": sorted(text.text for _, text in catalog.pages.with_text(ids).values()),
        "page": [catalog.pages.get(info.doc_id, 99) for info in known],
        "page ids": catalog.pages.ids_at([f"{info.doc_id}:1" for info in known]),
        "places": catalog.pages.places(ids),
        "markdown": [catalog.pages.markdown(info.doc_id, 1) for info in known],
        "markdowns": sorted(catalog.pages.markdowns(ids)),
        "whole": [catalog.pages.document_markdown(info.doc_id) for info in known],
        "texts": [list(catalog.pages.texts(info.doc_id)) for info in known],
        "numbered": catalog.lookups.numbered_pages([info.doc_id for info in known], [1, -1]),
        "pending": list(catalog.chunks.pending()),
        "chunks": (catalog.chunks.count(), catalog.ledger.count_pending(), catalog.chunks.longest()),
        "embedded": catalog.chunks.count_embedded(range(1, 50)),
        "sequences": (catalog.chunks.last_sequence(), catalog.visual.last_sequence(), catalog.chunks.revision()),
        "vectors of pages": _plain(catalog.chunks.of_pages(ids)),
        "nearest": catalog.chunks.nearest(ids, question),
        "means": {page_id: mean.tolist() for page_id, mean in catalog.chunks.page_means(ids).items()},
        "of chunks": catalog.chunks.page_ids(keys, through_seq=5),
        "side": (catalog.visual.side(), catalog.visual.count(), catalog.visual.count_unseen()),
        "lines": [catalog.visual.lines(page_id) for page_id in ids],
        "new lines": catalog.visual.pages_with_new_lines(),
        "embedded lines": catalog.visual.embedded_lines(ids),
        "seen": sorted(map(tuple, catalog.visual.seen(ids))),
        "page vectors": [list(catalog.visual.vectors(some)) for some in (ids, None)],
        "sketches": [list(catalog.visual.sketches(some)) for some in (ids, None)],
        "for ocr": (catalog.ledger.count_for_ocr(), [catalog.ledger.pages_for_ocr(info.doc_id) for info in known]),
        "sessions": (catalog.sessions.all("anna"), catalog.sessions.count()),
        "turns": [catalog.sessions.turns("anna", "north", last=last) for last in (None, 1)],
        "lost": (catalog.sessions.lost_documents(), catalog.packages.lost_documents()),
        "packages": [
            (
                catalog.packages.recent(whose, 9),
                [catalog.packages.get(whose, name) for name in ("anna-b", "ben-a")],
                [catalog.packages.of_request(whose, name) for name in "ab"],
                [catalog.packages.request(whose, name) for name in "ab"],
                catalog.packages.uses(whose.tenant, [f"page:{FIRST}#1", f"page:{THIRD}#1", "memory:m"]),
            )
            for whose in (packages.Whose("anna", "agent"), packages.Whose("ben", "agent"))
        ],
        "left": sorted(catalog.packages.left()),
        "content": catalog.labels.content_revision("nobody").partition("-")[2],
        "memories": [
            list(catalog.memories.select("anna", within, now=now, newest=newest))
            for within in (Within(), Within("s", "p", "n", ("memory",)), Within(tags=("people",)))
            for now, newest in (("", True), ("2026-01-03T00:00:00+00:00", False))
        ],
        "searched": catalog.memories.rows_after("anna", 2),
        "changed": getattr(catalog.memories.state("anna"), "last_seq", None),
        "memory vectors": [
            _plain(catalog.memories.vectors("anna", "made-up", numbers)) for numbers in (None, [1, 2, 3])
        ],
        "to embed": catalog.memories.pending_vectors("anna", "made-up", 9),
        "given up": (catalog.ledger.given_up(), [catalog.ledger.failures(info.doc_id) for info in known]),
        "again": [catalog.ledger.to_read_again(waiting=waiting) for waiting in (False, True)],
    }


def _named(catalog: Any, name: str) -> list[str]:
    try:
        return [info.doc_id for info in catalog.names.select([name])]
    except NothingFoundError as error:
        return [error.message]


def _add(catalog: Any, doc_id: str, name: str, texts: list[str], *, ocr: set[int] = frozenset(), **more: Any) -> None:
    path = f"/docs/{name}"
    info = DocumentInfo(doc_id, name, "pdf", "T", len(texts), "2026-01-01T00:00:00+00:00", path, 1, doc_id * 4)
    made = [
        (Page(number, text, needs_ocr=number in ocr), chunks_of(number, text))
        for number, text in enumerate(texts, start=1)
    ]
    catalog.documents.add(info, stamp(path), made, reader_version=1, **more)


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
