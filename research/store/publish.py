"""Bringing the collections up to the catalog, in a process of its own, and comparing them with it for `ctx doctor`.

Chroma's compiled code neither hears Ctrl-C nor survives every damage. In a process apart it can be ended at any
moment: what it writes is a private draft until one rename publishes it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from research.errors import FREE_SPACE, CtxError, IndexUnusableError, unusable
from research.lazy import switch_off
from research.process import die_with_parent, start_helper
from research.store.catalog import Catalog
from research.store.generations import (
    SEEN_PAGES,
    TEXT,
    VISUAL,
    Collections,
    Generation,
    IndexState,
    current,
    drop_draft,
    is_damaged,
    numbered,
    publish_draft,
    short_file,
    start_draft,
    state_of,
    visual_pages,
)
from research.store.paths import IndexPaths, StagedPaths, create_file, read_file, remove_file, write_lock
from research.store.reader import Reader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Task = Literal["publish", "rebuild", "verify", "stage"]

AGAIN = "nothing is lost; try again with: ctx doctor --reindex"
FAILED_NOTE = "publish-failed.json"
_RETRY_SECONDS = 3600.0

_BATCH = 4000  # Chroma (1.5.9) takes at most about 5,400
# Each time Chroma writes its neighbour files it writes the whole of them; what it has not written waits in its database
# and is read again with each batch. So often in the making of a collection costs little of both.
_SYNCS = 4


Vectors = Callable[[Sequence[int]], "Mapping[int, NDArray[np.float32]]"]  # number → (dim,)


@dataclass(frozen=True, slots=True)
class _Changes:
    """What a collection has too much, and what it lacks or has otherwise: key → page_id and the number that the vector
    goes by."""

    collection: str
    stale: list[str]
    new: list[tuple[str, int, int]]
    parts: int  # after each of which Chroma writes its neighbour files
    vectors_of: Vectors

    @property
    def count(self) -> int:
        return len(self.stale) + len(self.new)

    @property
    def sync(self) -> int:
        return self.count // self.parts


def publish_in_subprocess(paths: IndexPaths, *, rebuild: bool = False) -> None:
    """Publish what the collections lack, or with `rebuild` all of it once more. The caller holds the write lock."""
    try:
        code, said = _run("rebuild" if rebuild else "publish", paths)
        if code and not rebuild:  # damage that no check saw before: start over from the catalog
            code, said = _run("rebuild", paths)
    finally:
        drop_draft(paths.chroma)
    _raise_for(code, said)


def publish_staged(staged: StagedPaths) -> None:
    """Build the collections of an index that is not in place yet."""
    _raise_for(*_run("stage", staged))


def verify_in_subprocess(paths: IndexPaths) -> bool:
    """Whether the collections can be read and hold exactly what the catalog has."""
    return _run("verify", paths)[0] == 0


def publish_if_possible(paths: IndexPaths, state: IndexState) -> bool:
    """Publish what the collections lack. True if that was done; a busy or read-only index is left alone, because a
    search compares the missing vectors one by one anyway.

    What failed once (a Chroma of another make) is not tried again by every question, but when the catalog or Chroma has
    changed, or an hour later.
    """
    note = paths.chroma / FAILED_NOTE
    attempt = _attempt(state)
    if _failed_before(note, attempt):
        return False
    try:
        with write_lock(paths):
            try:
                publish_in_subprocess(paths)
            except IndexUnusableError as error:
                if error.hint != FREE_SPACE:
                    remove_file(note)
                    with suppress(OSError):
                        create_file(note, json.dumps({"attempt": attempt, "error": error.message}).encode())
                return False
            remove_file(note)
    except (CtxError, OSError):
        return False
    return True


def _attempt(state: IndexState) -> list[object]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        chroma = version("chromadb")
    except PackageNotFoundError:
        chroma = ""
    number = state.generation.number if state.generation else 0
    return [chroma, number, state.missing, state.surplus, state.outdated]


def _failed_before(note: Path, attempt: list[object]) -> bool:
    try:
        recent = abs(time.time() - note.lstat().st_mtime) < _RETRY_SECONDS
        return recent and bool(json.loads(read_file(note, 1 << 16))["attempt"] == attempt)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _run(task: Task, paths: IndexPaths) -> tuple[int, str]:
    process = start_helper(__name__, [task, os.fsencode(paths.root).hex()], hears_ctrl_c=False)
    with process:
        try:
            said, _ = process.communicate()
        except BaseException:
            process.kill()
            raise
    return process.returncode, said.decode()


def _raise_for(code: int, said: str) -> None:
    if not code:
        return
    try:
        problem = json.loads(said.splitlines()[-1])
    except (ValueError, IndexError):
        raise IndexUnusableError(f"building the collections ended with code {code}", hint=AGAIN) from None
    raise IndexUnusableError(problem["error"], hint=problem["hint"])


def main() -> int:
    """Do one task in a helper process."""
    switch_off()
    parent, task, folder = sys.argv[1:]
    die_with_parent(int(parent))
    root = Path(os.fsdecode(bytes.fromhex(folder)))
    try:
        with Catalog(StagedPaths(root) if task == "stage" else IndexPaths(root)) as catalog:
            if task == "verify":
                return 0 if holds_everything(catalog) else 1
            publish(catalog, rebuild=task != "publish")
            return 0
    except CtxError as error:
        problem = error
    except OSError as error:
        problem = unusable("the collections cannot be written", error)
    except BaseException as error:  # noqa: BLE001  Chroma raises all kinds, a panic of its core is no Exception
        text = f"{type(error).__name__}: {error}"
        full = "disk is full" in text or "No space left" in text or "File too large" in text
        problem = IndexUnusableError(f"the collections cannot be built: {text}", hint=FREE_SPACE if full else AGAIN)
    sys.stdout.write("\n" + json.dumps({"error": problem.message, "hint": problem.hint}) + "\n")
    return 1


def publish(catalog: Catalog, *, rebuild: bool = False) -> Generation:
    """Bring the collections up to the catalog and publish them, or make them anew. The caller holds the write lock."""
    state = state_of(catalog)
    base = None if rebuild else state.generation
    if base is not None and not state.behind:
        return base
    through_seq, revision = catalog.chunks.last_sequence(), catalog.chunks.revision()
    visual_through_seq = catalog.visual.last_sequence()
    of_pages = catalog.visual.first if visual_pages(catalog) == SEEN_PAGES else catalog.chunks.page_means
    published = Collections(base.path) if base else None
    work = [
        _changes(published, TEXT, text_keys(catalog), _changed_chunks(catalog, base), catalog.chunks.vectors),
        _changes(published, VISUAL, visual_keys(catalog), _changed_pages(catalog, base), of_pages),
    ]
    del published  # closes its files
    draft = start_draft(catalog.paths.chroma, base)
    collections = Collections(draft, writable=True)
    for changes in work:
        collections.make(changes.collection, changes.sync)
    for changes in work:
        _write(catalog, collections, changes)
    text, visual = (collections.count(changes.collection) for changes in work)
    del collections
    catalog_id = catalog.meta("catalog_id")
    contents = Generation(draft, 0, catalog_id, through_seq, text, visual, visual_through_seq, revision)
    return publish_draft(catalog.paths.chroma, draft, contents)


def text_keys(reader: Reader, *, through: int | None = None) -> dict[str, tuple[int, int]]:
    """The records that the text collection should have, "doc_id:page:ordinal" → page_id and chunk_id: one a chunk with
    a vector; with `through` only those written by this sequence number."""
    rows = reader.execute(
        "SELECT doc_id, page, ordinal, page_id, chunk_id FROM vectors JOIN chunks USING (chunk_id)"
        " JOIN pages USING (page_id) WHERE seq <= ?",
        (reader.chunks.last_sequence() if through is None else through,),
    )
    return {f"{doc_id}:{page}:{ordinal}": (page_id, chunk_id) for doc_id, page, ordinal, page_id, chunk_id in rows}


def visual_keys(reader: Reader) -> dict[str, tuple[int, int]]:
    """The records that the visual collection should have, "doc_id:page" → page_id, twice: one a page, with the visual
    encoder's first-stage vector.

    With `regions` that is the mean of the page's chunk vectors, for every page of a document whose chunks are all
    embedded; with a visual model it is what the model's vectors share, for every page the model has seen.
    """
    source = visual_pages(reader)
    rows = reader.execute(f"SELECT doc_id, page, page_id {source}") if source else ()
    return {f"{doc_id}:{page}": (page_id, page_id) for doc_id, page, page_id in rows}


def _changed_chunks(catalog: Catalog, base: Generation | None) -> set[int]:
    if base is None:  # everything is lacking
        return set()
    rows = catalog.execute("SELECT chunk_id FROM vectors WHERE seq > ?", (base.through_seq,))
    return {int(row[0]) for row in rows}


def _changed_pages(catalog: Catalog, base: Generation | None) -> set[int]:
    """The pages of documents with new vectors, those that a visual model saw since, and, if names or images changed,
    those of documents without any chunk, which have no vector to tell by."""
    if base is None:
        return set()
    changed = [
        "SELECT page_id FROM pages WHERE doc_id IN (SELECT doc_id FROM vectors JOIN chunks USING (chunk_id)"
        " JOIN pages USING (page_id) WHERE seq > ?) UNION SELECT page_id FROM page_vectors WHERE seq > ?"
    ]
    if base.revision != catalog.chunks.revision():
        changed.append(
            "SELECT page_id FROM pages WHERE doc_id NOT IN (SELECT doc_id FROM chunks JOIN pages USING (page_id))"
        )
    rows = catalog.execute(" UNION ".join(changed), (base.through_seq, base.visual_through_seq))
    return {int(row[0]) for row in rows}


def _changes(
    published: Collections | None, name: str, wanted: Mapping[str, tuple[int, int]], changed: Set[int], of: Vectors
) -> _Changes:
    present = published.keys(name) if published else set()
    stale = sorted(present - wanted.keys())
    new = [(key, *numbers) for key, numbers in wanted.items() if numbers[1] in changed or key not in present]
    parts = 1 if stale or len(new) <= _BATCH else max(1, _SYNCS * len(new) // len(wanted))
    return _Changes(name, stale, new, parts, of)


def _write(catalog: Catalog, collections: Collections, changes: _Changes) -> None:
    """Write what a collection lacks, so many records at once that Chroma's threshold is reached with the last."""
    name, new = changes.collection, changes.new
    for start in range(0, len(changes.stale), _BATCH):
        collections.delete(name, changes.stale[start : start + _BATCH])
    part = max(1, -(-len(new) // changes.parts))
    for end in range(part, len(new) + part, part):
        for start in range(end - part, min(end, len(new)), _BATCH):
            keys, page_ids, numbers = zip(*new[start : min(start + _BATCH, end)], strict=True)
            pages, vectors = catalog.pages.get_many(page_ids), changes.vectors_of(numbers)
            metadatas = [pages[page_id].metadata() for page_id in page_ids]
            collections.upsert(name, keys, [vectors[number] for number in numbers], metadatas)
    if changes.count == 1:
        collections.rewrite_one(name)


def holds_everything(catalog: Catalog) -> bool:
    """Open the published collections and compare them with the catalog, record by record."""
    state = state_of(catalog)
    generation = state.generation
    if generation is None or state.due or is_damaged(generation):
        return False
    collections = Collections(generation.path)
    text, pages = collections.keys(TEXT), collections.keys(VISUAL)
    if not state.behind:
        return text == text_keys(catalog).keys() and pages == visual_keys(catalog).keys()
    # What waits to be published is not there, what was removed since is there still.
    expected = text_keys(catalog, through=generation.through_seq).keys()
    return expected <= text and (len(text), len(pages)) == (generation.text_records, generation.visual_records)


def chroma_problems(reader: Reader) -> Iterator[tuple[str, str]]:
    """What keeps the Chroma that is installed from being asked, and what to do about it."""
    rebuild = "build them again with: ctx doctor --reindex"
    with suppress(OSError, ValueError, KeyError, TypeError):
        failed = json.loads(read_file(reader.paths.chroma / FAILED_NOTE, 1 << 16))["error"]
        yield f"a question could not bring the collections up to date: {failed}", rebuild
    generation = current(reader)
    if generation is None or not generation.text_records:
        return
    _, newest = max(numbered(reader.paths.chroma), default=(0, generation.path))
    if newest != generation.path or short_file(newest):
        yield f"{newest.name} of the collections is damaged, or of another state of the catalog", rebuild
    if short_file(generation.path):  # the core would read past its end
        return
    try:
        Collections(generation.path).nearest(TEXT, [0.0] * reader.chunks.dim(), 1)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  a panic of the core is no Exception
        message = f"the collections cannot be read ({type(error).__name__}: {error})"
        remedy = "install the chromadb that ctx names: pip install --force-reinstall 'chromadb>=1.5.9,<1.6'"
        yield f"{message}; questions compare every vector of the catalog", f"{rebuild}; or {remedy}"


if __name__ == "__main__":
    sys.exit(main())
