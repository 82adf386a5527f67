"""Decisions: what Cedar says of real things, what holds without a policy, and that whatever goes wrong denies."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from research.governance.access import MemoryAccessDecision, Principal
from research.governance.labels import resources_of
from research.governance.policy import MemoryAccessPolicy
from research.store import FileStamp
from tests.research.governance.governed_index import EVERYTHING, EXAMPLE, GovernedIndex

OWNER, ANNA, GUEST = Principal("me", owner=True), Principal("anna", "anna"), Principal("guest")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[GovernedIndex]:
    index = GovernedIndex(tmp_path)
    yield index
    index.catalog.close()


def _decide(
    made: GovernedIndex, policy: MemoryAccessPolicy, refs: list[str], who: Principal = OWNER, **rest: Any
) -> MemoryAccessDecision:
    return policy.decide(who, resources_of(made.catalog, refs, who), reader=made.catalog, **rest)


def _effects(decision: MemoryAccessDecision) -> list[str]:
    return [ruling.effect for ruling in decision.rulings]


def test_without_a_policy_the_owner_reads_what_is_theirs_and_nobody_else_anything(made: GovernedIndex) -> None:
    refs = [made.page(1), "code:/src/a.py#swim", "commit:c0ffee", "experience:exp#full", "value:val", "memory:mine"]
    everything = [*refs, "memory:hers"]
    policy = made.policy()
    assert not policy.governs
    assert _effects(_decide(made, policy, everything)) == ["allow"] * 6 + ["deny"]
    assert _effects(_decide(made, policy, everything, ANNA)) == ["deny"] * 6 + ["allow"]
    assert _effects(_decide(made, policy, everything, GUEST)) == ["deny"] * 7
    assert _effects(_decide(made, policy, refs[:1], action="send")) == ["allow"]
    assert _decide(made, policy, refs).policies == ("owner",)


def test_the_example_redacts_confidential_and_denies_restricted(made: GovernedIndex) -> None:
    made.classify(made.page(2), "Confidential")
    made.classify(made.page(3), "Restricted")
    refs = [made.page(1), made.page(2), made.page(3)]
    policy = made.policy(EXAMPLE)
    decision = _decide(made, policy, refs)
    assert _effects(decision) == ["allow", "redact", "deny"]
    assert [ruling.policies for ruling in decision.rulings] == [
        ("own-things",),
        ("confidential-redacted",),
        ("restricted-never",),
    ]
    assert not decision.rulings[1].text
    assert decision.policy == policy.revision
    assert _effects(_decide(made, policy, refs, action="send")) == ["allow", "deny", "deny"]
    assert _effects(_decide(made, policy, refs, ANNA)) == ["deny"] * 3


def test_with_a_policy_the_owner_too_needs_a_permit_and_a_forbid_wins(made: GovernedIndex) -> None:
    only = f'permit (principal == User::"anna", action == Action::"read", resource == Item::"{made.page(1)}");'
    policy = made.policy(only)
    assert _effects(_decide(made, policy, [made.page(1)])) == ["deny"]
    assert _effects(_decide(made, policy, [made.page(1), made.page(2)], ANNA)) == ["allow", "deny"]
    made.write('forbid (principal, action, resource) when { resource.path like "*/hr/*" };', "policies.cedar")
    folder = made.config / "policies"
    folder.mkdir(mode=0o700)
    (made.config / "policies.cedar").rename(folder / "hr.cedar")
    decision = _decide(made, policy, [made.page(1)], ANNA)
    assert (_effects(decision), decision.policies) == (["deny"], ("hr.cedar#1",))


def test_every_attribute_can_be_decided_by(made: GovernedIndex) -> None:
    made.classify(made.page(1), "Public", status="final", module="billing", project="apollo")
    conditions = [
        'resource.status == "final"', 'resource.module == "billing"', 'resource.project == "apollo"',
        "resource.level == 0", 'resource.kind == "page"', "resource.owner && principal.owner",
        'resource.tenant == "" && principal.tenant == ""', f'resource.ref == "{made.page(1)}"',
    ]  # fmt: skip
    for condition in conditions:
        policy = made.policy(f"permit (principal, action, resource) when {{ {condition} }};")
        assert _effects(_decide(made, policy, [made.page(1)])) == ["allow"], condition
    tagged = made.policy('permit (principal, action, resource) when { resource.tags.contains("open") };')
    assert _effects(_decide(made, tagged, [made.page(1), made.page(1, made.paper)])) == ["deny", "allow"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("permit (principal, action", "unexpected end"),
        ("permit (principal, action, resource) when { resource.colour == 1 };", "colour"),
        ('permit (principal, action == Action::"reed", resource);', "reed"),
        ("permit (principal == ?principal, action, resource);", "decides nothing"),
        ("permit (principal, action, resource) when { principal.owner < 1 };", "policy.cedar"),
    ],
)
def test_a_policy_that_does_not_parse_denies_everything(made: GovernedIndex, text: str, told: str) -> None:
    policy = made.policy(text)
    decision = _decide(made, policy, [made.page(1)])
    assert _effects(decision) == ["deny"]
    assert told in decision.problem
    assert policy.governs
    made.write(EVERYTHING)
    assert _effects(_decide(made, policy, [made.page(1)])) == ["allow"]


def test_an_error_while_a_policy_is_evaluated_is_a_denial(made: GovernedIndex) -> None:
    # The forbid overflows for restricted things only; Cedar alone would leave it out and permit them.
    text = f"{EVERYTHING} forbid (principal, action, resource) when {{ resource.level * 9223372036854775807 > 0 }};"
    made.classify(made.page(2), "Restricted")
    made.classify(made.page(1), "Public")
    assert _effects(_decide(made, made.policy(text), [made.page(1), made.page(2)])) == ["allow", "deny"]


def test_without_its_engine_nothing_is_released(made: GovernedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = made.policy(EVERYTHING)
    load = builtins.__import__

    def missing(name: str, *rest: Any, **named: Any) -> Any:
        if name == "cedarpy":
            raise ImportError(name)
        return load(name, *rest, **named)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", missing)
        decision = _decide(made, policy, [made.page(1)])
    assert _effects(decision) == ["deny"]
    assert "pip install 'ctx-research[govern]'" in decision.problem
    assert _effects(_decide(made, policy, [made.page(1)])) == ["allow"]
    # A principal that cannot be told to the engine makes it fail, and that tells nothing of what it was given.
    broken = _decide(made, policy, [made.page(1)], Principal("\udc80", owner=True))
    assert (_effects(broken), "engine failed" in broken.problem) == (["deny"], True)


def test_the_revision_is_that_of_the_files(made: GovernedIndex) -> None:
    policy = made.policy()
    before = policy.revision
    made.write(EVERYTHING)
    first = policy.revision
    made.write(EVERYTHING.replace("action", 'action == Action::"read"'))
    second = policy.revision
    assert len({before, first, second}) == 3
    made.write(EVERYTHING)
    assert policy.revision == first
    (made.config / "policy.cedar").unlink()
    gone = _decide(made, policy, [made.page(1)])
    assert (_effects(gone), "gone" in gone.problem) == (["deny"], True)
    assert policy.revision not in (before, first, second)


def test_a_policy_is_the_users_own_and_lies_where_nothing_was_ingested(made: GovernedIndex, tmp_path: Path) -> None:
    path = made.write(EVERYTHING)
    path.chmod(0o622)
    assert "chmod go-w" in made.policy().problem
    path.chmod(0o600)
    made.config.chmod(0o777)
    assert "can be written by others" in made.policy().problem
    made.config.chmod(0o700)

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    inside = made.write(EVERYTHING, "named.cedar").rename(elsewhere / "named.cedar")
    named = made.policy(setting=str(inside))
    assert _effects(_decide(made, named, [made.page(1)])) == ["allow"]
    made.catalog.documents.add(made.paper, FileStamp(f"{elsewhere}/new.pdf", 1, 1, 1, 1), _pages(), reader_version=1)
    refused = _decide(made, named, [made.page(1)])
    assert (_effects(refused), "was ingested" in refused.problem) == (["deny"], True)
    around = FileStamp(f"{tmp_path}/near.pdf", 1, 1, 1, 1)
    made.catalog.documents.add(made.paper, around, _pages(), reader_version=1)
    assert not made.policy().decide(OWNER, [], reader=made.catalog).problem, "the config folder is the user's own"
    path.unlink()
    path.symlink_to(inside)
    assert "was ingested" in _decide(made, made.policy(), [made.page(1)]).problem
    path.unlink()
    made.write(EVERYTHING)
    made.catalog.documents.add(made.paper, replace(around, path=f"{made.config}/a.pdf"), _pages(), reader_version=1)
    assert "was ingested" in _decide(made, made.policy(), [made.page(1)]).problem
    assert "no policy there" in made.policy(setting=str(tmp_path / "none.cedar")).problem
    assert "no policy there" in made.policy(setting=str(made.paths.root)).problem


def _pages() -> Any:
    from research.records import Page

    return [(Page(1, "a paper"), [])]


def test_refs_that_forge_others_are_unknown_and_denied(made: GovernedIndex) -> None:
    page, doc_id = made.page(1), made.report.doc_id
    forged = [
        f"{page}\n", f'{page}"', f" {page}", f"page:{doc_id}#01", f"page:{doc_id}#0", f"page:{doc_id}#4",
        f"page:{doc_id}#1#1", f"page:{doc_id}", f'Item::"{page}"', "page:", ":", "", "memory:hers", "\udc80",
        "x" * 20_000, f"page:{doc_id}#٣", "nobody:knows",
    ]  # fmt: skip
    decision = _decide(made, made.policy(EVERYTHING), [*forged, page])
    assert _effects(decision) == ["deny"] * len(forged) + ["allow"]
    assert not decision.problem
    odd = '/src/"a" ::\n\\.py'
    from research.store import NewItem

    made.catalog.items.put("code", odd, "1", [NewItem(f"{odd}#f", "f", "text")])
    assert _effects(_decide(made, made.policy(), [f"code:{odd}#f"])) == ["allow"]


def test_labels_apply_to_what_is_below_and_the_strictest_holds(made: GovernedIndex) -> None:
    def seen(ref: str, who: Principal = OWNER) -> str:
        [resource] = resources_of(made.catalog, [ref], who)
        return resource.classification

    assert seen(made.page(1)) == "Internal"
    made.classify("report.pdf", "Public", module="people")
    made.classify("path:docs/hr", "Confidential", module="hr", project="apollo")
    made.classify(made.page(3), "Restricted")
    assert [seen(made.page(number)) for number in (1, 2, 3)] == ["Confidential", "Confidential", "Restricted"]
    [page] = resources_of(made.catalog, [made.page(1)], OWNER)
    assert (page.module, page.project, page.path) == ("people", "apollo", "/docs/hr/report.pdf")
    assert seen(f"document:{made.report.doc_id}") == "Confidential"
    assert seen(made.page(1, made.paper)) == "Internal"
    made.classify("tag:open", "Public")
    assert seen(made.page(1, made.paper)) == "Public"
    made.classify("path:/src", "Confidential")
    made.classify("path:*/keys/*", "Restricted")
    made.classify("experience:exp", "Confidential")
    assert [seen(each) for each in ("code:/src/a.py#swim", "commit:c0ffee", "experience:exp#full", "value:val")] == [
        "Confidential", "Restricted", "Confidential", "Confidential",
    ]  # fmt: skip
    made.labels.put("memory:hers", {"classification": "Restricted"}, tenant="anna")
    assert [seen("memory:hers", ANNA), seen("memory:sum", ANNA), seen("memory:mine")] == [
        "Restricted", "Restricted", "Internal",
    ]  # fmt: skip
    copy = FileStamp("/docs/hr/paper.pdf", 1, 1, 1, 1)
    made.catalog.documents.add(made.paper, copy, _pages(), reader_version=1)
    assert seen(made.page(1, made.paper)) == "Confidential", "the rules of all its paths count"
