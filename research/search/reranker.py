"""Pages in the order of a reranker: a cross-encoder from a folder, or one behind a `/rerank` address.

Addresses: Jina, Cohere, llama.cpp and vLLM, and Text Embeddings Inference in its form.

{"model", "query", "documents"} → {"results": [{"index", "relevance_score"}]}
{"query", "texts"}              → [{"index", "score"}]
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from research.addresses import is_reranker_address, reranker_address
from research.encoders import (
    allow_torchvision,
    check_files,
    check_package,
    checkpoints,
    load_session,
    quiet,
    usable_cores,
    without_surrogates,
)
from research.errors import CtxError, EncoderUnavailable, ModelProtocolError, ModelRefusedError
from research.llm import model_endpoint
from research.models import Item, LegScore, Question, Ref
from research.search.legs import Chosen, Ranked, Reranked
from research.secret import RERANKER_KEY
from research.text import embedding_text

if TYPE_CHECKING:
    from research.search.highlights import Highlighter
    from research.store import Reader, StoredPage

_NO_TEXTS = "`texts`"  # what the other kind of server misses, in its error


class RerankApi:
    """Asks with every question; what it sends is the question and the passages."""

    def __init__(self, name: str, *, timeout: float = 0.0) -> None:
        self._address = reranker_address(name)
        self._endpoint = model_endpoint(self._address.url, RERANKER_KEY, timeout=timeout)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        named = {"model": self._address.model} if self._address.model else {}
        try:
            answer = self._endpoint.post({**named, "query": question, "documents": list(texts)})
        except ModelRefusedError as error:
            if _NO_TEXTS not in error.message:
                raise
            answer = self._endpoint.post({"query": question, "texts": list(texts)})
        return self._checked(answer, len(texts))

    def _checked(self, answer: Any, count: int) -> list[float]:
        """A score a text, in the order of the texts. One that is missing or given twice makes all of them worthless."""
        try:
            rows = answer if isinstance(answer, list) else answer["results"]
            pairs = [(row["index"], row.get("relevance_score", row.get("score"))) for row in rows]
        except (KeyError, TypeError, AttributeError):
            raise self._nonsense("answers in another form than a reranker does") from None
        if any(type(index) is not int or type(score) not in (int, float) for index, score in pairs):
            raise self._nonsense("gives a score that is no number")
        scores = {index: float(score) for index, score in pairs}
        if len(pairs) != count or sorted(scores) != list(range(count)):
            raise self._nonsense(f"gives {len(pairs)} scores for {count} texts, or not each of them once")
        return [scores[index] for index in range(count)]

    def _nonsense(self, what: str) -> ModelProtocolError:
        return ModelProtocolError(f"{self._address.url} {what}", hint="see that its server serves a reranker")


_BATCH = 32
_TOKENIZER = "tokenizer.json"
_TOKENS, _QUESTION = 512, 64  # tokens of both together, words of the question
_BARE = "cross-encoder/"  # where the library looks for a name without an owner


class OnnxReranker:
    """One question and text at a time: of int8 a neighbour in a batch would change the score."""

    def __init__(self, model: Path, name: str) -> None:
        from tokenizers import Tokenizer

        folder = next((each for each in (model.parent, model.parent.parent) if (each / _TOKENIZER).is_file()), None)
        if folder is None:
            raise EncoderUnavailable(f"cannot load the reranker {name!r}: there is no {_TOKENIZER} beside its model")
        check_files(folder)
        try:
            self._session = load_session(model, optimise=True)
            self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        except Exception as error:
            raise EncoderUnavailable(f"cannot load the reranker {name!r}: its files are damaged") from error
        self._tokenizer.enable_truncation(_TOKENS, strategy="only_second")
        self._tokenizer.no_padding()
        self._name = name
        self._inputs = [each.name for each in self._session.get_inputs()]

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """The number before any last layer; its order is the same."""
        from concurrent.futures import ThreadPoolExecutor

        asked = " ".join(without_surrogates(question).split()[:_QUESTION])
        with ThreadPoolExecutor(usable_cores()) as pool:
            return list(pool.map(lambda text: self._score(asked, without_surrogates(text)), texts))

    def _score(self, question: str, text: str) -> float:
        import numpy as np

        encoded = self._tokenizer.encode(question, text)
        told = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
        found = self._session.run(None, {name: np.array([told[name]], np.int64) for name in self._inputs})[0]
        if found.size != 1:
            raise _no_reranker(self._name, found.shape[-1])
        return float(found.flat[0])


class CrossEncoderReranker:
    """Loads at once, from this machine's files only."""

    def __init__(self, name: str) -> None:
        check_package(name)
        folder = find(name)
        self._name = name
        self._model = _load(folder, name)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """By its own last layer, which for most models is a number from 0 to 1."""
        with quiet():
            found = self._model.predict(
                [(question, text) for text in texts], batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True
            )
        if found.ndim != 1:
            raise _no_reranker(self._name, found.shape[-1])
        return [float(score) for score in found]


