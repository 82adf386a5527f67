"""What a principal may see of an index, decided before anything is searched: the rows of a restricted catalog, with
what a redactor left of those that come redacted.

What is denied is in none of them. Of what is redacted the text is masked before it is cut, scored or put into an
answer; where nothing is found to mask, it says that it is withheld and is found by no question, unless the policy
permits its text. A picture of a page shows everything, so a redacted one has none. What was made from something that is
denied (a value, a summary) is denied with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from research.errors import CtxError
from research.governance.access import Action, MemoryAccessDecision, Principal, Ruling
from research.governance.labels import resources_of
from research.models import REDACTED, REFERENCE_ONLY, WITHHELD
from research.observe import NULL_RECORDER, Recorder, log_failure
from research.store import restricted

if TYPE_CHECKING:
    from research.governance.policy import MemoryAccessPolicy
    from research.governance.redaction import RedactorProtocol, SafeRedactor
    from research.models import Question, ResearchContext, SourceDocument
    from research.settings import Settings
    from research.store import Catalog, Reader, StoredItem

T = TypeVar("T")
Audit = Callable[[MemoryAccessDecision, str], object]

# Of the metadata of an item: names of things, which no redactor need look at, and the strings that are left of one that
# is withheld.
_IDENTITY = frozenset({"sha", "extension", "timestamp", "language", "unit_type", "axis", "experience", "members"})
_NAMES = frozenset({"filename", "source_path", "file_path", "name", "qualified_name"})
_TITLES_ARE_TEXT = frozenset({"commit", "experience", "value"})
# What is told in an experience, in words.
_TOLD = ("goal", "hypothesis", "action", "prediction", "outcome_result", "surprise", "root_cause", "lesson")
_DECIDED = frozenset({"page", "document", "memory", "code", "commit", "experience", "value", "file"})
_HIDDEN_DOCUMENT = ("document", "deny")
_SECONDS = 15.0  # for the texts of one thing; a model of names takes some of them to load
_AT_ONCE = 200  # of many records, decided about together
_SEPARATOR = " > "  # of section paths


class PolicyAccess:
    """What one principal may see under a policy, or of another's index. May be used by many threads."""

    def __init__(
        self,
        principal: Principal,
        policy: MemoryAccessPolicy,
        settings: Settings,
        catalog: Callable[[], Catalog],
        *,
        recorder: Recorder = NULL_RECORDER,
        audit: Audit = lambda decision, purpose: None,
        redactor: RedactorProtocol | Callable[[], RedactorProtocol] | None = None,
    ) -> None:
        """`catalog` is all of it; `redactor` stands in for the one that the settings make."""
        self.principal = principal
        self.policy = policy
        self._settings = settings
        self._catalog = catalog
        self._recorder = recorder
        self._audit = audit
        self._given = redactor
        self._redactor: SafeRedactor | None = None
        self._denied: tuple[Ruling, ...] = ()
        self._problem = ""

    @property
    def tenant(self) -> str | None:
        """Whose memories, turns and packages may be seen at all; None: anybody's."""
        return None if self.principal.owner else self.principal.tenant

    @property
    def problem(self) -> str:
        """Return why everything is denied; empty if it is not."""
        return self.policy.problem or self._problem

    @property
    def revision(self) -> str:
        """Return another text whenever the policy's files or the settings that count here change."""
        own = self._settings
        told = [self.policy.revision, own.default_classification, own.redact, own.redact_language]
        text = "\n".join([*told, *own.redact_allow, *own.secrets])
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]

    def decide(
        self, reader: Reader, refs: Sequence[str], *, action: Action = "read", principal: Principal | None = None
    ) -> MemoryAccessDecision:
        """Decide about the refs, in their order; `reader` is of the whole catalog. Never raises for a policy
        or an engine that fails: then everything is denied, and `problem` says why. It is not recorded."""
        who = principal or self.principal
        resources = resources_of(reader, refs, who, default=self._settings.default_classification)
        return self.policy.decide(who, resources, action, reader=reader)

    def see(self, reader: Reader, before: restricted.Seen | None = None) -> restricted.Seen:
        """Look up what there is to see of the whole catalog; or of its memories, with what was seen `before` of the
        rest."""
        from research.governance.redaction import Placeholders

        looking = _Looking(self, reader)
        if before is None:
            self._placeholders = Placeholders()
            seen = looking.look()
        else:
            looking.denied = [each for each in self._denied if each.resource.kind != "memory"]
            seen = looking.look_again(before)
        self._denied, self._problem = tuple(looking.denied), looking.problem
        return seen

    def shown(self, things: Sequence[T], purpose: str, ref: Callable[[T], str] = str) -> Sequence[T]:
        """Return the things, once it is on record that they are shown. Raises where that fails: nothing may be given
        out."""
        self.decided([ref(each) for each in things], purpose)
        return things

    def each_shown(self, things: Iterator[T], purpose: str, ref: Callable[[T], str]) -> Iterator[T]:
        """Yield things, some at a time, once it is on record that they are shown."""
        while some := list(islice(things, _AT_ONCE)):
            yield from self.shown(some, purpose, ref)

    def decided(
        self, refs: Iterable[str], purpose: str, *, action: Action = "read", audit: Audit | None = None
    ) -> MemoryAccessDecision:
        """Return the decision about what is shown, recorded with all that is denied: who may read the record knows what
        was kept from whom. `audit` takes it in place of this access's own."""
        known = [ref for ref in dict.fromkeys(refs) if ref.partition(":")[0] in _DECIDED]
        with self._catalog().snapshot() as reader:
            decision = self.decide(reader, known, action=action)
        if action == "read":
            rulings = [_named(ruling) for ruling in decision.rulings]
            if any(ruling.effect == "deny" for ruling in rulings) and not decision.problem:
                raise CtxError("what may be seen has changed meanwhile", hint="run the same command again")
            decision = replace(decision, rulings=(*rulings, *self._denied))
        for effect, count in decision.counts().items():
            if count:
                self._recorder.count("policy_rulings", count, effect=effect)
        if decision.problem:
            self._recorder.count("policy_failed", 1)
        record_access(audit or self._audit, decision, purpose)
        return decision

    def asking(self, question: Question) -> Question:
        """Return the question, which says itself what of the index may be sent to a model elsewhere."""
        if self.problem:
            question.notes.append(f"nothing is released: {self.problem}")
        return replace(question, sendable=self.sendable)

    def sendable(self, refs: Sequence[str]) -> set[str]:
        """Return the refs whose text may go to a model that runs elsewhere."""
        rulings = self.decided(refs, "send", action="send").rulings
        return {ruling.ref for ruling in rulings if ruling.effect == "allow"}

    def without_unsendable(self, context: ResearchContext) -> ResearchContext:
        """Return what a model elsewhere may be sent: sources that it may not get keep their number and say nothing."""
        permitted = self.sendable([source.ref for source in context.sources])
        sources = [source if source.ref in permitted else _withheld(source) for source in context.sources]
        return replace(context, sources=sources)

    def redact(self, *texts: str) -> tuple[str | None, ...]:
        """Return each text as it may be shown; None where that fails."""
        if self._redactor is None:
            from research.governance.redaction import SafeRedactor

            self._redactor = SafeRedactor(self._given or self._own_redactor, seconds=_SECONDS, recorder=self._recorder)
        return self._redactor.redact_all(texts, self._placeholders).texts

    def _own_redactor(self) -> RedactorProtocol:
        """Return what the settings name, and besides it whatever rules alone can find, even where `redact` is off."""
        from research.governance.redaction import BaseRedactor, Chain, redactor_of

        with self._catalog().snapshot() as reader:
            named = redactor_of(self._settings, reader=reader)
        return Chain(named, BaseRedactor("pii", allow=self._settings.redact_allow))


