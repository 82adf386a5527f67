"""The gate: what comes out of it is allowed, masked, a reference, or nothing; and what is not recorded stays inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from research.errors import CtxError
from research.governance.access import CLASSIFICATIONS, MemoryAccessDecision, Principal
from research.governance.gate import Gate, gate_for, is_withheld
from research.governance.policy import MemoryAccessPolicy
from research.models import REDACTED, REFERENCE_ONLY, Item, Ref
from research.settings import Settings
from research.store.catalog import tags
from research.store.catalog.labels import Label, put_labels
from tests.pace import draws
from tests.research.governance.governed_index import EVERYTHING, EXAMPLE, GovernedIndex, page_item

OWNER, ANNA = Principal("me", owner=True), Principal("anna", "anna")
MAIL, CARD = "erika@example.com", "4111 1111 1111 1111"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[GovernedIndex]:
    index = GovernedIndex(tmp_path)
    yield index
    index.catalog.close()


def test_confidential_is_masked_or_comes_as_its_reference_and_restricted_is_gone(made: GovernedIndex) -> None:
    for number, level in ((1, "Public"), (2, "Confidential"), (3, "Restricted")):
        made.classify(made.page(number), level)
    made.classify("paper.pdf", "Confidential")
    items = [
        page_item(made.page(1), "open"),
        page_item(made.page(2), f"Write to {MAIL}, card {CARD}.", title=f"For {MAIL}", author=MAIL),
        page_item(made.page(3), "nobody's"),
        page_item(made.page(1, made.paper), "The price is a secret."),
    ]
    told: list[tuple[MemoryAccessDecision, str]] = []
    gate = made.gate(OWNER, EXAMPLE, audit=lambda decision, purpose: told.append((decision, purpose)))
    governed = gate.govern(made.catalog, items, purpose="ask")
    whole, masked, reference = governed.items
    assert whole == items[0]
    assert (MAIL in str(masked), CARD in str(masked), "Write to <EMAIL_1>" in masked.text) == (False, False, True)
    assert (masked.labels, masked.passages, masked.regions) == ((REDACTED,), (), [])
    assert (reference.labels, reference.text, reference.title) == ((REFERENCE_ONLY,), "", "A title")
    assert "Secret heading" not in str(reference)
    assert reference.metadata["filename"] == "report.pdf"
    for item in (masked, reference):
        assert is_withheld(item)
        assert (item.metadata["image_path"], item.metadata["thumb_path"]) == ("", "")
    assert governed.redacted == {made.page(2): "masked", made.page(1, made.paper): "reference"}
    assert told == [(governed.decision, "ask")]
    assert governed.decision.counts() == {"allow": 1, "redact": 2, "deny": 1}


def test_the_text_of_what_has_nothing_to_mask_needs_a_permit(made: GovernedIndex) -> None:
    text = EXAMPLE.replace('[Action::"read_redacted"]', '[Action::"read_redacted", Action::"read_text"]')
    made.classify("report.pdf", "Confidential")
    gate = made.gate(OWNER, text)
    governed = gate.govern(made.catalog, [page_item(made.page(1), "a plain text")], purpose="ask")
    assert [item.text for item in governed.items] == ["a plain text"]
    assert governed.redacted == {made.page(1): "text"}
    [ruling] = governed.decision.rulings
    assert gate.redact_text(ruling, "plain", MAIL) == ("plain", "<EMAIL_1>")
    assert gate.redact_text(ruling, "plain") == ("plain",)
    [ruling] = made.gate(OWNER, EXAMPLE).decide(made.catalog, [made.page(1)]).rulings
    assert gate.redact_text(ruling, "plain") is None


def test_a_text_that_runs_on_is_as_strict_as_the_page_it_runs_on_to(made: GovernedIndex) -> None:
    made.classify(made.page(2), "Restricted")
    items = [page_item(made.page(1), "runs on", pages=(1, 2)), page_item(made.page(1), "does not", pages=(1,))]
    governed = made.gate(OWNER, EXAMPLE).govern(made.catalog, items, purpose="ask")
    assert [item.text for item in governed.items] == ["does not"]


def test_titles_that_are_text_are_withheld_with_it(made: GovernedIndex) -> None:
    for ref in ("commit:c0ffee", "experience:exp#full", "code:/src/a.py#swim"):
        made.classify(ref, "Confidential")
    items = [
        Item(Ref.parse("commit:c0ffee"), "Mend the leak", "Mend the leak", 0.5, metadata={"author": "Erika"}),
        Item(Ref.parse("experience:exp#full"), "a goal", "a goal", 0.5),
        Item(Ref.parse("code:/src/a.py#swim"), "swim", "def swim()", 0.5, metadata={"signature": "def swim()"}),
    ]
    governed = made.gate(OWNER, EXAMPLE).govern(made.catalog, items, purpose="context")
    assert [(item.title, item.text) for item in governed.items] == [("", ""), ("", ""), ("swim", "")]
    assert [dict(item.metadata) for item in governed.items] == [{"author": ""}, {}, {"signature": ""}]


class _Failing:
    """Fails for what it is told to; `quietly`: gives something that is no text."""

    def __init__(self, word: str, *, quietly: bool = False) -> None:
        self._word, self._quietly = word, quietly

    def redact(self, text: str) -> Any:
        if self._word in text:
            if self._quietly:
                return None
            raise ValueError(text)
        return text.replace("mask", "<X_1>")


@pytest.mark.parametrize("quietly", [True, False])
def test_what_cannot_be_made_safe_is_not_shown(made: GovernedIndex, quietly: bool) -> None:
    made.classify("report.pdf", "Confidential")
    items = [
        page_item(made.page(1), "the body is bad, mask it"),
        page_item(made.page(2), "mask it", title="a bad title"),
        page_item(made.page(3), "mask it"),
    ]
    told: list[MemoryAccessDecision] = []
    gate = made.gate(
        OWNER, EXAMPLE, redactor=_Failing("bad", quietly=quietly), audit=lambda decision, _: told.append(decision)
    )
    governed = gate.govern(made.catalog, items, purpose="ask")
    assert [(str(item.ref), item.text) for item in governed.items] == [(made.page(1), ""), (made.page(3), "<X_1> it")]
    assert list(governed.redacted.values()) == ["reference", "dropped", "masked"]
    assert [ruling.effect for ruling in told[0].rulings] == ["redact", "deny", "redact"]
    assert gate.redact_text(governed.decision.rulings[0], "bad") is None


def test_what_is_not_recorded_is_not_released(made: GovernedIndex) -> None:
    def fails(decision: MemoryAccessDecision, purpose: str) -> None:
        raise OSError(f"no space for {decision.id}")

    with pytest.raises(CtxError, match="nothing is released") as caught:
        made.gate(OWNER, EVERYTHING, audit=fails).govern(made.catalog, [page_item(made.page(1), "text")], purpose="ask")
    assert caught.value.__cause__ is None


def test_a_broken_policy_lets_nothing_through_and_the_record_says_so(made: GovernedIndex) -> None:
    told: list[MemoryAccessDecision] = []
    gate = made.gate(OWNER, "permit (", audit=lambda decision, _: told.append(decision))
    governed = gate.govern(made.catalog, [page_item(made.page(1), "text")], purpose="ask")
    assert (governed.items, told[0].problem != "") == ([], True)


def test_the_owner_without_a_policy_needs_no_gate(made: GovernedIndex) -> None:
    assert gate_for(made.paths, Settings(), OWNER) is None
    gate = gate_for(made.paths, Settings(), ANNA)
    assert gate is not None
    assert gate.decide(made.catalog, [made.page(1), "memory:hers"]).counts() == {"allow": 1, "redact": 0, "deny": 1}
    named = gate_for(made.paths, Settings(policy=str(made.write(EXAMPLE))), OWNER)
    assert named is not None
    missing = gate_for(made.paths, Settings(policy="/nowhere/at.cedar"), OWNER)
    assert missing is not None
    assert missing.decide(made.catalog, [made.page(1)]).problem
    kept = MemoryAccessPolicy(config=made.config)
    assert gate_for(made.paths, Settings(), OWNER, policy=kept) is not None
    gate = Gate(OWNER, kept, Settings())
    assert Gate(OWNER, kept, Settings(default_classification="Restricted")).revision != gate.revision


def test_what_decisions_rest_on_has_a_state(made: GovernedIndex) -> None:
    gate = made.gate(OWNER, EXAMPLE)
    states = [gate.state(made.catalog)]
    assert gate.state(made.catalog) == states[0]
    made.classify("report.pdf", "Public")
    states.append(gate.state(made.catalog))
    tags.add_tags(made.catalog, [made.report.doc_id], ["open"])
    states.append(gate.state(made.catalog))
    made.write(EVERYTHING)
    states.append(gate.state(made.catalog))
    assert len(set(states)) == 4


WORDS = ["zebra", "quagga", "okapi", MAIL]
BROKEN = "permit (principal, action"
RULES = [
    EVERYTHING,
    'permit (principal, action == Action::"read", resource) when { resource.level < 1 };',
    'permit (principal, action == Action::"read_redacted", resource) when { resource.level < 3 };',
    'permit (principal, action == Action::"read_text", resource) when { resource.status == "final" };',
    "forbid (principal, action, resource) when { resource.level == 3 };",
    'forbid (principal, action == Action::"read", resource) when { resource.level == 2 };',
    "permit (principal, action, resource) when { resource.level * 9223372036854775807 >= 0 };",
    BROKEN,
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GovernedIndex]:
    index = GovernedIndex(tmp_path_factory.mktemp("governed"))
    yield index
    index.catalog.close()


@draws(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    policies=st.lists(st.sampled_from(RULES), max_size=4, unique=True),
    levels=st.lists(st.sampled_from(CLASSIFICATIONS), min_size=3, max_size=3),
    status=st.sampled_from(["draft", "final"]),
    words=st.lists(st.sampled_from(WORDS), min_size=3, max_size=3),
    owner=st.booleans(),
)
def test_nothing_of_what_is_denied_or_masked_comes_out(
    shared: GovernedIndex, *, policies: list[str], levels: list[str], status: str, words: list[str], owner: bool
) -> None:
    file_id, time = f"file-{shared.report.doc_id}", "2026-01-01T00:00:00+00:00"
    given_to = [(f"page:{file_id}#{number}", "classification", level) for number, level in enumerate(levels, 1)]
    put_labels(
        shared.catalog,
        [Label(*each, given_at=time) for each in [*given_to, (f"document:{file_id}", "status", status)]],
    )
    shared.write("\n".join(policies) or "// nothing is permitted")
    items = [page_item(shared.page(n), f"{word} page{n}", title=f"{word} title{n}") for n, word in enumerate(words, 1)]
    governed = shared.gate(Principal("me", owner=owner)).govern(shared.catalog, items, purpose="ask")
    out = str([asdict(item) for item in governed.items]) + str(asdict(governed.decision))
    for number, (ruling, word) in enumerate(zip(governed.decision.rulings, words, strict=True), 1):
        assert (ruling.resource.classification, ruling.resource.status) == (levels[number - 1], status)
        if ruling.effect == "deny":
            assert f"page{number}" not in out
            assert f"title{number}" not in out
        elif ruling.effect == "redact" and word == MAIL:
            assert f"{MAIL} page{number}" not in out
            assert f"<EMAIL_1> page{number}" in out
        elif ruling.effect == "redact" and not ruling.text:
            assert f"page{number}" not in out
    if BROKEN in policies or not any("permit" in each for each in policies):
        assert governed.items == []
