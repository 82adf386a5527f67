"""A reranker orders the first pages by their passages, or is left off: a tiny cross-encoder in this process, the same
behind an address, and addresses that answer anything else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from small_index import add, embed, open_catalog

from research.encoders import QuestionEncoder, TextEncoder
from research.errors import CtxError, EncoderUnavailable
from research.index import Index
from research.models import Question, SearchResults
from research.search.highlights import Highlighter
from research.search.legs import Chosen, Ranked
from research.search.reranker import DEPTH, CrossEncoderReranker, PageReranker, describe, find, load_reranker
from research.search.vector_legs import DenseLeg, VisualLeg
from research.settings import Settings
from research.store import publish as writer
from tests.conftest import built_once
from tests.research.encoders.test_unsafe_models import evil_code, evil_pickle
from tests.research.encoders.tiny_text import edit_json, make_tiny_cross
from tests.serving import KEY, Asked, Reply, Served, serving

pytestmark = pytest.mark.filterwarnings("ignore")

QUESTION = "What happened to herring prices in the harbour?"
THINGS = ["boats", "nets", "lamps", "ropes", "crates", "keepers", "pilots", "anchors"]
PAGES = [f"Herring prices in the harbour of {thing} rose by {n} percent." for n in range(5) for thing in THINGS]


@pytest.fixture(scope="module")
def index(encoder: TextEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty pages that all fit the question, and one without text."""

    def make(root: Path) -> None:
        with open_catalog(root) as catalog:
            add(catalog, {f"/docs/part{n}.pdf": PAGES[n::4] for n in range(4)} | {"/docs/empty.pdf": [""]})
            embed(catalog, encoder)
            writer.publish(catalog)

    return built_once(tmp_path_factory, "reranked", make)


Score = Callable[[str, list[str]], list[float]]


def checksums(_: str, texts: list[str]) -> list[float]:
    return [crc32(text.encode()) / 2**32 for text in texts]


def answering(score: Score) -> Callable[[Asked], Reply]:
    """What an address answers that scores so, worst text first."""

    def answer(asked: Asked) -> Reply:
        scores = score(asked.document["query"], asked.document["documents"])
        rows = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
        return Reply({"model": "tiny", "results": sorted(rows, key=lambda row: row["relevance_score"])})

    return answer


@pytest.fixture
def server(loopback: None) -> Iterator[Served]:
    with serving(answering(checksums)) as served:
        yield served


@pytest.fixture(scope="module")
def plain(index: Path) -> SearchResults:
    """What is found without a reranker."""
    return search(index)


def search(
    index: Path, reranker: str = "", question: str = QUESTION, *, most: int = 50, **settings: Any
) -> SearchResults:
    with Index.open(index, Settings(reranker=reranker, **settings)) as opened:
        return opened.search(question, num_results=most)


def shown(found: SearchResults) -> list[dict[str, Any]]:
    return [asdict(result) for result in found.results]


def order(found: SearchResults) -> list[str]:
    return [result.ref for result in found.results]


@pytest.mark.slow
def test_the_order_follows_the_scores_of_a_cross_encoder(index: Path, plain: SearchResults, tiny_cross: Path) -> None:
    found = search(index, str(tiny_cross))
    assert len(plain.results) >= 40
    assert all("reranker" not in result.legs for result in plain.results)
    looked_at, rest = found.results[:DEPTH], found.results[DEPTH:]
    scores = [result.legs["reranker"].score for result in looked_at]
    assert scores != [page.relevance_score for page in looked_at]
    assert len(set(scores)) > 5
    assert [result.legs["reranker"].rank for result in looked_at] == list(range(1, DEPTH + 1))
    assert order(found)[:DEPTH] != order(plain)[:DEPTH]
    assert sorted(order(found)[:DEPTH]) == sorted(order(plain)[:DEPTH]), "of the first pages, and of no others"
    kept = [asdict(result) | {"relevance_score": 0.0} for result in rest]
    assert kept == [each | {"relevance_score": 0.0} for each in shown(plain)[DEPTH:]]
    # Each place keeps its sum; how likely that is to answer hangs a little on which ten pages stand first.
    scores = [result.relevance_score for result in found.results]
    assert scores == pytest.approx([result.relevance_score for result in plain.results], abs=0.005)
    assert scores == sorted(scores, reverse=True)
    assert found.coverage.notes == []
    assert found.timings["reranker"] > 0
    assert describe(str(tiny_cross)).startswith(f"{tiny_cross} answers in ")
    assert "reranker" not in plain.timings