def record_access(audit: Audit, decision: MemoryAccessDecision, purpose: str) -> None:
    """Record a decision. Raises CtxError where that fails: nothing of it may be given out."""
    try:
        audit(decision, purpose)
    except Exception as error:  # noqa: BLE001  what is not recorded is not given out, whatever the reason
        log_failure("governance", "an access could not be recorded", error)
        why = error.message if isinstance(error, CtxError) else type(error).__name__
        raise CtxError(
            f"access could not be recorded, so nothing is released: {why}", hint="see: ctx audit verify"
        ) from None


class _Looking:
    """One look at the whole catalog."""

    def __init__(self, access: PolicyAccess, reader: Reader) -> None:
        self._access, self._reader = access, reader
        self.seen = restricted.Seen(access.tenant)
        self.denied: list[Ruling] = []
        self.problem = ""

    def look(self) -> restricted.Seen:
        self._documents()
        self._items()
        self._memories()
        self._paths()
        return self.seen

    def look_again(self, before: restricted.Seen) -> restricted.Seen:
        labels = {ref: label for ref, label in before.labels.items() if not ref.startswith("memory:")}
        self.seen = replace(before, memories=set(), masked_memories={}, labels=labels)
        self._memories()
        return self.seen

    def _ruled(self, refs: Sequence[str], tenant: str | None = None) -> dict[str, Ruling]:
        who = self._access.principal
        decision = self._access.decide(
            self._reader, refs, principal=who if tenant is None else replace(who, tenant=tenant)
        )
        self.problem = self.problem or decision.problem
        return {ruling.ref: ruling for ruling in decision.rulings}

    def _documents(self) -> None:
        pages, documents = self._reader.governance.page_places(), self._reader.documents.all()
        refs = [f"page:{doc_id}#{page}" for doc_id, numbered in pages.items() for _, page in numbered]
        ruled = self._ruled([*(f"document:{info.doc_id}" for info in documents), *refs])
        for info in documents:
            whole, numbered = ruled[f"document:{info.doc_id}"], pages.get(info.doc_id, [])
            rulings = {number: ruled[f"page:{info.doc_id}#{number}"] for _, number in numbered}
            effects = {ruling.effect for ruling in rulings.values()}
            if whole.effect == "deny" and effects <= {"deny"}:
                self.denied.append(whole)
                continue
            self.denied += [ruling for ruling in rulings.values() if ruling.effect == "deny"]
            self.seen.documents.add(info.doc_id)
            if whole.effect != "allow":
                self.seen.labels[whole.ref] = REDACTED
                if "allow" not in effects:  # its names stand with every page that may be read
                    safe = self._access.redact(info.filename, info.title, info.source_path)
                    filename, title, path = (text or "" for text in safe)
                    self.seen.masked_documents[info.doc_id] = filename, title, path
            if effects <= {"allow"}:
                self.seen.pages.update(page_id for page_id, _ in numbered)
            else:
                self._pages(info.doc_id, numbered, rulings)

    def _pages(self, doc_id: str, numbered: Sequence[tuple[int, int]], rulings: Mapping[int, Ruling]) -> None:
        """Look at the pages of a document of which not every page may be read as it is."""
        plain = {number for number, ruling in rulings.items() if ruling.effect == "allow"}
        shown = [page_id for page_id, number in numbered if rulings[number].effect != "deny"]
        paths = self._reader.pages.section_paths(doc_id)
        for page_id, (page, structure) in self._reader.pages.with_text(shown).items():
            ruling, found = rulings[page.page], True
            text, other = structure.text, None
            if ruling.effect == "redact":
                [text], found = self._masked(ruling, text)
                other = None if text == structure.text else text
            kept = partial(_is_own, _letters(text), paths, page.page, plain)
            path = _SEPARATOR.join(part for part in page.section_path.split(_SEPARATOR) if kept(part))
            parent = page.parent_heading if kept(page.parent_heading) else ""
            masked = restricted.MaskedPage(other, path, parent, picture=ruling.effect == "allow", found=found)
            self.seen.pages.add(page_id)
            if masked != restricted.MaskedPage(None, page.section_path, page.parent_heading, picture=True):
                self.seen.masked_pages[page_id] = masked

    def _masked(self, ruling: Ruling, *texts: str) -> tuple[tuple[str, ...], bool]:
        """Return what is shown of redacted texts, and whether it is: if not all could be made safe, or nothing was
        found to mask, the first says that it is withheld."""
        safe = self._access.redact(*texts)
        shown = None not in safe and (safe != texts or ruling.text)
        self.seen.labels[ruling.ref] = REDACTED if shown else REFERENCE_ONLY
        return (tuple(map(str, safe)) if shown else (WITHHELD, *[""] * (len(texts) - 1))), shown

    def _items(self) -> None:
        places, told = self._reader.governance.item_places(), self._reader.items.parents("experience")
        refs = {number: _item_ref(*place) for number, *place in places}
        ruled = self._ruled(list(dict.fromkeys([*refs.values(), *(f"experience:{each.parent}" for each in told)])))
        unseen = {ref for ref, ruling in ruled.items() if ruling.effect == "deny"}
        values = dict(self._reader.items.metadata("value"))
        unseen |= {refs[number] for number, facts in values.items() if _made_of(facts) & unseen}
        redacted = [number for number, ref in refs.items() if ruled[ref].effect == "redact" and ref not in unseen]
        for number, item in self._reader.items.get(redacted).items():
            masked_item = self._masked_item(item, ruled[refs[number]])
            if masked_item is None:  # not even its names could be made safe
                unseen.add(refs[number])
            else:
                self.seen.masked_items[number] = masked_item
        masks = self.seen.masked_items
        self.seen.masked_items = {number: masked for number, masked in masks.items() if refs[number] not in unseen}
        for number, kind, parent, _ in places:
            if refs[number] not in unseen:
                self.seen.items.add(number)
                self.seen.parents.add((kind, parent))
        for each in told:
            ruling = ruled[f"experience:{each.parent}"]
            if ruling.ref not in unseen:
                self.seen.parents.add(("experience", each.parent))
                if ruling.effect == "redact":
                    safe, _ = self._masked(ruling, *(str(each.metadata.get(name, "")) for name in _TOLD))
                    masked = {**each.metadata, **dict(zip(_TOLD, safe, strict=True))}
                    self.seen.masked_parents["experience", each.parent] = masked
        self.denied += [replace(ruled[ref], effect="deny") for ref in sorted(unseen)]

    def _masked_item(self, item: StoredItem, ruling: Ruling) -> restricted.MaskedItem | None:
        kind, title, text, metadata = item.kind, item.title, item.text, item.metadata
        names = [name for name, value in metadata.items() if name not in _IDENTITY and _strings(value)]
        strings = [each for name in names for each in _strings(metadata[name])]
        body, safe_title, *safe = self._access.redact(text, title, *strings)
        if safe_title is None or None in safe:
            return None
        left = iter(map(str, safe))
        masked = {name: _with_strings(metadata[name], left) for name in names}
        if body is not None and (body != text or ruling.text):
            self.seen.labels[ruling.ref] = REDACTED
            return restricted.MaskedItem(kind, safe_title, body, {**metadata, **masked}, found=True)
        self.seen.labels[ruling.ref] = REFERENCE_ONLY
        empty = {name: masked[name] if name in _NAMES else type(metadata[name])() for name in names}
        shown = "" if kind in _TITLES_ARE_TEXT else safe_title
        return restricted.MaskedItem(kind, shown, WITHHELD, {**metadata, **empty}, found=False)

    def _memories(self) -> None:
        for tenant in self._reader.memories.tenants() if self.seen.tenant is None else [self.seen.tenant]:
            numbers = self._reader.governance.memory_numbers(tenant)
            ruled = self._ruled([f"memory:{name}" for name in numbers], tenant)
            unseen = {name for name in numbers if ruled[f"memory:{name}"].effect == "deny"}
            unseen |= {made for made, source in self._reader.governance.summary_sources(tenant) if source in unseen}
            self.denied += [replace(ruled[f"memory:{name}"], effect="deny") for name in numbers if name in unseen]
            seen = {name: number for name, number in numbers.items() if name not in unseen}
            self.seen.memories.update((tenant, number) for number in seen.values())
            redacted = [number for name, number in seen.items() if ruled[f"memory:{name}"].effect == "redact"]
            for number, memory in self._reader.memories.get(tenant, redacted).items():
                own = (memory.text, memory.speaker, memory.category)
                (text, speaker, category), found = self._masked(ruled[f"memory:{memory.id}"], *own)
                self.seen.masked_memories[tenant, number] = restricted.MaskedMemory(
                    text, speaker, category, found=found
                )

    def _paths(self) -> None:
        ruled = self._ruled(self._reader.governance.file_refs())
        self.seen.refs.update(ref for ref, ruling in ruled.items() if ruling.effect != "deny")


