"""Packages of an index: built once, kept for their time, rebuilt from their request when it is over.

A package is for one principal, one state of the policy and one state of the index. Under any other it is built anew,
with a new decision and under the same id.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from research.errors import BusyError, CtxError, NothingFoundError, PackageRequestError
from research.governance import Principal
from research.observe import current_trace, telling, traced
from research.packages.builder import PURPOSE, Built, Fitting, PackageBuilder, revision_of
from research.packages.cache import Cached, PackageCache, cache_for
from research.packages.events import Event, Events, events_for
from research.packages.request import ContextBuildRequest, ContextPackage, read_request
from research.parallel import SingleFlight
from research.store import StoredPackage, StoredRequest, Whose

if TYPE_CHECKING:
    from research.index import Index, View
    from research.store import Catalog

_WRITE_SECONDS = 5.0  # that a record waits for whoever writes


class Packages:
    """All packages of one index, for whoever asks. Many threads may use it."""

    def __init__(
        self,
        index: Index,
        *,
        cache: PackageCache,
        events: Events,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._index = index
        self._cache = cache
        self._events = events
        self._now = now or (lambda: datetime.now(UTC))
        self._flights: SingleFlight[ContextPackage] = SingleFlight()

    def build(
        self, given: ContextBuildRequest | Mapping[str, Any] | str | bytes, principal: Principal, fit: Fitting = None
    ) -> ContextPackage:
        """A package for a request. The same request twice at once is built once; one with an `id` that was built
        before gives that package again."""
        request = read_request(given)
        with traced(request.trace_id or "") as trace, telling(trace), self._timed("package"):
            self._note_trace(trace)
            key = (principal.tenant, principal.name, request.id or "", request.canonical(), fit)
            return self._flights.once(key, lambda: self._first(request, principal, trace, fit))

    def get(self, package_id: str, principal: Principal, *, anew: bool = False) -> ContextPackage:
        """Return a package from the cache; where its time is over, or policy or index have changed, or `anew`, built
        once more under the same id. Raises NothingFoundError if there is none of this principal's."""
        with traced("") as trace, telling(trace), self._timed("package"):
            return self._flights.once(
                (principal.tenant, principal.name, package_id, anew),
                lambda: self._again(package_id, principal, trace, anew=anew),
            )

    def listed(self, principal: Principal, *, limit: int = 100) -> list[ContextPackage]:
        """The records of a principal's packages, the one built last first: ids and numbers, no text."""
        if not self._index.exists:
            return []
        with self._index.catalog.snapshot() as reader:
            found = reader.packages.recent(_whose(principal), limit)
        return [ContextPackage.model_validate_json(each.record) for each in found]

    def feedback(self, package_id: str, refs: Sequence[str], principal: Principal, *, useful: bool = True) -> list[str]:
        """Tell whether sources of a package were of use, all of them if none is named: they count a little more, or
        less, from then on. Those that it has."""
        with self._index.catalog.snapshot() as reader:
            found = reader.packages.get(_whose(principal), package_id)
        if found is None:
            raise no_package(package_id)
        record = ContextPackage.model_validate_json(found.record)
        wanted = list(refs) or [source.ref for source in record.sources]
        with self._index.catalog.short_write(wait=_WRITE_SECONDS) as connection:
            told = connection.packages.give_feedback(package_id, wanted, 1 if useful else -1)
        missing = [ref for ref in refs if ref not in told]
        if missing:
            raise NothingFoundError(
                f"the package has no source {missing[0][:200]}", hint=f"see them with: ctx package show {package_id}"
            )
        return told

    def close(self) -> None:
        """Let go of connections; whoever asks next opens them anew."""
        self._cache.close()
        self._events.close()

    def _first(self, request: ContextBuildRequest, principal: Principal, trace: str, fit: Fitting) -> ContextPackage:
        whose, index = _whose(principal), self._index
        index.catalog  # noqa: B018  opens it: what is wrong with all of the index is no failure of a source
        if request.id is not None:
            with index.catalog.snapshot() as reader:
                before = reader.packages.request(whose, request.id)
                built = reader.packages.of_request(whose, request.id)
            if before is not None:
                if read_request(before.request).canonical() != request.canonical():
                    raise PackageRequestError(
                        f"the id {request.id} belongs to another request", hint="leave the id out, or choose another"
                    )
                if built is not None:
                    return self._again(built.package_id, principal, trace)
        request = request.model_copy(update={"id": request.id or new_id(), "trace_id": trace})
        self._capture(request, principal)
        return self._built(request, new_id(), principal, fit)

    def _again(self, package_id: str, principal: Principal, trace: str, *, anew: bool = False) -> ContextPackage:
        whose = _whose(principal)
        if not self._index.exists:
            raise no_package(package_id)
        cached = None if anew else self._cached(package_id, principal)
        if cached is not None:
            return cached
        with self._index.catalog.snapshot() as reader:
            known = reader.packages.get(whose, package_id)
            asked = None if known is None else reader.packages.request(whose, known.request_id)
        if known is None or asked is None:
            raise no_package(package_id)
        if known.expires_at <= self._now().isoformat():
            ids = {"package_id": package_id, "request_id": known.request_id}
            self._tell("ContextPackageExpired", principal, trace, **ids, expired_at=known.expires_at)
        request = read_request(asked.request).model_copy(update={"id": known.request_id, "trace_id": trace})
        return self._built(request, package_id, principal, rebuilt=True)

    def _cached(self, package_id: str, principal: Principal) -> ContextPackage | None:
        """What the cache holds, if it was built for this principal, under the policy and of the content of now."""
        found = self._cache.get(package_id)
        if found is None or (found.tenant, found.principal) != (principal.tenant, principal.name):
            return None
        with self._index.catalog.snapshot() as reader:
            revision = reader.labels.content_revision(principal.tenant)
        if found.revision != revision or found.policy != revision_of(self._index.acting_as(principal).access):
            return None
        return ContextPackage.model_validate_json(found.package)

    def _capture(self, request: ContextBuildRequest, principal: Principal) -> None:
        """Keep the request, before anything is done about it."""
        stored = StoredRequest(request.id or "", self._now().isoformat(), request.model_dump_json(by_alias=True))
        with self._index.catalog.short_write(wait=_WRITE_SECONDS) as connection:
            connection.packages.put_request(_whose(principal), stored)
        self._tell(
            "ContextBuildRequested",
            principal,
            request.trace_id or "",
            request_id=request.id,
            token_budget=request.token_budget,
            pinned=len(request.pinned),
        )

    def _built(
        self,
        request: ContextBuildRequest,
        package_id: str,
        principal: Principal,
        fit: Fitting = None,
        *,
        rebuilt: bool = False,
    ) -> ContextPackage:
        trace, audit = request.trace_id or "", self._index.policy.audit()
        view = self._index.acting_as(principal)
        policy = revision_of(view.access)  # before anything is read: what changes meanwhile makes it outdated
        with self._index.catalog.snapshot() as reader:
            revision = reader.labels.content_revision(principal.tenant)
        builder = PackageBuilder(view, principal, partial(audit.record, trace_id=trace), self._now)
        built = builder.build(request, package_id, fit)
        with self._timed("package_store"):
            self._keep(built, principal, policy, revision)
        package, decision, counts = built.package, built.decision, built.decision.counts()
        if counts["deny"]:
            self._tell(
                "AccessDenied",
                principal,
                trace,
                decision_id=decision.id,
                purpose=PURPOSE,
                denied=counts["deny"],
                decided=len(decision.rulings),
                failed=bool(decision.problem),
            )
        self._tell(
            "ContextPackageBuilt",
            principal,
            trace,
            package_id=package_id,
            request_id=request.id,
            decision_id=decision.id,
            sources=len(package.sources),
            tokens_used=package.tokens_used,
            token_budget=package.token_budget,
            allowed=counts["allow"],
            redacted=counts["redact"],
            denied=counts["deny"],
            rebuilt=rebuilt,
            expires_at=package.expires_at,
        )
        return package

    def _keep(self, built: Built, principal: Principal, policy: str, revision: str) -> None:
        """Keep the durable record, and then the text for a while: what the cache does not keep is built anew."""
        package = built.package
        number, record = package.context_package_id, package.record().model_dump_json(by_alias=True)
        times = package.created_at, package.expires_at
        stored = StoredPackage(number, package.context_build_request_id, *times, policy, revision, record)
        before = (self._now() - timedelta(days=self._index.settings.package_days)).isoformat()
        with self._index.catalog.short_write(wait=_WRITE_SECONDS) as connection:
            connection.packages.put(_whose(principal), stored, [source.ref for source in package.sources])
            if built.projection:
                connection.packages.put_projection(package.graph_projection_id, package.created_at, built.projection)
            if connection.packages.prune(before):
                connection.packages.remove_projections(before)
        with suppress(BusyError):  # the catalog serves none of them any more, and the next package tries again
            drop_from(self._cache, self._index.catalog)
        text, expires = package.model_dump_json(by_alias=True).encode(), datetime.fromisoformat(package.expires_at)
        self._cache.put(number, Cached(text, expires, principal.name, principal.tenant, policy, revision))

    def _tell(self, event: str, principal: Principal, trace: str, **told: Any) -> None:
        self._events.tell(Event(event, principal=principal.name, tenant=principal.tenant, trace_id=trace, **told))

    def _note_trace(self, trace: str) -> None:
        """A name that no trace of OpenTelemetry can have is told in the span, so that one leads to the other."""
        if trace != current_trace():
            self._index.recorder.event("package", trace_id=trace)

    def _timed(self, stage: str) -> AbstractContextManager[None]:
        return self._index.recorder.time(stage)


def drop_from(cache: PackageCache, catalog: Catalog) -> None:
    """Let a cache forget packages of which something is gone from the index, and try again later where it cannot."""
    with catalog.snapshot() as reader:
        left = reader.packages.left()
    if left and cache.remove(left):
        with catalog.short_write() as connection:
            connection.packages.forget_left(left)


def no_package(package_id: str) -> NothingFoundError:
    return NothingFoundError(
        f"no package of yours has the id {package_id[:64]!r}", hint="see them with: ctx package list"
    )


def new_id() -> str:
    return uuid.uuid4().hex


def _whose(principal: Principal) -> Whose:
    return Whose(principal.tenant, principal.name)


def packages_of(index: Index) -> Packages:
    """Those of a whole index: what a package may hold is decided for each, by whom it is for."""
    cache = cache_for(index.paths, lambda: index.catalog, index.settings)
    return Packages(index, cache=cache, events=events_for(index.settings))


def drop_left(index: View) -> None:
    """Texts of packages that are kept on another server go at once with what is gone from the index. The catalog serves
    none of them any more, whether this succeeds or not; what is missed goes with the next package, or with its time."""
    with suppress(CtxError):
        drop_from(cache_for(index.paths, lambda: index.catalog, index.settings), index.catalog)
