"""The default text encoder: all-MiniLM-L6-v2 in int8 on ONNX Runtime, from files inside this package."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.encoders.base import DEFAULT, check_window, usable_cores
from research.errors import CtxError
from research.lazy import import_onnxruntime

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

FOLDER = Path(__file__).parent
MODEL = FOLDER / "model.onnx"
WEIGHTS = FOLDER / "model.bin"  # beside the graph, not inside it, so that it is mapped instead of read and copied
VOCABULARY = FOLDER / "vocab.txt"
CHECKSUMS = FOLDER / "SHA256SUMS"

SHIPPED = (MODEL, WEIGHTS, VOCABULARY)

CLS = 101
SEP = 102
SPECIAL_TOKENS = 2
MAX_QUERY_WINDOWS = 4  # about 1,000 tokens, 0.2 s; a question says what it wants in fewer
WORD_CACHE = 200_000


class _Asked:
    """A question, and its vector once it is there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.done = threading.Event()
        self.vector: NDArray[np.float32] | None = None


class MiniLMEncoder:
    """all-MiniLM-L6-v2. Model and tokenizer load at the first use; one object may serve many threads."""

    name = DEFAULT
    dim = 384
    max_tokens = 256

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = threads
        self._word_tokens: dict[str, int] = {}
        self._turn = threading.Lock()
        self._asked: _Asked | None = None  # the question that was embedded last

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, (len(texts), 384). A text beyond the window raises ValueError; nothing is cut.

        Each text runs alone: activations get their scale per run, so neighbours in a batch would change a vector
        (and batches are no faster here). Cores are used by running several texts side by side.
        """
        import numpy as np

        encoded = [self._ids(text) for text in texts]
        check_window([len(ids) for ids in encoded], self.max_tokens - SPECIAL_TOKENS)
        vectors = np.empty((len(encoded), self.dim), np.float32)

        def run(position: int) -> None:
            vectors[position] = self._run(encoded[position])

        # The longest first, so that no core is left with a long one at the end.
        order = sorted(range(len(encoded)), key=lambda position: -len(encoded[position]))
        workers = min(self._threads or usable_cores(), len(order))
        if workers <= 1:
            for position in order:
                run(position)
        else:
            from concurrent.futures import ThreadPoolExecutor

            self._session  # noqa: B018  # loaded once, before threads race for it
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(run, order))
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A question's unit vector, (384,). A long one is the mean of up to four windows spread evenly over it.

        Several sources embed one question at once: the first does it for all of them.
        """
        with self._turn:
            asked = self._asked
            first = asked is None or asked.text != text
            if asked is None or first:
                asked = self._asked = _Asked(text)
        if not first:
            asked.done.wait()
        if asked.vector is None:
            try:
                asked.vector = self._embed_query(text)
            finally:
                asked.done.set()
        return asked.vector.copy()

    def _embed_query(self, text: str) -> NDArray[np.float32]:
        import numpy as np

        ids = self._ids(text)
        size = self.max_tokens - SPECIAL_TOKENS
        if len(ids) <= size:
            return self._run(ids)
        count = min(-(-len(ids) // size), MAX_QUERY_WINDOWS)
        step = (len(ids) - size) / (count - 1)
        starts = [round(i * step) for i in range(count)]
        mean = np.mean([self._run(ids[start : start + size]) for start in starts], axis=0)
        vector: NDArray[np.float32] = (mean / np.linalg.norm(mean)).astype(np.float32)
        return vector

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` without the two special ones, exactly.

        WordPiece never joins across these blanks, so the words' counts add up and common words come from a cache.
        """
        known, total = self._word_tokens, 0
        for word in text.replace("\n", " ").replace("\t", " ").replace("\r", " ").split(" "):
            tokens = known.get(word)
            if tokens is None:
                if len(known) >= WORD_CACHE:
                    known.clear()
                tokens = known[word] = len(self._ids(word))
            total += tokens
        return total

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(without_surrogates(text)).ids
        return ids

    def _run(self, ids: list[int]) -> NDArray[np.float32]:
        import numpy as np

        outputs = self._session.run(None, {"input_ids": np.array([[CLS, *ids, SEP]], np.int64)})
        vector: NDArray[np.float32] = outputs[0][0]
        return vector

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return load_tokenizer(VOCABULARY)

    @cached_property
    def _session(self) -> Any:
        return load_session(MODEL)


def without_surrogates(text: str) -> str:
    """Half a surrogate pair (a stray byte on the command line, a broken PDF font) is no text to the tokenizer."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def load_tokenizer(vocabulary: Path) -> Tokenizer:
    """BERT's uncased WordPiece: no special tokens, no padding, no truncation.

    From vocab.txt it loads a third faster than from tokenizer.json, and "[SEP]" in a document stays mere text.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    if not vocabulary.is_file():
        raise _broken_files()
    tokenizer = Tokenizer(WordPiece.from_file(str(vocabulary), unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def load_session(model: Path, *, optimise: bool = False) -> Any:
    """An ONNX Runtime session for many threads, each running a text by itself. Raises `CtxError`."""
    onnxruntime = import_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if not optimise:  # our file is so already; higher levels would bring back SkipLayerNormalization, which is slower
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    state = onnxruntime.capi.onnxruntime_pybind11_state
    broken = (state.Fail, state.InvalidArgument, state.InvalidGraph, state.InvalidProtobuf, state.NoSuchFile)
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except broken as error:
        raise _broken_files() from error


def _broken_files() -> CtxError:
    return CtxError(
        "the text encoder's model files are damaged or missing",
        hint="pip install --force-reinstall --no-deps ctx-research",
    )


def verify_files(folder: Path = FOLDER) -> list[str]:
    """Problems with the shipped model, one line each; empty when all is well."""
    from research.files import verify  # a question never needs it

    return verify(folder, [path.name for path in SHIPPED])