def _named(ruling: Ruling) -> Ruling:
    """A document that is denied goes by its name all the same, where a page of it may be seen."""
    return replace(ruling, effect="redact") if (ruling.resource.kind, ruling.effect) == _HIDDEN_DOCUMENT else ruling


def _item_ref(kind: str, parent: str, key: str) -> str:
    return f"experience:{parent}" if kind == "experience" else f"{kind}:{key}"


def _made_of(facts: Mapping[str, Any]) -> set[str]:
    """Return what a value is made of."""
    members = facts.get("members")
    return {f"experience:{each}" for each in (*(members if isinstance(members, list) else ()), facts.get("experience"))}


def _strings(value: object) -> list[str]:
    if isinstance(value, list):
        return [each for each in value if isinstance(each, str)]
    return [value] if isinstance(value, str) else []


def _with_strings(value: Any, strings: Iterator[str]) -> Any:
    """Return the value with these strings in place of its own."""
    if isinstance(value, list):
        return [next(strings) if isinstance(each, str) else each for each in value]
    return next(strings)


def _is_own(own: str, paths: Sequence[tuple[int, str]], page: int, plain: Collection[int], heading: str) -> bool:
    """Return whether a heading that a page stands under is to be seen: in its own text, or on the pages where it
    stands, the first whose section it is or the end of the one before."""
    if not heading or _letters(heading) in own:
        return bool(heading)
    first = min(next((number for number, path in paths if heading in path.split(_SEPARATOR)), page), page)
    return all(number in plain for number in (first - 1, first) if number > 0)


def _letters(text: str) -> str:
    """Letters and digits only, without case: markdown marks some of the rest."""
    return "".join(filter(str.isalnum, text.casefold()))


_UNSAID = ("doc_id", "title", "markdown_content", "source_path", "link", "ref", "file_id")
_NONE = ("section_path", "parent_heading", "thumbnail_path", "image_path")


def _withheld(source: SourceDocument) -> SourceDocument:
    nothing: dict[str, Any] = {**dict.fromkeys(_UNSAID, ""), **dict.fromkeys(_NONE)}
    return replace(source, filename="withheld", passages=[], regions=[], **nothing)
