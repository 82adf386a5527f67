"""What a package may hold: one decision for all candidates, before the budget.

The owner without a policy reads everything, and a decision says so all the same: every package has one, and an entry of
the audit. Whoever else asks goes through the gate.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from research.governance.access import MemoryAccessDecision, Principal, Resource, Ruling
from research.packages.fitting import Governed
from research.packages.ranking import Ranked

if TYPE_CHECKING:
    from research.governance.gate import Gate
    from research.store.catalog.reader import Reader

PURPOSE = "package"
OWNER_RULE = "owner"

Audit = Callable[[MemoryAccessDecision, str], None]
Resolve = Callable[["Reader", Sequence[str], Principal], Sequence[Resource]]


class Governor:
    """Decides for one principal. Without a `gate` it is the owner, and there is no policy."""

    def __init__(
        self, principal: Principal, gate: Gate | None, *, resolve: Resolve, audit: Audit | None = None
    ) -> None:
        self.principal = principal
        self._gate = gate
        self._resolve = resolve
        self._audit = audit

    @property
    def revision(self) -> str:
        """Changes whenever the policy does."""
        return self._gate.revision if self._gate is not None else OWNER_RULE

    def resources(self, reader: Reader, refs: Sequence[str]) -> Sequence[Resource]:
        """What these are to a policy, in their order."""
        return self._resolve(reader, refs, self.principal)

    def govern(
        self, reader: Reader, ranked: Sequence[Ranked]
    ) -> tuple[list[Governed], MemoryAccessDecision, set[str]]:
        """What may be shown, in order; the decision; and the refs that were denied."""
        if self._gate is None:
            return self._as_owner(reader, ranked)
        raise NotImplementedError

    def _as_owner(
        self, reader: Reader, ranked: Sequence[Ranked]
    ) -> tuple[list[Governed], MemoryAccessDecision, set[str]]:
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
        if self._audit is not None:
            self._audit(decision, PURPOSE)
        classes = {each.ref: each.classification for each in resources}
        return [Governed(each, classification=classes[each.candidate.ref]) for each in ranked], decision, set()