def _no_reranker(name: str, scores: int) -> EncoderUnavailable:
    return EncoderUnavailable(
        f"{name} gives {scores} scores a text, and a reranker gives one",
        hint="name a cross-encoder that was trained for ranking",
    )


def find_onnx(name: str) -> Path | None:
    """The ONNX file of a folder, named as `find` takes one, that has no safetensors."""
    path = Path(name).expanduser()
    if not (path.is_absolute() or name.startswith(".")) or (path / checkpoints.WEIGHTS).is_file():
        return None
    return next((file for file in (path / "model.onnx", path / "onnx" / "model.onnx") if file.is_file()), None)


def find(name: str) -> Path:
    """The folder of a cross-encoder whose files are safe to load. Only what is plainly a path is one: a folder that was
    planted where the user stands is not the hub's model of that name."""
    path = Path(name).expanduser()
    if path.is_absolute() or name.startswith("."):
        folder = checkpoints.as_folder(str(path.resolve()))
        if folder is None:
            raise EncoderUnavailable(f"no such model folder: {name}", hint="name a folder with config.json and weights")
    else:
        folder = checkpoints.locate(name if "/" in name else f"{_BARE}{name}", download=False)
    base = checkpoints.locate_base(folder, download=False)
    for place in (folder, *([base] if base else [])):
        check_files(place)
    return folder


