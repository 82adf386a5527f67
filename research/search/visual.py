"""The visual leg: whichever way of seeing filled the index answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.models import MatchedRegion
from research.search import matched
from research.search.dense import DenseLeg, QuestionVectors
from research.search.legs import Hits
from research.search.regions import RegionsLeg
from research.store.catalog import page_vectors
from research.store.catalog.page_vectors import OFF, REGIONS
from research.store.client import ChromaClient

if TYPE_CHECKING:
    from research.search.late import ModelLeg


class VisualLeg:
    name = "visual"

    def __init__(
        self,
        client: ChromaClient,
        dense: DenseLeg,
        questions: QuestionVectors,
        device: str = "auto",
        named_encoders: Sequence[str] = (),
    ) -> None:
        self._catalog = client.catalog
        self._questions = questions
        self._regions = RegionsLeg(client.catalog, dense, questions)
        self._client = client
        self._device = device
        self._named_encoders = named_encoders
        self._loaded: ModelLeg | None = None

    @property
    def shares_text(self) -> bool:
        """Whether it compares the dense leg's own vectors, which must not count twice."""
        return self._encoder().startswith(REGIONS)

    def why_off(self) -> str:
        """Why this index has no visual side; empty if it has one."""
        if self._encoder() not in ("", OFF):
            return ""
        problem = page_vectors.problem_of(self._catalog)
        return f"no visual encoder has filled this index{f': {problem}' if problem else ''}"

    def find(self, question: str, depth: int) -> Hits:
        self._check()
        return self._regions.find(question, depth) if self.shares_text else self._model().find(question, depth)

    def beyond(self, question: str, depth: int, dense: Hits) -> Hits:
        """`find` where it shares the text side's vectors, without asking the dense leg again."""
        return self._regions.beyond(question, depth, dense)

    def beyond_of(self, question: str, page_ids: Sequence[int], dense: Hits) -> Hits:
        """`score`, alike."""
        return self._regions.beyond_of(question, page_ids, dense)

    def score(self, question: str, page_ids: Sequence[int]) -> Hits:
        self._check()
        return self._regions.score(question, page_ids) if self.shares_text else self._model().score(question, page_ids)

    def matched(self, question: str, page_ids: Sequence[int]) -> dict[int, list[MatchedRegion]]:
        """Where on each page the answer seems to stand, best first."""
        if self.shares_text:
            return matched.by_text(self._catalog, question, self._questions.of(question), page_ids)
        return matched.by_model(self._catalog, self._model().vectors_of(question), page_ids)

    def matched_closely(self, question: str, page_id: int) -> list[MatchedRegion]:
        """The same for one page by its text, whatever filled the visual side, with more care."""
        asked = self._questions.of(question)
        return matched.closely(self._catalog, question, asked, page_id, self._questions.encoder())

    def _model(self) -> ModelLeg:
        if self._loaded is None:
            from research.search.late import ModelLeg  # what it imports would slow every other question

            self._loaded = ModelLeg(self._client, self._device, self._named_encoders)
        return self._loaded

    def _check(self) -> None:
        reason = self.why_off()
        if reason:
            raise CtxError(reason, hint="build it with: ctx ingest PATH --visual regions")

    def _encoder(self) -> str:
        return page_vectors.encoder_of(self._catalog)
