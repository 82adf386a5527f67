"""Gate: what one principal may see of one index. Every way out passes it before a budget is filled.

    gate = gate_for(index.paths, settings, principal, audit=audit.record)
    if gate is not None:                       # None: the owner, without any policy
        governed = gate.govern(reader, items, purpose="ask")

What is denied is gone. What is redacted has masked whatever the redactor found in it; where it found nothing, the item
comes as its reference alone, unless the policy permits its text. A picture of a page shows everything, so a redacted
one has none, nor any passage: whoever looks for passages later leaves `is_withheld` items alone, for their text is no
longer the stored one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from research.errors import CtxError
from research.governance.access import Action, Effect, MemoryAccessDecision, Principal, Ruling
from research.governance.headings import without_others
from research.models import REDACTED, REFERENCE_ONLY

if TYPE_CHECKING:
    from research.governance.fail_closed import SafeRedactor
    from research.governance.policy import MemoryAccessPolicy
    from research.governance.redaction import RedactorProtocol
    from research.models import Item
    from research.observe import Recorder
    from research.settings import Settings
    from research.store.catalog.reader import Reader
    from research.store.files.paths import IndexPaths

How = Literal["masked", "text", "reference", "dropped"]
"""What became of a redacted thing: something is masked; nothing was found and the text is permitted; its reference
alone; nothing, because not even that could be made safe."""

Audit = Callable[[MemoryAccessDecision, str], None]

# Names of things, which no redactor need look at, and the only strings of its metadata that a reference keeps.
_IDENTITY = frozenset({"doc_id", "file_id", "sha", "extension", "timestamp", "language", "unit_type"})
_NAMES = frozenset({"filename", "source_path", "file_path", "name", "qualified_name"})
_PICTURES = frozenset({"image_path", "thumb_path"})
_TITLES_ARE_TEXT = frozenset({"commit", "experience", "value", "memory"})  # a reference of these has no title
_SECONDS = 15.0  # for the texts of one set; a model of names takes some of them to load
_WORST: dict[Effect, int] = {"allow": 0, "redact": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class Governed:
    """What may be shown, the decision about all of it, and what became of those that are redacted, by ref."""

    items: list[Item]
    decision: MemoryAccessDecision
    redacted: Mapping[str, How] = field(default_factory=dict)


def is_withheld(item: Item) -> bool:
    """Whether its text is not the stored one: nothing that is read from the catalog may be added to it."""
    return REDACTED in item.labels or REFERENCE_ONLY in item.labels


def gate_for(
    index_paths: IndexPaths,
    settings: Settings,
    principal: Principal,
    *,
    recorder: Recorder | None = None,
    audit: Audit | None = None,
    policy: MemoryAccessPolicy | None = None,
) -> Gate | None:
    """None: the owner without any policy file, who reads everything; for that nothing is read but where files might
    lie. `policy`: one that is kept by whoever asks often, which follows its files."""
    from research.governance.policy_files import has_policies

    if policy is None:
        if principal.owner and not has_policies(settings.policy):
            return None
        from research.governance.policy import MemoryAccessPolicy

        policy = MemoryAccessPolicy(settings.policy, index=index_paths.root)
    elif principal.owner and not policy.governs:
        return None
    return Gate(principal, policy, settings, recorder=recorder, audit=audit)


class Gate:
    """Cheap to make; may be used by many threads."""

    def __init__(
        self,
        principal: Principal,
        policy: MemoryAccessPolicy,
        settings: Settings,
        *,
        recorder: Recorder | None = None,
        audit: Audit | None = None,
        redactor: RedactorProtocol | Callable[[], RedactorProtocol] | None = None,
    ) -> None:
        """`redactor` stands in for the one that the settings make."""
        self.principal = principal
        self.policy = policy
        self._settings = settings
        self._recorder = recorder
        self._audit = audit
        self._given = redactor
        self._redactor: SafeRedactor | None = None

    @property
    def revision(self) -> str:
        """Another one whenever the policy's files or the settings that count here change."""
        own = self._settings
        told = [self.policy.revision, own.default_classification, own.redact, own.redact_language]
        return _digest("\n".join([*told, *own.redact_allow, *own.secrets]))

    def state(self, reader: Reader) -> str:
        """The revision together with how things are labelled and tagged. While this and the index's content stay the
        same, a decision does."""
        from research.store.catalog.labels import labels_state
        from research.store.catalog.tags import all_tags

        known, key = reader.count_cache(), "state of tags"
        if key not in known:
            known[key] = _digest(repr(all_tags(reader)))
        return _digest("\n".join((self.revision, labels_state(reader), str(known[key]))))

    def decide(self, reader: Reader, refs: Sequence[str], *, action: Action = "read") -> MemoryAccessDecision:
        """One decision for the set, in order of the refs. Never raises for a policy or an engine that fails: then
        everything is denied, and `problem` says why. It is not recorded: `record` does that."""
        from research.governance.resources import resources_of

        default = self._settings.default_classification
        resources = resources_of(reader, refs, self.principal, default=default)
        decision = self.policy.decide(self.principal, resources, action, reader=reader)
        if self._recorder is not None:
            for effect, count in decision.counts().items():
                if count:
                    self._recorder.count("policy_rulings", count, effect=effect)
            if decision.problem:
                self._recorder.count("policy_failed", 1)
        return decision

    def record(self, decision: MemoryAccessDecision, purpose: str) -> None:
        """Write a decision into the audit. Raises where that fails, and then nothing may be released."""
        if self._audit is None:
            return
        try:
            self._audit(decision, purpose)
        except Exception as error:  # noqa: BLE001  what is not recorded is not given out, whatever the reason
            from research.observe import log_failure

            log_failure("governance", "an access could not be recorded", error)
            raise CtxError(
                "access could not be recorded, so nothing is released", hint="see: ctx audit verify"
            ) from None

    def govern(self, reader: Reader, items: Sequence[Item], *, purpose: str) -> Governed:
        """The items that may be shown, as they may be shown. The decision is recorded before anything is given out."""
        needed = [_refs_of(item) for item in items]
        refs = list(dict.fromkeys(ref for each in needed for ref in each))
        decision = self.decide(reader, refs)
        by_ref = {ruling.ref: ruling for ruling in decision.rulings}
        rulings = [_strictest([by_ref[ref] for ref in each]) for each in needed]
        items = without_others(reader, items, partial(self._readable, reader, by_ref))
        masked = self._masked([item for item, ruling in zip(items, rulings, strict=True) if ruling.effect == "redact"])
        kept: list[Item] = []
        became: dict[str, How] = {}
        for item, ruling in zip(items, rulings, strict=True):
            if ruling.effect == "allow":
                kept.append(item)
            elif ruling.effect == "redact":
                shown, how = _shown(item, masked[id(item)], text=ruling.text)
                became[str(item.ref)] = how
                kept += [shown] if shown is not None else []
        given_out = {str(item.ref) for item in kept}
        decision = _without(decision, {ref for ref, how in became.items() if how == "dropped"} - given_out)
        self.record(decision, purpose)
        return Governed(kept, decision, became)

    def _readable(self, reader: Reader, known: Mapping[str, Ruling], refs: Sequence[str]) -> set[str]:
        """Those that may be read as they are. Of others than those that are known nothing is given out, so it is no
        access."""
        more = [ref for ref in refs if ref not in known]
        found = {ruling.ref: ruling for ruling in self.decide(reader, more).rulings} if more else {}
        return {ref for ref in refs if (known.get(ref) or found[ref]).effect == "allow"}

    def redact_text(self, ruling: Ruling, *texts: str) -> tuple[str, ...] | None:
        """Texts of a record that is no item, as they may be shown; None where nothing of them may be: it is denied, the
        redactor fails, or finds nothing and the policy does not permit the text."""
        if ruling.effect != "redact":
            return texts if ruling.effect == "allow" else None
        safe = self._safe().redact_all(texts).texts
        if any(text is None for text in safe) or (tuple(safe) == texts and not ruling.text):
            return None
        return tuple(text for text in safe if text is not None)

    def _masked(self, items: Sequence[Item]) -> dict[int, list[str | None]]:
        """Item → its texts made safe, in the order of `_texts`, all with the numbers of one context."""
        texts = [_texts(item) for item in items]
        safe = iter(self._safe().redact_all(text for each in texts for text in each).texts)
        return {id(item): [next(safe) for _ in each] for item, each in zip(items, texts, strict=True)}

    def _safe(self) -> SafeRedactor:
        if self._redactor is None:
            from research.governance.fail_closed import SafeRedactor

            self._redactor = SafeRedactor(self._given or self._own_redactor, seconds=_SECONDS, recorder=self._recorder)
        return self._redactor

    def _own_redactor(self) -> RedactorProtocol:
        """What the settings name, and besides it whatever rules alone can find, even where `redact` is off."""
        from research.governance.redaction import BaseRedactor, redactor_of

        return _Chain(redactor_of(self._settings), BaseRedactor("pii", allow=self._settings.redact_allow))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]


