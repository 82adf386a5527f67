"""Text vectors from any `/v1/embeddings` address: Ollama, llama.cpp, vLLM, hosted ones.

What stands behind an address can be exchanged without a word. So an index remembers, beside the name and the
dimensions, a sketch of the vector that a fixed text has there; before a question is compared, that text is asked for
along with it. Another vector is another encoder: nothing is compared with it, and the next ingest embeds anew.
"""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from research.addresses import encoder_address, encoder_name
from research.encoders.base import TokenCounter, fitting
from research.encoders.minilm import MiniLMEncoder
from research.errors import (
    ContextTooLongError,
    EncoderUnavailable,
    ModelError,
    ModelProtocolError,
    ModelTimeoutError,
    UsageError,
)
from research.llm import PATIENTLY, QUICKLY, model_endpoint
from research.secret import ENCODER_KEY

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK_WINDOW = 256  # tokens of a chunk, by `EstimatedTokens`: what every model in use takes
WINDOW = 512  # of any other text; a server that takes less says so, and the text is halved
BATCH = 32  # texts a request
_LARGEST_DIM = 8192  # as the catalog has it
_SHORTEST = 64  # characters below which a text is not halved
_TRUSTED = 60.0  # seconds for which an address that has proved to be the same is taken to be it
_REST = 10.0  # seconds in which an address that failed is not asked again, where somebody waits

_PROBE = "The quick brown fox jumps over the lazy dog."
_SKETCHED = 64  # numbers of a sketch
_ALIKE = 0.97  # cosine of two sketches; the same model on other hardware has .999, another model about 0

_PIECES = re.compile(r"[a-zA-Z]+|[^\sa-zA-Z]")
_LETTERS = 5  # of a word that most tokenizers have in one piece