def _load(folder: Path, name: str) -> Any:
    try:
        allow_torchvision()
        with quiet():
            from sentence_transformers import CrossEncoder

            return CrossEncoder(
                str(folder),
                backend="torch",
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
    except (OSError, ValueError, TypeError, RuntimeError, KeyError, AttributeError, ImportError) as error:
        reason = str(error).strip().splitlines()
        raise EncoderUnavailable(
            f"cannot load the reranker {name!r}: {reason[0] if reason else type(error).__name__}"
        ) from error


DEPTH = 12  # pages that are looked at
WEIGHT = 0.3  # of the model's scores beside ours, both from 0 to 1 among the pages that are looked at
_WINDOW = 75  # words: a model that was trained on passages reads no more than that as well, and long ones cost most
_WINDOWS = 3  # of a page, its best passages first


class Reranker(Protocol):
    """Implementations: one file each, chosen by `load_reranker`."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers, on a scale of its own: the higher the better. Raises `CtxError`."""
        ...


def load_reranker(name: str, timeout: int = 0) -> Reranker:
    """By what the user wrote: an address, or a cross-encoder's folder or hub name. Raises `CtxError` if it is not on
    this machine; nothing is fetched. An address is not asked yet; `timeout` is how many seconds it may take."""
    if is_reranker_address(name):
        return RerankApi(name, timeout=timeout)

    model = find_onnx(name)
    return OnnxReranker(model, name) if model is not None else CrossEncoderReranker(name)


def describe(name: str, timeout: int = 0) -> str:
    """What the reranker makes of two texts, in words. Raises `CtxError` if it cannot be had."""
    started = time.monotonic()
    reranker = load_reranker(name, timeout)
    right, wrong = _scores(reranker, "What do boats need?", ["Boats need water.", "Herring is a fish."])
    seconds = time.monotonic() - started
    return f"{name} answers in {1000 * seconds:.0f} ms: {right:.3f} for a text that answers, {wrong:.3f} for another"


class PageReranker:
    """Orders the first pages of a ranking. Loads its model with the first question."""

    name = "reranker"

    def __init__(self, model: str, highlighter: Highlighter, timeout: int = 0) -> None:
        self._model = model
        self._highlighter = highlighter
        self._timeout = timeout
        self._loaded: Reranker | None = None
        self._loading = threading.Lock()

    def rerank(self, reader: Reader, question: Question, ranked: Sequence[Ranked], chosen: Chosen) -> Reranked:
        """The pages in their new order; those that a booster or the lines of a ratio chose keep their places, and a
        place that a page of a named document has goes to such a page."""
        try:
            return self._reranked(reader, question, ranked, chosen)
        except CtxError as error:
            reason = error.message
        except Exception as error:  # noqa: BLE001  whatever a model's library raises: the answer stands without it
            from research.observe import log_failure

            log_failure("search", "the reranker failed", error)
            reason = f"{type(error).__name__}: {error}"
        question.notes.append(f"the reranker failed ({reason}); the pages stand in their order without it")
        return Reranked(ranked)

    def _reranked(self, reader: Reader, question: Question, ranked: Sequence[Ranked], chosen: Chosen) -> Reranked:
        keep = chosen.boosted | chosen.by_lines
        texts = self._texts(reader, question, [page for page in ranked[:DEPTH] if page.page_id not in keep])
        if len(texts) < 2:
            return Reranked(ranked)
        scores = self._best(question.text, texts)
        places = [place for place, page in enumerate(ranked) if page.page_id in scores]
        # A place is worth what it is, whatever the page that a name or a booster put there had scored.
        own = _scaled(sorted((ranked[place].score for place in places), reverse=True))
        its = _scaled([scores[ranked[place].page_id] for place in places])
        mixed = {place: a + WEIGHT * b for place, a, b in zip(places, own, its, strict=True)}
        ordered = list(ranked)
        for of_named in (True, False):
            among = [place for place in places if (ranked[place].doc_id in chosen.documents) is of_named]
            best = sorted(among, key=lambda place: -mixed[place])  # of equals the one that stood first
            for place, other in zip(among, best, strict=True):
                ordered[place] = ranked[other]._replace(score=ranked[place].score)
        ranks = {ordered[place].page_id: rank for rank, place in enumerate(places, start=1)}
        return Reranked(ordered, {page_id: LegScore(ranks[page_id], score) for page_id, score in scores.items()})

    def _best(self, question: str, texts: Mapping[int, Sequence[str]]) -> dict[int, float]:
        """page_id → the score of its best window."""
        windows = [(page_id, text) for page_id, windows in texts.items() for text in windows]
        scores: dict[int, float] = {}
        for (page_id, _), score in zip(
            windows, _scores(self._reranker(), question, [text for _, text in windows]), strict=True
        ):
            scores[page_id] = max(score, scores.get(page_id, score))
        return scores

    def _texts(self, reader: Reader, question: Question, pages: Sequence[Ranked]) -> dict[int, list[str]]:
        """page_id → the windows that the model reads of it; a page without text is left out, and so keeps its place."""
        known = reader.pages.with_text([page.page_id for page in pages])
        stored = {page.page_id: known[page.page_id] for page in pages if known[page.page_id][1].text.strip()}
        worth = {page.page_id: page.score for page in pages}
        items = [
            Item(Ref("page", page.doc_id, str(page.page)), page.title, found.text, worth[page_id], structure=found)
            for page_id, (page, found) in stored.items()
        ]
        permitted = {str(item.ref) for item in items}
        if question.sendable is not None and is_reranker_address(self._model):  # the others keep their places
            permitted = set(question.sendable([str(item.ref) for item in items]))
        read = self._highlighter.passages(reader, question, items, list(stored))
        return {
            page_id: _windows(page, [each.text for each in item.passages] or [item.text])
            for (page_id, (page, _)), item in zip(stored.items(), read, strict=True)
            if str(item.ref) in permitted
        }

    def _reranker(self) -> Reranker:
        with self._loading:
            if self._loaded is None:
                self._loaded = load_reranker(self._model, self._timeout)
            return self._loaded


def _windows(page: StoredPage, passages: Sequence[str]) -> list[str]:
    """Windows of passages under the names of their document and section, as an encoder is given them: of twenty annual
    reports, only that says whose revenue it is."""
    context = " > ".join(name for name in (page.title or page.filename, page.section_path) if name)
    cut = (words[at : at + _WINDOW] for words in map(str.split, passages) for at in range(0, len(words), _WINDOW))
    return [embedding_text(context, " ".join(words)) for words in islice(cut, _WINDOWS)]


def _scaled(scores: Sequence[float]) -> list[float]:
    """From 0, the lowest, to 1, the highest."""
    least, most = min(scores), max(scores)
    return [(score - least) / (most - least or 1.0) for score in scores]


def _scores(reranker: Reranker, question: str, texts: Sequence[str]) -> list[float]:
    """One finite number a text, or `CtxError`."""
    scores = reranker.score(question, texts)
    if len(scores) != len(texts):
        raise CtxError(f"it gives {len(scores)} scores for {len(texts)} texts")
    if not all(math.isfinite(score) for score in scores):
        raise CtxError("it gives a score that is no number")
    return scores
