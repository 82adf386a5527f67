"""What a package may hold: one decision for all candidates, before the budget.

The owner without a policy reads everything, and a decision says so all the same: every package has one, and an entry of
the audit. Whoever else asks goes through the gate.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.governance.access import MemoryAccessDecision, Principal, Resource, Ruling
from research.governance.gate import is_withheld
from research.governance.resources import resources_of
from research.models import REFERENCE_ONLY
from research.packages.ranking import Ranked
from research.parallel import Call, Workers

if TYPE_CHECKING:
    from research.governance.gate import Gate
    from research.store.catalog.reader import Reader

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
    """What may be shown, in order; the decision; and the refs of candidates that may not."""

    allowed: list[Governed]
    decision: MemoryAccessDecision
    denied: set[str] = field(default_factory=set)


class Governor:
    """Decides for one principal. Without a `gate` it is the owner, and there is no policy."""

    def __init__(
        self,
        principal: Principal,
        gate: Callable[[Audit], Gate | None],
        *,
        audit: Audit,
        default: str = "Internal",
    ) -> None:
        """`gate` is made with what records its decisions; `default`: the classification of what nobody has
        classified."""
        self.principal = principal
        self._gate = gate(self.recorded)
        self._audit = audit
        self._default = default
        self._workers = Workers("ctx-package-audit")
        self._recording: list[Call[None]] = []

    @property
    def revision(self) -> str:
        """Changes whenever the policy does."""
        return self._gate.revision if self._gate is not None else OWNER_RULE

    @property
    def sees_everything(self) -> bool:
        return self._gate is None

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
        """What these are to a policy, in their order."""
        return resources_of(reader, refs, self.principal, default=self._default)

    def govern(self, reader: Reader, ranked: Sequence[Ranked]) -> Decided:
        """Nothing of it may be given out before `settle`."""
        if self._gate is None:
            return self._as_owner(reader, ranked)
        governed = self._gate.govern(reader, [each.candidate.item for each in ranked], purpose=PURPOSE)
        shown = {str(item.ref): item for item in governed.items}
        classes = {each.ref: each.resource.classification for each in governed.decision.rulings}
        allowed = []
        for each in ranked:
            item = shown.get(each.candidate.ref)
            if item is not None:
                allowed.append(
                    Governed(
                        replace(each, candidate=replace(each.candidate, item=item)),
                        redacted=is_withheld(item),
                        text=REFERENCE_ONLY not in item.labels,
                        classification=classes.get(each.candidate.ref, ""),
                    )
                )
        denied = {each.candidate.ref for each in ranked} - shown.keys()
        return Decided(allowed, governed.decision, denied)

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