class EstimatedTokens:
    """Tokens of a tokenizer nobody knows: as many as the embedded encoder counts, or more where letters, digits and
    signs speak for more. So its chunks also fit the embedded encoder, to which an index may be moved.

    Measured against SmolLM2, o200k and cl100k on chunks of five sets: these count .75 to .96 of it on average, 1.4
    times as many in one of twenty, never more than 2.2 times; Chinese, Thai and Tamil in an English vocabulary 1.9.
    """

    max_tokens = CHUNK_WINDOW

    def __init__(self) -> None:
        self._words = MiniLMEncoder(threads=1)

    def count_tokens(self, text: str) -> int:
        pieces = _PIECES.findall(text)
        return max(self._words.count_tokens(text), sum(-(-len(piece) // _LETTERS) for piece in pieces))


@dataclass(frozen=True, slots=True)
class Tried:
    """What an address answered to a first text."""

    dim: int
    sketch: str
    model: str  # as the server calls it; empty if it does not say
    seconds: float


class OpenAIEncoder:
    """Asks its address with the first text, not before. `dim` and `sketch` are those of an index, if one is asked;
    `patient` waits for a server that is busy or starting, for nobody looks on."""

    max_tokens = WINDOW

    def __init__(
        self, name: str, *, dim: int = 0, sketch: str = "", patient: bool = False, timeout: float = 0.0
    ) -> None:
        self._address = encoder_address(name)
        self.name = encoder_name(self._address)
        self.halved = 0  # texts that were longer than the server takes
        self._dim = dim
        self._sketch = sketch
        self._proved = -math.inf
        self._patient = patient
        self._batch = BATCH
        url, waits = f"{self._address.url}/embeddings", PATIENTLY if patient else QUICKLY
        try:
            self._endpoint = model_endpoint(url, ENCODER_KEY, timeout=timeout, waits=waits)
        except UsageError as error:  # a key that is none: what else can be searched is searched
            raise EncoderUnavailable(error.message, hint=error.hint) from error
        self._failed: tuple[float, ModelError] | None = None

    @property
    def dim(self) -> int:
        return self._dim or self.tried.dim

    @cached_property
    def tried(self) -> Tried:
        """What the address answers to a fixed text. Raises `EncoderUnavailable`."""
        started = time.monotonic()
        try:
            answer, [vector] = self._ask([_PROBE])
        except ModelError as error:
            raise self._unavailable(error) from error
        model = answer.get("model")
        return Tried(len(vector), sketch_of(vector), str(model or ""), time.monotonic() - started)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, (len(texts), dim). A text that the server finds too long is the mean of its halves."""
        import numpy as np

        found = [np.empty((0, self.dim), np.float32)]
        at = 0
        while at < len(texts):
            part = [text if text.strip() else "." for text in texts[at : at + self._batch]]  # servers refuse blanks
            at += len(part)
            try:
                found.append(self._vectors(part))
            except ModelError as error:
                raise self._unavailable(error) from error
        return np.vstack(found)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """A question's unit vector, (dim,); of a very long one its beginning's. With it comes, every minute, the
        proof that this is the encoder which filled the index."""
        text = fitting(text[: 8 * WINDOW], self)
        prove = bool(self._sketch) and time.monotonic() > self._proved + _TRUSTED
        matrix = self.embed([text, _PROBE] if prove else [text])
        if prove:
            self.check_sketch(sketch_of(matrix[1]), self._sketch)
            self._proved = time.monotonic()
        vector: NDArray[np.float32] = matrix[0]
        return vector

    def check_sketch(self, found: str, known: str) -> None:
        """Raise `EncoderUnavailable` if these are of two models."""
        if not alike(found, known):
            raise EncoderUnavailable(
                f"another model than the one that filled this index answers at {self._address.url}", hint=self._anew
            )

    def count_tokens(self, text: str) -> int:
        return self._counter.count_tokens(text)

    @cached_property
    def _counter(self) -> TokenCounter:
        return EstimatedTokens()

    @property
    def _anew(self) -> str:
        return f"embed all documents anew: CTX_TEXT_ENCODER={shlex.quote(self.name)} ctx ingest PATH"

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        """Of one request; of several smaller ones where the server takes less, or takes longer than it may."""
        import numpy as np

        try:
            return self._ask(texts)[1]
        except ModelError as error:
            too_long = isinstance(error, ContextTooLongError)
            slow = isinstance(error, ModelTimeoutError) and self._patient
            if len(texts) == 1 and too_long and len(texts[0]) >= _SHORTEST:
                self.halved += 1
                return self._by_halves(texts[0])
            if len(texts) == 1 or not (slow or too_long):
                raise
        size = -(-len(texts) // (4 if slow else 2))
        if slow:
            self._batch = size
        return np.vstack([self._vectors(texts[at : at + size]) for at in range(0, len(texts), size)])

    def _by_halves(self, text: str) -> NDArray[np.float32]:
        """(1, dim): both halves by their lengths."""
        import numpy as np

        blank = text.find(" ", len(text) // 2)
        middle = blank if 0 < blank < len(text) * 3 // 4 else len(text) // 2
        total = np.zeros((1, self.dim), np.float32)
        for half in (text[:middle], text[middle:]):
            try:
                vector = self._ask([half])[1]
            except ModelError as error:
                if not isinstance(error, ContextTooLongError) or len(half) < _SHORTEST:
                    raise
                vector = self._by_halves(half)
            total += len(half) * vector
        return total / (np.linalg.norm(total) or 1.0)

    def _ask(self, texts: list[str]) -> tuple[dict[str, Any], NDArray[np.float32]]:
        """The answer, and its unit vectors, (len(texts), dim). One that failed is let rest: several parts of a question
        ask for its vector, and each would wait as long."""
        if self._failed is not None and time.monotonic() < self._failed[0]:
            raise self._failed[1].with_traceback(None)
        try:
            answer = self._endpoint.post({"model": self._address.model, "input": texts})
        except ModelError as error:
            if not self._patient and error.code in ("timeout", "unavailable", "busy"):
                self._failed = (time.monotonic() + _REST, error)
            raise
        matrix = self._checked(answer, len(texts))
        if self._dim and matrix.shape[1] != self._dim:
            raise ModelProtocolError(
                f"{self._address.url} now gives vectors of {matrix.shape[1]} dimensions, and not {self._dim}",
                hint=self._anew,
            )
        self._dim = matrix.shape[1]
        return answer, matrix

    def _checked(self, answer: Any, count: int) -> NDArray[np.float32]:
        import numpy as np

        try:
            # A server may leave numbers out, or only the zero.
            rows = {row.get("index", place): row["embedding"] for place, row in enumerate(answer["data"])}
            if len(answer["data"]) != count or sorted(rows) != list(range(count)):
                raise self._nonsense(f"gives {len(answer['data'])} vectors for {count} texts, or others than these")
            lists = [rows[place] for place in range(count)]
            if any(type(number) not in (int, float) for row in lists for number in row):
                raise self._nonsense("gives a vector with something else than numbers in it")
            matrix = np.array(lists, np.float64)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            raise self._nonsense("answers in another form than /v1/embeddings has") from None
        if matrix.ndim != 2 or not 0 < matrix.shape[1] <= _LARGEST_DIM:
            raise self._nonsense("gives vectors of no length, or of too many numbers")
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._nonsense("gives a vector that is none: NaN, infinite or all zeros")
        unit: NDArray[np.float32] = (matrix / lengths).astype(np.float32)
        return unit

    def _nonsense(self, what: str) -> ModelProtocolError:
        hint = "see that its server serves embeddings with this model; ctx doctor tries it"
        return ModelProtocolError(f"{self._address.url} {what}", hint=hint)

    def _unavailable(self, error: ModelError) -> EncoderUnavailable:
        return EncoderUnavailable(error.message, hint=error.hint)


def describe(name: str, *, dim: int, sketch: str, timeout: float) -> str:
    """What answers at an address, in words. Raises `EncoderUnavailable` if nothing does, or something else than what
    filled an index with vectors of `dim` numbers and this sketch."""
    encoder = OpenAIEncoder(name, dim=dim, timeout=timeout)
    tried = encoder.tried
    if sketch:
        encoder.check_sketch(tried.sketch, sketch)
    called = f", as {tried.model}" if tried.model else ""
    return f"{encoder.name} answers in {1000 * tried.seconds:.0f} ms{called}: {tried.dim} dimensions"


def sketch_of(vector: NDArray[np.float32]) -> str:
    """A vector in few numbers, as a text: enough to tell another model by, whatever the last digits are."""
    import numpy as np

    chosen = vector[np.linspace(0, len(vector) - 1, min(len(vector), _SKETCHED)).astype(int)]
    scaled = np.rint(chosen / (np.abs(chosen).max() or 1.0) * 999).astype(int)
    return " ".join(map(str, scaled.tolist()))


def alike(sketch: str, other: str) -> bool:
    """Whether two sketches are of the same vector, as nearly as two runs of one model are."""
    one, two = ([int(number) for number in each.split()] for each in (sketch, other))
    if len(one) != len(two):
        return False
    product = sum(a * b for a, b in zip(one, two, strict=True))
    return product >= _ALIKE * math.sqrt(sum(a * a for a in one) * sum(b * b for b in two))
