"""Chunk vectors in the catalog: what is missing, writing them, reading them back.

What the visual encoder saw, page by page: which encoder fills the index, what is missing, writing and reading."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from research.records import Box, FailedPage, Line, Region
from research.store.ledger import STAGE_VECTORS, STAGE_VISUAL
from research.store.reader import REVISION, Repository, batched, pack_vectors, stacked, unpack_vectors
from research.text import embedding_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that still has no vector; `text` is what the encoder sees."""

    chunk_id: int
    text: str


@dataclass(frozen=True, slots=True)
class ComparedChunk:
    """A chunk with its visible pieces, at least one, and its cosine with a question."""

    text: str
    regions: tuple[Region, ...]
    cosine: float


def _nearest(rows: Sequence[Any], asked: NDArray[np.float32], most: int | None) -> list[ComparedChunk]:
    if not rows:
        return []
    found = cosines(_matrix([(row[0], row[4]) for row in rows])[1], asked).tolist()
    best = sorted(range(len(rows)), key=lambda n: -found[n])[:most]
    nearest: list[ComparedChunk] = []
    for n in best:
        _, text, box, regions, _ = rows[n]
        nearest.append(ComparedChunk(zlib.decompress(text).decode(), _regions(regions, box), found[n]))
    return nearest


def _regions(stored: str, whole: str) -> tuple[Region, ...]:
    entries = json.loads(stored) or [[0, *json.loads(whole)]]
    regions: list[Region] = []
    for start, *box in entries:
        x0, y0, x1, y1 = box
        regions.append(Region(int(start), (x0, y0, x1, y1)))
    return tuple(regions)


