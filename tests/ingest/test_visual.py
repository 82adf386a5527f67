"""The visual stage on real pages: `regions` by default, real colpali-engine classes on tiny checkpoints by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ingest.report import IngestSummary, Observer
from ingest.run import ingest
from research.contract import ContextBuilder, SearchEngine
from research.encoders import checkpoint_of, quiet, unpack
from research.encoders.colpali import engine as colpali_classes
from research.errors import UsageError
from research.index import Index
from research.search import SearchOutcome
from research.settings import Settings
from research.store import Catalog, ChromaClient, IndexPaths
from tests.conftest import MakePdf, Tiny, write_pdf
from tests.ingest.test_stages import scan

pytestmark = pytest.mark.slow
QUESTION = "How many weeks of parental leave?"
PLAIN = Settings(ocr="off")
RAPID = Settings(ocr_engine="rapidocr", images=False)


class Notes(Observer):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def on_note(self, message: str) -> None:
        self.said.append(message)


@pytest.fixture
def index(tmp_path: Path) -> IndexPaths:
    return IndexPaths(tmp_path / "index")


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    write_pdf(folder / "leave.pdf", ["Parental leave is 18 weeks.", "Sick leave is paid for ten weeks."])
    write_pdf(folder / "crisis.pdf", ["The crisis of 2008 began with mortgages."])
    return folder


@pytest.fixture(scope="module")
def plain_index(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> IndexPaths:
    """The documents with images and `regions`; tests that write take a copy."""
    made = IndexPaths(tmp_path_factory.mktemp("plain") / "index")
    run(docs, made, PLAIN)
    return made


@pytest.fixture(scope="module")
def seen_index(tiny: Tiny, docs: Path, plain_index: IndexPaths, tmp_path_factory: pytest.TempPathFactory) -> IndexPaths:
    """The same, seen by a tiny ColIdefics3."""
    made = copy(plain_index, tmp_path_factory.mktemp("seen"))
    run(docs, made, model(tiny("ColIdefics3")))
    return made


def copy(index: IndexPaths, folder: Path) -> IndexPaths:
    return IndexPaths(Path(shutil.copytree(index.root, folder / "index")))


def run(path: Path, index: IndexPaths, settings: Settings, notes: Notes | None = None) -> IngestSummary:
    return ingest(index, [path], settings=settings, observer=notes or Notes())


def model(folder: Path, **other: object) -> Settings:
    return Settings(ocr="off", visual=str(folder), device="cpu", **other)  # type: ignore[arg-type]


def search(index: IndexPaths, mode: str, question: str = QUESTION) -> SearchOutcome:
    with ChromaClient(index.root) as client:
        return SearchEngine(client).run(question, 10, mode)


@pytest.mark.parametrize("name", ["ColIdefics3", "ColModernVBert", "ColIdefics3+adapter"])
def test_pages_are_seen_and_scored_as_colpali_engine_scores_them(
    tiny: Tiny, docs: Path, plain_index: IndexPaths, tmp_path: Path, name: str
) -> None:
    import torch
    from PIL import Image

    index = copy(plain_index, tmp_path)
    summary = run(docs, index, model(tiny(name)))
    assert (summary.visual_pages, summary.visual_error, summary.visual_failures) == (3, "", [])
    outcome = search(index, "visual")
    ours = {(found.page.doc_id, found.page.page): found.legs["visual"].parts["maxsim"] for found in outcome.found}
    assert len(ours) == 3
    family = name.partition("+")[0]
    with quiet(), torch.inference_mode():
        classes = colpali_classes()
        loaded = getattr(classes, family).from_pretrained(tiny(name), local_files_only=True).eval()
        processor = getattr(classes, f"{family}Processor").from_pretrained(tiny(family), local_files_only=True)
        asked = loaded(**processor.process_queries([QUESTION]))[0]
        for (doc_id, page), score in ours.items():
            with Image.open(index.image_path(doc_id, page)) as image:
                seen = loaded(**processor.process_images([image.convert("RGB")]))[0]
            theirs = float(processor.score_multi_vector([asked], [seen], device="cpu")[0, 0])
            assert abs(score - theirs) < 1e-3


def test_a_models_page_vectors_fill_the_visual_collection(seen_index: IndexPaths) -> None:
    with ChromaClient(seen_index.root) as client:
        stored = client.visual_collection.get(include=["metadatas", "embeddings"])
        dim = client.catalog.visual.dim()
        assert np.asarray(stored["embeddings"]).shape == (3, dim)
        assert {(str(m["filename"]), m["page"]) for m in stored["metadatas"] or []} == {
            ("leave.pdf", 1),
            ("leave.pdf", 2),
            ("crisis.pdf", 1),
        }
        assert client.text_collection.count() == client.catalog.chunks.count()
    hybrid = search(seen_index, "hybrid")
    assert [leg.status for leg in hybrid.coverage.legs] == ["ok", "ok", "ok"]
    assert hybrid.coverage.complete
    assert {name for found in hybrid.found for name in found.legs} == {"lexical", "dense", "visual"}
    with Index.open(seen_index.root) as opened:
        results = opened.search(QUESTION, highlights=True).results
    assert any(found.regions for found in results)
    for found in results:
        for region in found.regions:
            x0, y0, x1, y1 = region.box
            assert 0 <= x0 < x1 <= 1
            assert 0 <= y0 < y1 <= 1


def test_another_encoder_sees_everything_anew_and_leaves_the_text_alone(
    tiny: Tiny, docs: Path, plain_index: IndexPaths, tmp_path: Path
) -> None:
    index = copy(plain_index, tmp_path)
    before = _text_vectors(index)
    notes = Notes()
    summary = run(docs, index, model(tiny("ColIdefics3")), notes)
    assert summary.visual_pages == 3
    assert any("3 pages change" in note for note in notes.said)
    assert _text_vectors(index) == before
    # The index remembers: nothing to do, nothing to say.
    notes = Notes()
    again = run(docs, index, Settings(ocr="off", device="cpu"), notes)
    assert (again.visual_pages, notes.said) == (0, [])
    assert search(index, "visual").found
    # And back.
    run(docs, index, Settings(ocr="off", visual="regions"))
    assert _text_vectors(index) == before
    assert search(index, "visual").found[0].page.filename == "leave.pdf"
    with ChromaClient(index.root) as client:
        assert np.asarray(client.visual_collection.get(include=["embeddings"])["embeddings"]).shape == (3, 384)


def test_new_documents_are_seen_by_the_model_the_index_has(
    seen_index: IndexPaths, make_pdf: MakePdf, tmp_path: Path
) -> None:
    index = copy(seen_index, tmp_path)
    extra = make_pdf("extra.pdf", ["Order intake rose in every region."])
    summary = run(extra, index, Settings(ocr="off", device="cpu"))
    assert summary.visual_pages == 1
    with ChromaClient(index.root) as client:
        assert client.visual_collection.count() == 4
    assert len(search(index, "visual").found) == 4


def test_a_folder_that_is_no_model_costs_only_the_visual_side(docs: Path, tmp_path: Path, index: IndexPaths) -> None:
    (tmp_path / "nomodel").mkdir()
    notes = Notes()
    summary = run(docs, index, model(tmp_path / "nomodel"), notes)
    assert "is no model" in summary.visual_error
    assert summary.count("added") == 2
    assert any("the text side goes on" in note for note in notes.said)
    hybrid = search(index, "hybrid")
    assert hybrid.found[0].page.filename == "leave.pdf"
    visual = next(leg for leg in hybrid.coverage.legs if leg.name == "visual")
    assert visual.status == "off"
    assert "is no model" in visual.reason
    # A model that works mends it.
    assert run(docs, index, Settings(ocr="off")).visual_error == ""
    assert [leg.status for leg in search(index, "hybrid").coverage.legs] == ["ok", "ok", "ok"]


def test_weights_that_vanish_are_told_in_coverage(
    tiny: Tiny, docs: Path, tmp_path: Path, plain_index: IndexPaths
) -> None:
    index = copy(plain_index, tmp_path)
    folder = Path(shutil.copytree(tiny("ColIdefics3"), tmp_path / "mine"))
    run(docs, index, model(folder))
    (folder / "model.safetensors").unlink()
    hybrid = search(index, "hybrid")
    assert hybrid.found[0].page.filename == "leave.pdf"
    visual = next(leg for leg in hybrid.coverage.legs if leg.name == "visual")
    assert (visual.status, hybrid.coverage.complete) == ("failed", False)
    assert "weights" in visual.reason


def test_a_checkpoint_with_other_weights_is_not_mixed_with_the_indexs(
    tiny: Tiny, docs: Path, tmp_path: Path, plain_index: IndexPaths
) -> None:
    index = copy(plain_index, tmp_path)
    folder = Path(shutil.copytree(tiny("ColIdefics3"), tmp_path / "mine"))
    run(docs, index, model(folder))
    shutil.rmtree(folder)
    shutil.copytree(tiny("ColModernVBert"), folder)
    visual = search(index, "visual")
    assert "weights have changed" in visual.coverage.legs[0].reason
    notes = Notes()
    summary = run(docs, index, model(folder), notes)
    assert summary.visual_pages == 3
    assert any("pages change" in note for note in notes.said)
    assert len(search(index, "visual").found) == 3


def test_a_model_needs_images(tiny: Tiny, docs: Path, index: IndexPaths) -> None:
    with pytest.raises(UsageError, match="images are switched off"):
        run(docs, index, model(tiny("ColIdefics3"), images=False))


def test_documents_read_without_images_get_them_for_a_model(tiny: Tiny, docs: Path, index: IndexPaths) -> None:
    run(docs, index, Settings(ocr="off", images=False))
    assert run(docs, index, model(tiny("ColIdefics3"))).visual_pages == 3


def test_a_damaged_page_image_costs_one_page(tiny: Tiny, docs: Path, plain_index: IndexPaths, tmp_path: Path) -> None:
    index = copy(plain_index, tmp_path)
    with Catalog(index) as catalog:
        doc_id = catalog.documents.all()[0].doc_id
    Path(index.image_path(doc_id, 1)).write_bytes(b"no picture")
    seen = run(docs, index, model(tiny("ColIdefics3")))
    assert len(seen.visual_failures) == 1
    assert "page 1" in seen.visual_failures[0]
    assert [(failed.page, failed.stage) for failed in seen.failed_pages] == [(1, "visual")]
    later = run(docs, index, model(tiny("ColIdefics3")))
    assert (later.visual_pages, later.failed_pages) == (0, [])
    assert [(waiting.page, waiting.stage) for waiting in later.waiting_pages] == [(1, "visual")]
    hybrid = search(index, "hybrid")
    assert hybrid.coverage.pages_without_visual == 1
    assert not hybrid.coverage.complete
    assert len(search(index, "visual").found) == 2


def test_off_empties_the_visual_side_and_is_remembered(docs: Path, plain_index: IndexPaths, tmp_path: Path) -> None:
    index = copy(plain_index, tmp_path)
    run(docs, index, Settings(ocr="off", visual="off"))
    run(docs, index, PLAIN)
    with ChromaClient(index.root) as client:
        assert client.visual_collection.count() == 0
    hybrid = search(index, "hybrid")
    assert hybrid.found[0].page.filename == "leave.pdf"
    assert [leg.status for leg in hybrid.coverage.legs] == ["ok", "ok", "off"]
    assert [leg.status for leg in search(index, "visual").coverage.legs] == ["failed"]


def test_lines_of_a_scan_are_regions(tmp_path: Path, index: IndexPaths) -> None:
    pages = ["The lighthouse\nkeeper left in March.", "Herring prices rose\nby nine percent."]
    run(scan(tmp_path / "scan.pdf", pages), index, RAPID)
    with Catalog(index) as catalog:
        assert catalog.visual.encoder() == f"regions:{catalog.chunks.encoder()}"
        assert catalog.visual.count() == 2
        pages = [row[0] for row in catalog.execute("SELECT page_id FROM pages ORDER BY page")]
        for lines, packed in catalog.visual.embedded_lines(pages).values():
            assert len(lines) == len(unpack(packed)) > 0
            assert all(line.text for line in lines)
    with Index.open(index.root) as opened:
        best = opened.search("How much did herring cost?", highlights=True).results[0]
    assert (best.page, best.visual_match) == (2, True)
    # The text stands in the upper half of a wide page.
    box = best.regions[0].box
    assert 0 <= box[0] < 0.2
    assert 0.05 < box[1] < box[3] < 0.75
    with ChromaClient(index.root) as client:
        source = ContextBuilder(SearchEngine(client), client).build("herring prices").to_dict()["sources"][0]
    assert source["ocr"] is True
    assert source["ocr_engine"].startswith("rapidocr")
    assert source["regions"][0]["box"]


def test_text_is_not_counted_twice(plain_index: IndexPaths) -> None:
    with_it, without = search(plain_index, "hybrid"), search(plain_index, "text")
    assert [(f.page.page_id, f.score) for f in with_it.found] == [(f.page.page_id, f.score) for f in without.found]


def _text_vectors(index: IndexPaths) -> list[tuple[int, bytes]]:
    with Catalog(index) as catalog:
        rows = catalog.execute("SELECT chunk_id, vector FROM vectors ORDER BY chunk_id")
        return [(int(row[0]), bytes(row[1])) for row in rows]


@pytest.mark.parametrize("sketched", [10_000, 1], ids=["by sketches", "by the collection"])
def test_candidates_are_chosen_where_pages_are_many(
    seen_index: IndexPaths, monkeypatch: pytest.MonkeyPatch, sketched: int
) -> None:
    everything = search(seen_index, "visual")
    monkeypatch.setattr("research.search.late_interaction.EXACT_PAGES", 1)
    monkeypatch.setattr("research.search.late_interaction.SKETCHED_PAGES", sketched)
    chosen = search(seen_index, "visual")
    assert [(f.page.page_id, f.score) for f in chosen.found] == [
        (f.page.page_id, pytest.approx(f.score, abs=1e-6)) for f in everything.found
    ]


def test_an_open_engine_follows_the_index_to_another_model(
    tiny: Tiny, docs: Path, seen_index: IndexPaths, tmp_path: Path
) -> None:
    index = copy(seen_index, tmp_path)
    with ChromaClient(index.root) as client:
        engine = SearchEngine(client)
        assert len(engine.run(QUESTION, 10, "visual").found) == 3
        run(docs, index, model(tiny("ColModernVBert")))
        outcome = engine.run(QUESTION, 10, "visual")
    fresh = search(index, "visual")
    assert [leg.status for leg in outcome.coverage.legs] == ["ok"]
    assert [(f.page.page_id, f.score) for f in outcome.found] == [(f.page.page_id, f.score) for f in fresh.found]


def test_pooling_belongs_to_the_name(tiny: Tiny, docs: Path, seen_index: IndexPaths, tmp_path: Path) -> None:
    index, notes = copy(seen_index, tmp_path), Notes()
    run(docs, index, Settings(ocr="off", visual=f"{tiny('ColIdefics3')}+pool3", device="cpu"), notes)
    assert any("+pool3" in note for note in notes.said)
    with Catalog(index) as catalog:
        assert catalog.visual.encoder().endswith("+pool3")
    assert len(search(index, "visual").found) == 3


def test_a_model_that_only_the_index_names_is_not_loaded(
    seen_index: IndexPaths, docs: Path, make_pdf: MakePdf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As somebody else would get the index, who has never named that model."""
    index = copy(seen_index, tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hybrid = search(index, "hybrid")
    assert [leg.status for leg in hybrid.coverage.legs] == ["ok", "ok", "failed"]
    assert "which you have not allowed" in hybrid.coverage.legs[2].reason
    with Catalog(index) as catalog:
        name = catalog.visual.encoder()
    # New documents get their text, the visual side waits and says why.
    extra = make_pdf("extra.pdf", ["Order intake rose in every region."])
    summary = run(extra, index, Settings(ocr="off", device="cpu"))
    assert summary.count("added") == 1
    assert name in summary.visual_error
    assert "allowed_encoders" in summary.visual_hint
    allowed = Settings(ocr="off", device="cpu", allowed_encoders=(name,))
    assert run(extra, index, allowed).visual_pages == 1
    with ChromaClient(index.root) as client:
        engine = SearchEngine(client, named_encoders=allowed.named_encoders)
        assert [leg.status for leg in engine.run(QUESTION, 10, "hybrid").coverage.legs] == ["ok", "ok", "ok"]
    assert search(index, "visual").coverage.legs[0].status == "failed", "it holds while it is said"
    # Naming it to an ingest is remembered.
    run(docs, index, model(Path(checkpoint_of(name))))
    assert search(index, "visual").coverage.legs[0].status == "ok"


def test_permission_that_cannot_be_kept_is_told(
    tiny: Tiny, docs: Path, plain_index: IndexPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    notes = Notes()
    assert run(docs, copy(plain_index, tmp_path), model(tiny("ColIdefics3")), notes).visual_pages == 3
    assert any("cannot be remembered" in note for note in notes.said)