class _Chain:
    """Redactors one after the other, with the numbers of one context."""

    def __init__(self, *redactors: RedactorProtocol) -> None:
        self._redactors = redactors

    def redact(self, text: str) -> str:
        for redactor in self._redactors:
            text = redactor.redact(text)
        return text

    def within(self, placeholders: object) -> _Chain:
        from research.governance.placeholders import Placeholders
        from research.governance.redaction import NumberingRedactor

        assert isinstance(placeholders, Placeholders)
        return _Chain(
            *(each.within(placeholders) if isinstance(each, NumberingRedactor) else each for each in self._redactors)
        )


def _refs_of(item: Item) -> list[str]:
    """The item's own; of a page whose text runs on, also those of the pages it runs on to."""
    own = str(item.ref)
    others = [f"page:{item.ref.key}#{page}" for page in item.pages] if item.ref.kind == "page" else []
    return list(dict.fromkeys((own, *others)))


def _strictest(rulings: Sequence[Ruling]) -> Ruling:
    worst = max(rulings, key=lambda ruling: _WORST[ruling.effect])
    return replace(worst, text=all(ruling.text for ruling in rulings if ruling.effect == "redact"))


def _texts(item: Item) -> list[str]:
    """All of an item that a redactor has to see: text, title, and the strings of its metadata."""
    return [item.text, item.title, *(str(item.metadata[name]) for name in _strings(item))]