def cosines(matrix: NDArray[np.float32], asked: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of unit rows (n, dim) with a unit vector (dim,). Not by BLAS: its threads go on spinning for a while after each
    product, on the core where another leg is at work."""
    import numpy as np

    found: NDArray[np.float32] = np.einsum("ij,j->i", matrix, asked)
    return found


def _matrix(rows: Sequence[Any]) -> tuple[list[int], NDArray[np.float32]]:
    import numpy as np

    numbers, vectors = stacked(rows)
    return numbers, vectors.astype(np.float32)


class _Vectors(Repository):
    """Vectors of one side of the index, all made by one encoder."""

    _side: str
    _table: str

    def encoder(self) -> str:
        """The name of the encoder that filled this side; empty while none was chosen."""
        return self._db.meta(f"{self._side}_encoder")

    def dim(self) -> int:
        """Numbers in a vector."""
        return int(self._db.meta(f"{self._side}_dim", "0"))

    def last_sequence(self) -> int:
        """The number of the newest vector ever written, removed ones included."""
        return int(self._db.meta(f"{self._table}_seq", "0"))


class Chunks(_Vectors):
    """Chunks of pages, and their vectors."""

    _side, _table = "text", "vectors"

    def sketch(self) -> str:
        """What the index remembers of a model that only its address names; empty for any other."""
        return self._db.meta("text_sketch")

    def set_encoder(self, name: str, dim: int, *, sketch: str = "", changed: bool = False) -> None:
        """Declare the encoder. Vectors of another one are dropped: an index never mixes two. `changed`: it is another
        one though its name is the same, as its `sketch` tells."""
        if self.encoder() == name and self.dim() == dim and not changed:
            return
        with self._db.transaction() as connection:
            connection.execute("DELETE FROM vectors")
            # Lines that OCR read have vectors of the same encoder; where its name changes they go by that.
            connection.execute(
                "DELETE FROM page_vectors WHERE EXISTS (SELECT 1 FROM meta WHERE key = 'visual_encoder' AND value = ?)",
                (f"regions:{name}",),
            )
            connection.execute(
                "INSERT INTO ledger SELECT doc_id, ? FROM documents WHERE 1 = 1 ON CONFLICT DO NOTHING",
                (STAGE_VECTORS,),
            )
            # A new identity parts the catalog from collections filled with the old encoder's vectors.
            values = {"text_encoder": name, "text_dim": str(dim), "text_sketch": sketch, "catalog_id": uuid.uuid4().hex}
            connection.write_meta(values)

    def pending(self) -> Iterator[PendingChunk]:
        """Chunks without a vector, document by document."""
        for doc_id in self._db.column(
            "SELECT doc_id FROM ledger JOIN documents USING (doc_id) WHERE stage = ?"
            " ORDER BY documents.timestamp, doc_id",
            (STAGE_VECTORS,),
        ):
            rows = self._db.execute(
                "SELECT c.chunk_id, c.context, c.text FROM pages p JOIN chunks c USING (page_id)"
                " LEFT JOIN vectors v USING (chunk_id) WHERE p.doc_id = ? AND v.seq IS NULL"
                " ORDER BY p.page, c.ordinal",
                (doc_id,),
            ).fetchall()
            for chunk_id, context, text in rows:
                body = zlib.decompress(text).decode()
                yield PendingChunk(chunk_id, embedding_text(context, body))

    def count(self) -> int:
        return int(self._db.value("SELECT COUNT(*) FROM chunks"))

    def count_embedded(self, chunk_ids: Sequence[int]) -> int:
        """How many of these chunks are in the reader, with their vectors."""
        return sum(row[0] for row in self._db.rows_in("SELECT COUNT(*) FROM vectors WHERE chunk_id IN", chunk_ids))

    def longest(self) -> int:
        """Tokens of the longest chunk; 0 in an empty index."""
        return int(self._db.value("SELECT COALESCE(MAX(tokens), 0) FROM chunks"))

    def write(self, chunk_ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Store a batch, (n, dim)."""
        blobs = pack_vectors(vectors)
        with self._db.transaction() as connection:
            first = connection.reserve_sequence("vectors", len(blobs))
            rows = zip(range(first, first + len(blobs)), chunk_ids, blobs, strict=True)
            connection.put_rows("vectors", "seq, chunk_id, vector", rows, over="chunk_id")

    def touch(self, doc_id: str) -> None:
        """Number a document's vectors anew, so that the collections take its changed metadata; part of the caller's
        transaction."""
        ours = (
            "FROM vectors WHERE chunk_id IN"
            " (SELECT chunk_id FROM chunks JOIN pages USING (page_id) WHERE pages.doc_id = ?)"
        )
        chunks = self._db.column(f"SELECT chunk_id {ours} ORDER BY seq", (doc_id,))
        numbered = enumerate(chunks, start=self._db.reserve_sequence("vectors", len(chunks)))
        self._db.executemany("UPDATE vectors SET seq = ? WHERE chunk_id = ?", list(numbered))
        self._db.bump_revision()  # a document without text has no vector to tell by

    def revision(self) -> int:
        """How many changes the collections must follow though no vector changed: a new name, a drawn page."""
        return int(self._db.meta(REVISION, "0"))

    def vectors(self, chunk_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """chunk_id → vector (dim,), of these chunks."""
        rows = self._db.rows_in("SELECT chunk_id, vector FROM vectors WHERE chunk_id IN", chunk_ids)
        return dict(zip(*_matrix(rows), strict=True))

    def of_pages(self, page_ids: Sequence[int]) -> tuple[list[int], NDArray[np.float32]]:
        """page ids (one a chunk) and vectors (n, dim) of these pages."""
        query = "SELECT page_id, vector FROM chunks JOIN vectors USING (chunk_id) WHERE page_id IN"
        rows = self._db.rows_in(query, page_ids)
        return _matrix(rows)

    def nearest(
        self, page_ids: Sequence[int], asked: NDArray[np.float32], most: int | None = None
    ) -> dict[int, list[ComparedChunk]]:
        """page_id → its chunks, nearest to a question first, at most so many of each page."""
        rows: dict[int, list[Any]] = {page_id: [] for page_id in page_ids}
        query = "SELECT page_id, text, box, regions, vector FROM chunks JOIN vectors USING (chunk_id) WHERE page_id IN"
        for row in self._db.rows_in(query, page_ids, "ORDER BY page_id, ordinal"):
            rows[row[0]].append(row)
        return {page_id: _nearest(found, asked, most) for page_id, found in rows.items()}

    def page_means(self, page_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """page_id → the direction its chunks share, (dim,), unit length; zero for a page without text."""
        import numpy as np

        dim = self.dim() or 1
        means = {page_id: np.zeros(dim, dtype=np.float32) for page_id in page_ids}
        for owner, vector in zip(*self.of_pages(page_ids), strict=True):
            means[owner] += vector
        return {page_id: total / (np.linalg.norm(total) or 1.0) for page_id, total in means.items()}

    def page_ids(self, keys: Sequence[str], *, through_seq: int) -> dict[str, int]:
        """Chroma record id → page_id, for records that are still current: present, and written by `through_seq`."""
        found: dict[str, int] = {}
        for part in batched([key.rsplit(":", 2) for key in keys], values=3):
            # The plus keeps SQLite from walking all vectors by their numbers: each wanted key is looked up.
            rows = self._db.execute(
                f"WITH wanted (doc_id, page, ordinal) AS (VALUES {','.join(['(?, ?, ?)'] * len(part))})"
                " SELECT w.doc_id, w.page, w.ordinal, p.page_id FROM wanted w"
                " JOIN pages p ON p.doc_id = w.doc_id AND p.page = w.page"
                " JOIN chunks c ON c.page_id = p.page_id AND c.ordinal = w.ordinal"
                " JOIN vectors v ON v.chunk_id = c.chunk_id WHERE +v.seq <= ?",
                (*(value for d, p, o in part for value in (d, int(p), int(o))), through_seq),
            )
            found.update((f"{doc_id}:{page}:{ordinal}", int(page_id)) for doc_id, page, ordinal, page_id in rows)
        return found


REGIONS = "regions"
OFF = "off"

_SHORTEST = 3  # letters and digits of a line that can mean anything


@dataclass(frozen=True, slots=True)
class PageBlobs:
    """A page's row, ready to be stored: `first` for the collection, the others packed as the encoder's side packs."""

    page_id: int
    first: bytes
    boxes: bytes
    sketch: bytes
    vectors: bytes


@dataclass(frozen=True, slots=True)
class PageImage:
    """A drawn page that the visual encoder has not seen yet."""

    page_id: int
    doc_id: str
    page: int
    name: str  # for messages
    source_path: str  # of its document
    path: str


@dataclass(frozen=True, slots=True)
class VisualSide:
    """What fills the visual side of an index: nothing, the text encoder (`regions`), or a visual model."""

    kind: Literal["off", "regions", "model"]
    name: str  # as it stands in the index; empty while none was chosen
    dim: int
    problem: str  # why the last run could not finish it; empty if it could


def visual_kind(name: str) -> Literal["off", "regions", "model"]:
    """Of an encoder's name, as it stands in an index or is asked for."""
    if name in ("", OFF):
        return "off"
    return "regions" if name.partition(":")[0] == REGIONS else "model"


def pack_lines(lines: Sequence[Line]) -> bytes:
    """What OCR read of a page, as it is stored."""
    telling = [line for line in lines if sum(char.isalnum() for char in line.text) >= _SHORTEST]
    rows = [[line.text, *(round(edge, 4) for edge in line.box)] for line in telling]
    return zlib.compress(json.dumps(rows, ensure_ascii=False).encode())


def _lines(blob: bytes) -> list[Line]:
    return [Line(text, cast(Box, tuple(box))) for text, *box in json.loads(zlib.decompress(blob))]


class Visual(_Vectors):
    """What the visual encoder saw, page by page, and the lines that OCR read.

    The encoder is "regions:…", "colpali:…" or "off"."""

    _side, _table = "visual", "page_vectors"

    def side(self) -> VisualSide:
        name = self.encoder()
        return VisualSide(visual_kind(name), name, self.dim(), self.problem())

    def set_encoder(self, name: str, dim: int) -> None:
        """Declare the encoder. Vectors of another one are dropped: an index never mixes two."""
        if self.encoder() == name and self.dim() == dim:
            return
        values = {"visual_encoder": name, "visual_dim": str(dim), "visual_problem": ""}
        if self.encoder():
            # A new identity parts the catalog from a visual collection filled by the old encoder.
            values["catalog_id"] = uuid.uuid4().hex
        with self._db.transaction() as connection:
            connection.execute("DELETE FROM page_vectors")
            connection.execute("DELETE FROM failed_pages WHERE stage = ?", (STAGE_VISUAL,))  # another may see more
            connection.write_meta(values)

    def problem(self) -> str:
        """Why the last run could not finish this side; empty if it could."""
        return self._db.meta("visual_problem")

    def set_problem(self, reason: str) -> None:
        if self.problem() != reason:
            self._db.write_meta({"visual_problem": reason})

    def write_lines(self, page_id: int, packed: bytes) -> None:
        """Keep what OCR read of a page; part of the caller's transaction. Vectors of the lines before are due again."""
        self._db.put_rows("page_lines", "page_id, lines", [(page_id, packed)], over="page_id")
        if visual_kind(self.encoder()) == "regions":
            self._db.execute("DELETE FROM page_vectors WHERE page_id = ?", (page_id,))

    def lines(self, page_id: int) -> list[Line]:
        packed = self._db.value("SELECT lines FROM page_lines WHERE page_id = ?", (page_id,))
        return [] if packed is None else _lines(packed)

    def pages_with_new_lines(self) -> list[int]:
        """Pages whose lines have no vectors yet."""
        return self._db.column(
            "SELECT page_id FROM page_lines LEFT JOIN page_vectors USING (page_id) WHERE seq IS NULL ORDER BY page_id"
        )

    def unseen_images(self) -> list[PageImage]:
        """Drawn pages without vectors, document by document."""
        rows = self._db.execute(
            "SELECT page_id, doc_id, page, filename, source_path FROM pages JOIN documents USING (doc_id)"
            " LEFT JOIN page_vectors USING (page_id) WHERE image = 1 AND seq IS NULL"
            " ORDER BY documents.timestamp, doc_id, page"
        )
        return [
            PageImage(
                page_id, doc_id, page, f"{name}, page {page}", source_path, self._db.paths.image_path(doc_id, page)
            )
            for page_id, doc_id, page, name, source_path in rows
        ]

    def write(self, pages: Sequence[PageBlobs]) -> None:
        with self._db.transaction() as connection:
            connection.visual._write(pages)

    def give_up(self, image: PageImage, failed: FailedPage) -> None:
        """The visual encoder cannot see this page. An empty row keeps it from being tried in every run."""
        with self._db.transaction() as connection:
            connection.visual._write([PageBlobs(image.page_id, b"", b"", b"", b"")])
            connection.ledger.record(image.doc_id, [failed])

    def _write(self, pages: Sequence[PageBlobs]) -> None:
        query = "SELECT page_id FROM pages WHERE page_id IN"
        there = {row[0] for row in self._db.rows_in(query, [page.page_id for page in pages])}
        first = self._db.reserve_sequence("page_vectors", len(pages))
        rows = [(seq, *astuple(page)) for seq, page in enumerate(pages, start=first) if page.page_id in there]
        self._db.put_rows("page_vectors", "seq, page_id, first, boxes, sketch, vectors", rows, over="page_id")

    def count(self) -> int:
        return self._db.pages.totals().page_vectors

    def count_unseen(self) -> int:
        """Pages that a visual model has not looked at; none where `regions` or nothing is in use."""
        if self.side().kind != "model":
            return 0
        return int(
            self._db.value(
                "SELECT COUNT(*) FROM pages LEFT JOIN page_vectors USING (page_id) WHERE COALESCE(length(first), 0) = 0"
            )
        )

    def vectors(self, page_ids: Sequence[int] | None = None) -> Iterator[tuple[int, bytes]]:
        """page_id and packed vectors, of these pages or of all."""
        return self._column("vectors", page_ids)

    def first(self, page_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """page_id → what the collection holds of a page, (dim,)."""
        import numpy as np

        found = self._column("first", page_ids)
        return {page_id: unpack_vectors([first])[0].astype(np.float32) for page_id, first in found}

    def sketches(self, page_ids: Sequence[int] | None = None) -> Iterator[tuple[int, bytes]]:
        """page_id and packed sketches, of these pages or of all."""
        return self._column("sketch", page_ids)

    def seen(self, page_ids: Sequence[int]) -> Iterator[tuple[int, bytes, bytes]]:
        """page_id, packed vectors and boxes of pages that a visual model saw. Read together, so that they fit."""
        query = "SELECT page_id, vectors, boxes FROM page_vectors WHERE length(vectors) > 0 AND page_id IN"
        yield from self._db.rows_in(query, page_ids)

    def embedded_lines(self, page_ids: Sequence[int]) -> dict[int, tuple[list[Line], bytes]]:
        """page_id → its lines and their packed vectors, in the same order, of pages that have some."""
        query = (
            "SELECT page_id, lines, vectors FROM page_lines JOIN page_vectors USING (page_id)"
            " WHERE length(vectors) > 0 AND page_id IN"
        )
        return {int(row[0]): (_lines(row[1]), row[2]) for row in self._db.rows_in(query, page_ids)}

    def _column(self, name: str, page_ids: Sequence[int] | None) -> Iterator[tuple[int, bytes]]:
        query = f"SELECT page_id, {name} FROM page_vectors"
        if page_ids is None:
            rows: Iterable[Any] = self._db.execute(f"{query} ORDER BY page_id")
        else:
            rows = self._db.rows_in(f"{query} WHERE page_id IN", page_ids, "ORDER BY page_id")
        yield from ((int(row[0]), row[1]) for row in rows)
