"""Experiences of an index: told, found on their axes, and the values that many of them share."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, BinaryIO

    from research.experiences import (
        Experience,
        ExperienceResults,
        Imported,
        ImportedLines,
        Rebuilt,
        Value,
        ValueResults,
    )
    from research.experiences import Removed as RemovedExperiences
    from research.index.index import Index
    from research.search import Where
    from research.store import Reader


class Experiences:
    """What was tried, and the values that many experiences share."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def start(
        self,
        goal: str,
        hypothesis: str,
        action: str,
        prediction: str,
        *,
        domain: str = "other",
        strategy: str = "other",
        id: str = "",
        **more: Any,
    ) -> Experience:
        """Begin an experience: what is wanted, what is believed, what is done about it, and what will then happen. With
        an `outcome` and its `outcome_result` it is closed at once. `more` are further fields of `Experience`. A short
        write: accepted within a second, also while an ingest runs, or BusyError; durable when it returns."""
        told = {"goal": goal, "hypothesis": hypothesis, "action": action, "prediction": prediction}
        return self._index.experience_store().start({**told, "domain": domain, "strategy": strategy, "id": id, **more})

    def update(self, experience_id: str, **fields: Any) -> Experience:
        """Say more or something else of one that is open. Another hypothesis is another iteration."""
        return self._index.experience_store().update(experience_id, fields)

    def close(
        self,
        experience_id: str,
        outcome: str,
        outcome_result: str,
        *,
        surprise: str = "",
        root_cause: str = "",
        lesson: str = "",
        confidence_tier: str = "",
        **more: Any,
    ) -> Experience:
        """Tell the outcome of one that is open: confirmed, falsified or abandoned. From then on it is found. Raises
        UsageError if it is closed already."""
        told = {"surprise": surprise, "root_cause": root_cause, "lesson": lesson, "confidence_tier": confidence_tier}
        return self._index.experience_store().close(
            experience_id, {"outcome": outcome, "outcome_result": outcome_result, **told, **more}
        )

    def record(self, **fields: Any) -> Experience:
        """Whatever is told of an experience in one call: a new one, open or closed at once; or, by the `id` of one that
        is open, what changed, or its outcome."""
        return self._index.experience_store().record(fields)

    def put(self, records: Iterable[Mapping[str, Any]]) -> Imported:
        """Take over records as `Experience.to_dict` gives them. The same again changes nothing."""
        return self._index.experience_store().put(records)

    def import_lines(self, stream: BinaryIO) -> ImportedLines:
        """The same from JSON Lines. A line that cannot be read costs itself alone."""
        from research.experiences import import_lines

        return import_lines(self._index.experience_store(), stream)

    def get(self, experience_id: str) -> Experience:
        """By its id, or the beginning of it where that means one alone. Raises NothingFoundError."""
        found = self._index.experience_store().get(experience_id)
        return self._index.access.shown([found], "experiences", _ref_of)[0]

    def remove(self, *experience_ids: str) -> RemovedExperiences:
        """Remove experiences, from the values that were made of them, too."""
        removed = self._index.experience_store().remove(experience_ids)
        self._index.drop_packages()
        return removed

    def search(
        self,
        query: str,
        *,
        axis: str = "full",
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int = 10,
    ) -> ExperienceResults:
        """Experiences that fit, on one axis: full, strategy, surprise or root_cause. What there is not raises
        UsageError with the choices."""
        from research.experiences import ExperienceResults
        from research.sources import ExperiencesSource

        source = self._index.item_source(ExperiencesSource)
        asked = partial(self.where, axis=axis, domain=domain, strategy=strategy, outcome=outcome)
        if not self._index.exists:
            return ExperienceResults(query, str(asked(None)["axis"]))
        with self._index.catalog.snapshot() as reader:
            where = asked(reader)
            found = source.find(reader, query, limit, where=where)
            results = source.experiences(reader, found)
        self._index.store_item_vectors(found)
        self._index.access.shown(results, "search", lambda each: _ref_of(each.experience))
        return ExperienceResults(query, str(where["axis"]), results, found.searched, found.without_vectors, found.notes)

    def where(self, reader: Reader | None, **restricted: str | None) -> Where:
        """What the metadata of experiences must be, for a search of an axis, domain, strategy or outcome."""
        from research.sources import ExperiencesSource

        return self._index.item_source(ExperiencesSource).restriction(
            reader, self._index.experience_store().choices, **restricted
        )

    def values(self, *, axis: str | None = None) -> list[Value]:
        """What experiences have in common, of an axis or of all; the largest clusters first."""
        from research.experiences import axis_of

        wanted = None if axis is None else axis_of(axis)
        found = self._index.value_store().listed(wanted) if self._index.exists else []
        return list(self._index.access.shown(found, "values", _ref_of))

    def value(self, value_id: str) -> Value:
        """Raises NothingFoundError."""
        return self._index.access.shown([self._index.value_store().get(value_id)], "values", _ref_of)[0]

    def rebuild_values(self, *, force: bool = True, seconds: float = 60.0) -> Rebuilt:
        """Look for values anew; without `force` only where the setting `values_after` says that it is due and
        scikit-learn is there. Takes seconds, for thousands of experiences more; experiences may be told meanwhile."""
        from research.experiences import Rebuilt, is_installed

        if not force:
            if not self._index.exists:
                return Rebuilt(False, "there are no experiences")
            if not is_installed() or not self._index.value_store(whole=True).is_due(self._index.settings.values_after):
                return Rebuilt(False, self._index.value_store(whole=True).why_none())
        self._index.rooms.create_catalog()
        return self._index.value_store(whole=True).rebuild(seconds=seconds)

    def renew_values(self) -> None:
        """The same in the background, if it is due: for servers, which have no time to wait for it. What goes wrong is
        logged."""

        def renew() -> None:
            from research.observe import log_failure

            try:
                self.rebuild_values(force=False)
            except Exception as error:  # noqa: BLE001  nobody waits for it
                log_failure("experiences", "looking for values", error)
            finally:
                self._index.renewing.release()

        if self._index.renewing.acquire(blocking=False):  # one at a time
            self._index.workers.start(renew, "renewing values")

    def search_values(self, query: str, *, axis: str | None = None, limit: int = 10) -> ValueResults:
        """Values that fit, of one axis or of all."""
        from research.experiences import ValueResults, axis_of
        from research.sources import ValuesSource

        where = None if axis is None else {"axis": axis_of(axis)}
        if not self._index.exists:
            return ValueResults(query)
        source = self._index.item_source(ValuesSource)
        with self._index.catalog.snapshot() as reader:
            found = source.find(reader, query, limit, where=where)
        results = source.values(found)
        self._index.store_item_vectors(found)
        self._index.access.shown(results, "search", lambda each: _ref_of(each.value))
        return ValueResults(query, results, found.searched, found.notes)

    def embed(self, *, seconds: float = 10.0) -> int:
        """Make vectors for experiences that have none, for about so long. How many items still wait; a question embeds
        what it can in a second."""
        from research.search import FoundItems
        from research.sources import ExperiencesSource

        if not self._index.exists:
            return 0
        source = self._index.rooms.items(ExperiencesSource)
        with self._index.rooms.catalog.snapshot() as reader:
            fresh = source.search.embed(reader, seconds)
        if fresh is not None:
            self._index.store_item_vectors(FoundItems(fresh=fresh))
        with self._index.rooms.catalog.snapshot() as reader:
            return len(reader.items.without_vectors(source.kind, self._index.rooms.own_encoder(reader).name))

    def list(
        self,
        *,
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int | None = None,
    ) -> list[Experience]:
        """Those that a restriction leaves, the newest first; `outcome` may also be "open"."""
        found = self._index.experience_store().listed(domain=domain, strategy=strategy, outcome=outcome, limit=limit)
        return list(self._index.access.shown(found, "experiences", _ref_of))


def _ref_of(told: Experience | Value) -> str:
    from research.experiences import Value

    return f"{'value' if isinstance(told, Value) else 'experience'}:{told.id}"