def _strings(item: Item) -> list[str]:
    left_out = _IDENTITY | _PICTURES
    return [name for name, value in item.metadata.items() if isinstance(value, str) and name not in left_out]


def _shown(item: Item, safe: Sequence[str | None], *, text: bool) -> tuple[Item | None, How]:
    body, title, *values = safe
    if title is None or any(value is None for value in values):
        return None, "dropped"
    metadata = dict(item.metadata) | dict(zip(_strings(item), map(str, values), strict=True))
    metadata |= {name: "" for name in _PICTURES if name in metadata}
    found = body is not None and body != item.text
    if body is not None and (found or text):
        made = _stripped(item, text=body, title=title, metadata=metadata, label=REDACTED)
        return made, "masked" if found else "text"
    named = {
        name: value if not isinstance(value, str) or name in _IDENTITY | _NAMES else ""
        for name, value in metadata.items()
    }
    plain = "" if item.ref.kind in _TITLES_ARE_TEXT else title
    return _stripped(item, text="", title=plain, metadata=named, label=REFERENCE_ONLY), "reference"


def _stripped(item: Item, *, text: str, title: str, metadata: Mapping[str, str | int | bool], label: str) -> Item:
    return replace(item, text=text, title=title, metadata=metadata, passages=(), labels=(*item.labels, label))


def _without(decision: MemoryAccessDecision, dropped: Iterable[str]) -> MemoryAccessDecision:
    """What could not be made safe was not given out, and the record says so."""
    gone = set(dropped)
    if not gone:
        return decision
    rulings = tuple(replace(ruling, effect="deny") if ruling.ref in gone else ruling for ruling in decision.rulings)
    return replace(decision, rulings=rulings)
