"""What a package holds is on record: one decision about all candidates, before the budget.

The owner without a policy reads everything, and a decision says so all the same: every package has one, and an entry of
the audit. For anybody else the retrievals have read nothing that is denied.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.governance import AllowAll, MemoryAccessDecision, Principal, Resource, Ruling, resources_of
from research.models import REFERENCE_ONLY
from research.packages.ranking import Ranked
from research.parallel import Call, Workers

if TYPE_CHECKING:
    from research.governance import PolicyAccess
    from research.store import Catalog, Reader

PURPOSE = "package"
OWNER_RULE = "owner"

Audit = Callable[[MemoryAccessDecision, str], None]


@dataclass(frozen=True, slots=True)
class Governed:
    """A source as it may be shown. `redacted`: what its text is, is what a redactor left; `text`: there is any."""

    ranked: Ranked
    redacted: bool = False
    text: bool = True
    classification: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """What may be shown, in order, and the decision. `nothing`: whoever asks may see nothing of the index."""

    allowed: list[Governed]
    decision: MemoryAccessDecision
    nothing: bool = False


class Governor:
    """Decides for one principal."""

    def __init__(
        self,
        principal: Principal,
        access: AllowAll | PolicyAccess,
        catalog: Callable[[], Catalog],
        audit: Audit,
        default: str = "Internal",
    ) -> None:
        """`catalog` is all of it; `default`: the classification of what nobody has classified."""
        self.principal = principal
        self._access = access
        self._catalog = catalog
        self._audit = audit
        self._default = default
        self._workers = Workers("ctx-package-audit")
        self._recording: list[Call[None]] = []

    @property
    def revision(self) -> str:
        """Changes whenever the policy does."""
        return OWNER_RULE if isinstance(self._access, AllowAll) else self._access.revision

    def recorded(self, decision: MemoryAccessDecision, purpose: str) -> None:
        """Into the audit, while the package is built; `settle` waits for it."""
        self._recording.append(self._workers.start(lambda: self._audit(decision, purpose)))

    def settle(self) -> None:
        """Nothing may be released before this. Raises if a decision could not be recorded."""
        try:
            for each in self._recording:
                each.wait().result()
        except Exception as error:  # noqa: BLE001  what is not recorded is not given out, whatever the reason
            from research.observe import log_failure

            log_failure("governance", "an access could not be recorded", error)
            told = error.message if isinstance(error, CtxError) else type(error).__name__
            raise CtxError(
                f"access could not be recorded, so nothing is released: {told}", hint="see: ctx audit verify"
            ) from None

    def resources(self, reader: Reader, refs: Sequence[str]) -> Sequence[Resource]:
        """What these are to a policy, in their order; by all that is known of them."""
        if not reader.masks.view:
            return resources_of(reader, refs, self.principal, default=self._default)
        with self._catalog().snapshot() as whole:
            return resources_of(whole, refs, self.principal, default=self._default)

    def govern(self, reader: Reader, ranked: Sequence[Ranked]) -> Decided:
        """Nothing of it may be given out before `settle`."""
        if isinstance(self._access, AllowAll):
            return self._as_owner(reader, ranked)
        refs, labels = [each.candidate.ref for each in ranked], reader.masks.labels
        decision = self._access.decided(refs, PURPOSE, audit=self.recorded)
        classes = {each.ref: each.resource.classification for each in decision.rulings}
        allowed = [
            Governed(
                each,
                redacted=each.candidate.ref in labels,
                text=labels.get(each.candidate.ref) != REFERENCE_ONLY,
                classification=classes[each.candidate.ref],
            )
            for each in ranked
        ]
        return Decided(allowed, decision, reader.masks.nothing)

    def _as_owner(self, reader: Reader, ranked: Sequence[Ranked]) -> Decided:
        resources = self.resources(reader, [each.candidate.ref for each in ranked])
        decision = MemoryAccessDecision(
            id=uuid.uuid4().hex,
            principal=self.principal,
            action="read",
            rulings=tuple(Ruling(each, "allow", (OWNER_RULE,)) for each in resources),
            policy=OWNER_RULE,
            decided_at=datetime.now(UTC).isoformat(),
            policies=(OWNER_RULE,),
        )
        self.recorded(decision, PURPOSE)
        classes = {each.ref: each.classification for each in resources}
        return Decided([Governed(each, classification=classes[each.candidate.ref]) for each in ranked], decision)
