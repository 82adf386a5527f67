"""A reranker behind a `/rerank` address: Jina, Cohere, llama.cpp and vLLM, and Text Embeddings Inference in its form.

{"model", "query", "documents"} → {"results": [{"index", "relevance_score"}]}
{"query", "texts"}              → [{"index", "score"}]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from research.addresses import RERANKER_KEY, reranker_address
from research.api_client import TIMEOUT, ApiClient
from research.errors import AddressError

_NO_TEXTS = "`texts`"  # what the other kind of server misses, in its error


class RerankApi:
    """Asks with every question; what it sends is the question and the passages."""

    def __init__(self, name: str, *, timeout: float = 0.0) -> None:
        self._address = reranker_address(name)
        self._client = ApiClient(self._address.url, own_key=RERANKER_KEY, timeout=timeout or TIMEOUT)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        named = {"model": self._address.model} if self._address.model else {}
        try:
            answer = self._client.post({**named, "query": question, "documents": list(texts)})
        except AddressError as error:
            if error.code != "refused" or _NO_TEXTS not in error.message:
                raise
            answer = self._client.post({"query": question, "texts": list(texts)})
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

    def _nonsense(self, what: str) -> AddressError:
        return AddressError(
            f"{self._address.url} {what}", code="nonsense", hint="see that its server serves a reranker"
        )