@pytest.mark.slow
def test_an_address_is_as_good(index: Path, tiny_cross: Path, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_RERANKER_KEY", KEY)
    server.answer = answering(CrossEncoderReranker(str(tiny_cross)).score)
    here, there = search(index, str(tiny_cross)), search(index, f"tiny@{server.url}/v1/rerank")
    assert order(there) == order(here)
    assert there.results[0].legs["reranker"].score == pytest.approx(here.results[0].legs["reranker"].score, abs=1e-4)
    [asked] = server.asked
    assert (asked.path, sorted(asked.document)) == ("/v1/rerank", ["documents", "model", "query"])
    assert (asked.document["model"], asked.document["query"]) == ("tiny", QUESTION)
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    # What it reads of a page is its passages, under the name of the document.
    assert len(asked.document["documents"]) == DEPTH
    for text in asked.document["documents"]:
        name, passage = text.split("\n")
        assert name.startswith("part")
        assert passage in PAGES


@pytest.mark.slow
def test_what_is_found_before_the_limit_is_cut_is_reordered(index: Path, server: Served) -> None:
    """The best of thirty, though three are asked for; in every mode."""
    name = f"{server.url}/rerank"
    assert order(search(index, name, most=3)) == order(search(index, name))[:3]
    assert "model" not in server.asked[0].document
    for mode in ("lexical", "dense"):
        alone = search(index, name, mode=mode).results
        assert [result.legs["reranker"].rank for result in alone[:DEPTH]] == list(range(1, DEPTH + 1))
    seen = len(server.asked)
    assert search(index, name, "What is a nonsensicality?", mode="lexical").results == []
    assert len(server.asked) == seen, "nothing found, nothing asked"


def test_the_form_of_text_embeddings_inference(index: Path, server: Served) -> None:
    expected = order(search(index, f"{server.url}/rerank"))

    def answer(asked: Asked) -> Reply:
        if "texts" not in asked.document:
            return Reply(b"Failed to deserialize the JSON body: missing field `texts` at line 1", 422)
        scores = checksums(asked.document["query"], asked.document["texts"])
        return Reply([{"index": index, "score": score} for index, score in enumerate(scores)])

    server.answer = answer
    assert order(search(index, f"{server.url}/rerank")) == expected


def results(asked: Asked) -> list[dict[str, Any]]:
    return [{"index": n, "relevance_score": float(n)} for n in range(len(asked.document["documents"]))]


BROKEN: dict[str, tuple[Callable[[Asked], Reply], str]] = {
    "down": (lambda _: Reply(b"", 503), "answered 503"),
    "hangs": (lambda _: Reply(never=True), "did not answer within 1 s"),
    "page": (lambda _: Reply(b"<html></html>"), "answers with a web page"),
    "key": (lambda _: Reply({"message": "no"}, 401), "answered 401: no"),
    "form": (lambda _: Reply({"scores": [1, 2]}), "in another form than a reranker does"),
    "rows": (lambda _: Reply({"results": [1, 2]}), "in another form than a reranker does"),
    "nothing": (lambda _: Reply({"results": []}), f"gives 0 scores for {DEPTH} texts"),
    "fewer": (lambda asked: Reply({"results": results(asked)[1:]}), f"gives {DEPTH - 1} scores for {DEPTH} texts"),
    "twice": (lambda asked: Reply({"results": [*results(asked)[1:], results(asked)[1]]}), "not each of them once"),
    "nan": (lambda a: Reply({"results": [*results(a)[1:], {"index": 0, "score": float("nan")}]}), "is no number"),
    "null": (lambda a: Reply({"results": [*results(a)[1:], {"index": 0, "score": None}]}), "is no number"),
    "text": (lambda a: Reply({"results": [*results(a)[1:], {"index": "0", "score": 1.0}]}), "is no number"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_one_that_fails_is_left_off_and_told(index: Path, plain: SearchResults, server: Served, what: str) -> None:
    server.answer, told = BROKEN[what]
    seconds = 1 if what == "hangs" else 50
    found = search(index, f"{server.url}/rerank", request_timeout=seconds)
    assert shown(found) == shown(plain)
    [note] = found.coverage.notes
    assert note.startswith("the reranker failed (")
    assert told in note
    assert note.endswith("; the pages stand in their order without it")
    assert all(leg.status == "ok" for leg in found.coverage.legs)
    with pytest.raises(CtxError, match=r"answered|did not answer|web page|form|scores|number"):
        describe(f"{server.url}/rerank", timeout=0.3 if what == "hangs" else 50)


def test_pages_that_the_question_names_stay_where_they_are(index: Path, server: Served) -> None:
    asked = "What does page 3 of part2.pdf say about herring prices?"
    plain, found = search(index, question=asked), search(index, f"{server.url}/rerank", asked)
    assert "page-references" in plain.results[0].legs
    assert found.results[0].ref == plain.results[0].ref
    assert "reranker" not in found.results[0].legs
    assert order(found) != order(plain)


def test_a_page_without_text_keeps_its_place(index: Path, server: Served, encoder: TextEncoder) -> None:
    with Index.open(index) as opened:
        words = QuestionEncoder(encoder)
        visual = VisualLeg(DenseLeg(opened.vectors, words), words, opened.vectors)
        reranker = PageReranker(f"{server.url}/rerank", Highlighter(words, visual))
        with opened.catalog.snapshot() as reader:
            [empty] = [info.doc_id for info in opened.documents.list("empty.pdf")]
            [part] = [info.doc_id for info in opened.documents.list("part1.pdf")]
            ids = reader.pages.ids_at([f"{part}:1", f"{empty}:1", f"{part}:2", f"{part}:3"])
            ranked = [Ranked(page_id, "", 1.0 / place) for place, page_id in enumerate(ids, start=1)]
            found = reranker.rerank(reader, Question(QUESTION), ranked, Chosen())
            assert found.ranked[1] == ranked[1]
            assert set(found.scores) == set(ids) - {ids[1]}
            alone = reranker.rerank(reader, Question(QUESTION), ranked[:2], Chosen())
            assert (alone.ranked, alone.scores) == (ranked[:2], {})


def test_a_context_is_built_in_the_new_order(index: Path, server: Served) -> None:
    with Index.open(index, Settings(reranker=f"{server.url}/rerank")) as opened:
        context = opened.ask(QUESTION, max_sources=5)
    assert [source.ref for source in context.sources] == order(search(index, f"{server.url}/rerank"))[:5]
    assert [source.legs["reranker"].rank for source in context.sources] == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_model_that_is_not_here_is_not_fetched(
    index: Path, tmp_path: Path, tiny_cross: Path, monkeypatch: Any
) -> None:
    """Nor is a folder taken for it that was planted where the user stands."""
    shutil.copytree(tiny_cross, tmp_path / "some" / "model")
    monkeypatch.chdir(tmp_path)
    found = search(index, "some/model")
    assert found.coverage.notes == [
        "the reranker failed (the weights of 'some/model' are not on this machine); the pages stand in their order"
        " without it"
    ]
    for missing in (str(tmp_path / "nowhere"), "./nowhere", "a b"):
        with pytest.raises(EncoderUnavailable, match="no such model folder"):
            find(missing)
    with pytest.raises(EncoderUnavailable, match="'cross-encoder/ms-marco-MiniLM-L6-v2' are not on this machine"):
        find("ms-marco-MiniLM-L6-v2")
    assert find("./some/model") == tmp_path / "some" / "model"


def foreign_activation(folder: Path) -> None:
    evil_code(folder)
    edit_json(folder / "config_sentence_transformers.json", activation_fn="evil.Pwn")


def torch_function(folder: Path) -> None:
    """Of torch, and no layer: the library would call it."""
    edit_json(folder / "config_sentence_transformers.json", activation_fn="torch.utils.collect_env.main")


def older_activation(folder: Path) -> None:
    edit_json(folder / "config.json", sbert_ce_default_activation_function="torch.utils.collect_env.main")


def nested_activation(folder: Path) -> None:
    edit_json(folder / "config.json", sentence_transformers={"activation_fn": "torch.hub.help"})


def foreign_class(folder: Path) -> None:
    evil_code(folder)
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([{**modules[0], "type": "evil.Pwn"}]))


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    evil_pickle(folder, "pytorch_model.bin")


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [foreign_activation, torch_function, older_activation, nested_activation, foreign_class, pickled]
)
def test_a_model_with_code_is_refused(tiny_cross: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    folder = Path(shutil.copytree(tiny_cross, tmp_path / "model"))
    change(folder)
    with pytest.raises(EncoderUnavailable, match=r"never code|safetensors only"):
        CrossEncoderReranker(str(folder))
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.slow
def test_models_that_are_no_rerankers(index: Path, tiny_text: Path, tmp_path: Path, monkeypatch: Any) -> None:
    several = CrossEncoderReranker(str(make_tiny_cross(tmp_path / "several", labels=3)))
    with pytest.raises(EncoderUnavailable, match="gives 3 scores a text"):
        several.score("x", ["a", "b"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(EncoderUnavailable, match="cannot load the reranker"):
        CrossEncoderReranker(str(tmp_path / "empty"))
    monkeypatch.setattr("research.encoders.sentence_transformers.PACKAGE", "a-package-that-is-not-here")
    with pytest.raises(EncoderUnavailable) as caught:
        CrossEncoderReranker(str(tiny_text))
    assert caught.value.hint == "pip install 'ctx-research[encoders]'"


def make_tiny_onnx(folder: Path, scores: int = 1) -> Path:
    """A folder whose model counts herrings."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    (folder / "onnx").mkdir(parents=True)
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "herring": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    table = numpy_helper.from_array(np.array([[0.0] * scores, [1.0] * scores], np.float32), "table")
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["each"]),
        helper.make_node("ReduceSum", ["each", "axis"], ["logits"], keepdims=0),
    ]
    asked = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])
    told = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, scores])
    axis = numpy_helper.from_array(np.array([1], np.int64), "axis")
    graph = helper.make_graph(nodes, "tiny", [asked], [told], [table, axis])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "onnx" / "model.onnx")
    return folder


def test_a_folder_with_onnx_needs_no_torch(index: Path, plain: SearchResults, tmp_path: Path) -> None:
    folder = make_tiny_onnx(tmp_path / "tiny")
    assert load_reranker(str(folder)).score("lamp", ["herring herring", "boat \ud800", "herring"]) == [2.0, 0.0, 1.0]
    found = search(index, str(folder))
    assert found.coverage.notes == []
    assert all("reranker" in result.legs for result in found.results[:DEPTH])
    with pytest.raises(EncoderUnavailable, match="gives 3 scores a text"):
        load_reranker(str(make_tiny_onnx(tmp_path / "several", 3))).score("x", ["a"])
    (folder / "onnx" / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(EncoderUnavailable, match="damaged"):
        load_reranker(str(folder))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EncoderUnavailable, match=r"no tokenizer\.json"):
        load_reranker(str(folder))


def test_what_a_reranker_is_told_in_words(server: Served) -> None:
    told = describe(f"{server.url}/rerank")
    assert told.startswith(f"{server.url}/rerank answers in ")
    assert "for a text that answers" in told
