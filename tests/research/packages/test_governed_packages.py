"""Packages under a policy: what is denied is gone, what is redacted is masked, and all of it is on record; and the
cache, which serves nobody anything that was not decided for them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from research.errors import CtxError, NothingFoundError
from research.governance import Audit, Labels, Principal
from research.index import Index
from research.packages.request import ContextPackage
from research.settings import Settings
from research.store import Whose
from tests.research.packages.redis_server import RedisServer

ASKED = "why do uploads stop and are parts sent again"
EVERYTHING = "permit (principal, action, resource);"
EXAMPLE = (Path(__file__).parents[3] / "research/governance/example.cedar").read_text()
AGENT = Principal("agent", "")


def asked(**more: Any) -> dict[str, Any]:
    return {"intent": ASKED, **more}


def manual(index: Index) -> str:
    return next(each.doc_id for each in index.documents.list() if each.filename == "manual.pdf")


def label(index: Index, target: str, **values: str) -> None:
    Labels(lambda: index.catalog).put(target, values)


def test_what_is_denied_is_as_if_it_were_not_there(governed: Callable[[str], Index]) -> None:
    index = governed(EXAMPLE)
    page = f"page:{manual(index)}#1"
    label(index, page, classification="Restricted")
    package = index.packages.build(asked(pinned=[page]))
    assert [(each.ref, each.reason) for each in package.pinned_out] == [(page, "unknown")]
    assert index.policy.audit().entry(package.policy_decision_id).refs[-1] == (page, "deny")
    assert "three times at most" not in package.content
    told = index.packages.build(asked()).model_dump_json()
    assert page not in told, "what the caller did not name is not named to them"


def test_confidential_sources_come_masked_or_as_their_reference(governed: Callable[[str], Index]) -> None:
    index = governed(EXAMPLE)
    index.memories.remember("Uploads stop; call Ana at +49 431 1234567 or ana@example.com.", id="masked")
    index.memories.remember("Uploads stop on full moons.", id="plain")
    for ref in ("memory:masked", "memory:plain"):
        label(index, ref, classification="Confidential")
    package = index.packages.build(asked(pinned=["memory:masked", "memory:plain"]))
    found = {source.ref: source for source in package.sources}
    assert found["memory:masked"].projection == "redacted"
    assert found["memory:plain"].projection == "reference"
    assert {source.classification for source in package.sources if source.pinned} == {"Confidential"}
    assert found["memory:masked"].link == ""
    for secret in ("1234567", "ana@example.com", "full moons"):
        assert secret not in package.content
    assert package.tokens_used == index.counter.count(package.content)


def test_all_denied_is_an_empty_valid_package_with_the_denial_on_record(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    with Index.open(root, Settings(events_file=str(file))) as index:
        package = index.acting_as(AGENT).packages.build(asked(traceId="t1"))
        entry = index.policy.audit().entry(package.policy_decision_id)
    assert (package.sources, package.content, package.tokens_used, package.denied) == ([], "", 0, True)
    assert entry.denied > 0
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each["event"] for each in events] == ["ContextBuildRequested", "AccessDenied", "ContextPackageBuilt"]
    assert {each["traceId"] for each in events} == {"t1"}
    assert events[1]["policyDecisionId"] == package.policy_decision_id


def test_a_policy_that_does_not_parse_releases_nothing(governed: Callable[[str], Index]) -> None:
    package = governed("permit (principal, action").packages.build(asked())
    assert (package.sources, package.denied) == ([], True)
    assert any("policy" in note for note in package.coverage.notes)


def test_what_cannot_be_audited_is_not_released(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CtxError("no space left")

    monkeypatch.setattr(Audit, "record", fail)
    with pytest.raises(CtxError, match="nothing is released") as error:
        index.packages.build(asked())
    assert error.value.trace_id
    assert index.packages.list() == []


@pytest.mark.slow
def test_a_sentence_that_runs_on_to_a_page_that_is_denied_ends_on_its_own(
    governed: Callable[[str], Index], tmp_path: Path
) -> None:
    from ingest import Observer, ingest
    from tests.conftest import write_pdf

    index = governed(EXAMPLE)
    pdf = write_pdf(
        tmp_path / "docs" / "running.pdf",
        ["The zeppelin budget was cut because the board of the company had found out that the",
         "treasurer had hidden the walrus money in Panama. It ended there."],
    )  # fmt: skip
    ingest(index.paths, [pdf], settings=Settings(), observer=Observer())
    index.refresh()
    document = next(each.doc_id for each in index.documents.list() if each.filename == "running.pdf")
    label(index, f"page:{document}#2", classification="Restricted")
    for budget in (6000, 120):
        package = index.packages.build({"intent": "Why was the zeppelin budget cut?", "tokenBudget": budget})
        assert "zeppelin" in package.content
        assert "walrus" not in package.model_dump_json()


def test_project_and_module_are_labels_and_restrict(index: Index) -> None:
    document = manual(index)
    label(
        index, f"document:{next(d.file_id for d in index.documents.list() if d.doc_id == document)}", project="uploads"
    )
    package = index.packages.build(asked(scope={"project": "uploads"}))
    assert {source.ref.partition("#")[0] for source in package.sources} == {f"page:{document}"}
    found = index.packages.build(asked(retrieval={"sources": ["metadata"], "filters": {"project": "Uploads"}}))
    assert {source.ref.partition("#")[0] for source in found.sources} == {f"page:{document}"}


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clocked(root: Path) -> Iterator[tuple[Index, Clock]]:
    """An index whose packages go by a clock of ours."""
    from research.packages.cache import PackageCache
    from research.packages.packages import packages_of

    with Index.open(root) as index:
        clock, made = Clock(), packages_of(index)
        made._now = clock
        made._cache = PackageCache(lambda: index.catalog, now=clock)
        index.rooms.keep_packages(made)
        yield index, clock


def served(index: Index, package: ContextPackage) -> bool:
    """Whether the package came from the cache, by its decision: a new one is a new build."""
    again = index.packages.get(package.context_package_id)
    assert again.context_package_id == package.context_package_id
    assert again.content or not package.content
    return again.policy_decision_id == package.policy_decision_id


def test_a_package_is_served_from_the_cache_for_its_time_and_rebuilt_after_it(clocked: tuple[Index, Clock]) -> None:
    index, clock = clocked
    package = index.packages.build(asked(ttlSeconds=60))
    assert index.packages.get(package.context_package_id) == package
    clock.now += timedelta(seconds=59)
    assert served(index, package)
    clock.now += timedelta(seconds=2)
    again = index.packages.get(package.context_package_id)
    assert again.policy_decision_id != package.policy_decision_id
    assert again.context_build_request_id == package.context_build_request_id
    assert again.expires_at > package.expires_at
    assert served(index, again)
    clock.now += timedelta(days=400)
    assert not served(index, again), "a clock that jumps over its time"


def test_a_clock_that_jumps_back_serves_nothing_of_the_future(clocked: tuple[Index, Clock]) -> None:
    index, clock = clocked
    package = index.packages.build(asked())
    clock.now -= timedelta(hours=1)
    assert not served(index, package)


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.memories.remember("Something new."),
        lambda index: index.documents.tag(manual(index), "new"),
        lambda index: label(index, f"page:{manual(index)}#1", status="draft"),
        lambda index: index.experiences.record(
            goal="g", hypothesis="h", action="a", prediction="p", outcome="confirmed", outcome_result="r"
        ),
        lambda index: index.admin.remove("manual.pdf"),
    ],
)
def test_a_change_of_the_index_needs_a_new_decision(index: Index, change: Callable[[Index], object]) -> None:
    package = index.packages.build(asked())
    assert served(index, package)
    change(index)
    assert not served(index, package)


def test_a_change_of_the_policy_needs_a_new_decision(governed: Callable[[str], Index], tmp_path: Path) -> None:
    index = governed(EVERYTHING)
    page = f"page:{manual(index)}#1"
    label(index, page, classification="Restricted")
    package = index.packages.build(asked(pinned=[page]))
    assert served(index, package)
    assert "three times at most" in package.content
    (tmp_path / "policies" / "policy.cedar").write_text(EXAMPLE)
    again = index.packages.get(package.context_package_id)
    assert again.policy_decision_id != package.policy_decision_id
    assert "three times at most" not in again.model_dump_json()


def test_nobody_else_gets_a_package(index: Index) -> None:
    package = index.packages.build(asked())
    for other in (AGENT, Principal(index.acting().name, "eva"), Principal("eva", "eva")):
        for call in (index.acting_as(other).packages.get, index.acting_as(other).packages.rebuild):
            with pytest.raises(NothingFoundError):
                call(package.context_package_id)
        assert index.acting_as(other).packages.list() == []


def test_rebuild_is_a_new_build_under_the_same_id(index: Index) -> None:
    package = index.packages.build(asked())
    again = index.packages.rebuild(package.context_package_id)
    assert again.context_package_id == package.context_package_id
    assert again.policy_decision_id != package.policy_decision_id
    assert [each.context_package_id for each in index.packages.list()] == [package.context_package_id]


def texts_of(index: Index) -> str:
    """All that the catalog holds of packages."""
    rows = []
    for table in ("packages", "package_cache", "package_sources", "package_requests", "projections"):
        rows += [repr(tuple(row)) for row in index.catalog.execute(f"SELECT * FROM {table}")]
    return "\n".join(rows)


def test_what_is_forgotten_or_removed_leaves_caches_and_records(index: Index) -> None:
    index.memories.remember("The upload password of the walrus is Kiel.", id="walrus")
    package = index.packages.build(asked(pinned=["memory:walrus", f"page:{manual(index)}#1"]))
    assert "walrus is Kiel" in texts_of(index)
    assert "three times at most" in texts_of(index)
    index.memories.forget("walrus")
    assert "walrus is Kiel" not in texts_of(index)
    index.packages.rebuild(package.context_package_id)
    assert "three times at most" in texts_of(index)
    index.admin.remove("manual.pdf")
    assert "three times at most" not in texts_of(index)
    again = index.packages.get(package.context_package_id)
    assert {each.reason for each in again.pinned_out} == {"unknown"}
    assert index.packages.list()[0].context_package_id == package.context_package_id


def test_what_is_forgotten_leaves_redis_at_once(root: Path, loopback: None) -> None:
    server = RedisServer()
    server.start()
    try:
        with Index.open(root, Settings(redis_url=server.url)) as index:
            index.memories.remember("The upload password of the walrus is Kiel.", id="walrus")
            package = index.packages.build(asked(pinned=["memory:walrus"]))
            with server.client() as client:
                [key] = client.keys("ctx:*:package:*")
                assert b"walrus is Kiel" in client.get(key)
                assert "walrus is Kiel" not in texts_of(index)
                assert served(index, package)
                index.memories.forget("walrus")
                assert client.keys("ctx:*:package:*") == []
                assert client.xlen("ctx:events") == 2
            server.kill()
            again = index.packages.get(package.context_package_id)
            assert [each.reason for each in again.pinned_out] == ["unknown"], "Redis is gone, and it costs nothing"
    finally:
        server.close()


def test_records_have_no_text_and_go_after_their_days(clocked: tuple[Index, Clock]) -> None:
    index, clock = clocked
    package = index.packages.build(asked(taskId="t"))
    [record] = index.packages.list()
    assert record == package.record()
    assert (record.content, record.intent) == ("", "")
    assert [source.ref for source in record.sources] == [source.ref for source in package.sources]
    assert all(source.title == source.link == "" for source in record.sources)
    clock.now += timedelta(days=89)
    index.packages.build(asked(tokenBudget=100))
    assert len(index.packages.list()) == 2
    clock.now += timedelta(days=2)
    index.packages.build(asked(tokenBudget=101))
    assert package.context_package_id not in [each.context_package_id for each in index.packages.list()]
    with index.catalog.snapshot() as reader:
        whose = Whose("", index.acting().name)
        assert reader.packages.request(whose, package.context_build_request_id) is None


def test_builds_and_changes_at_once_never_serve_what_is_gone(index: Index) -> None:
    index.memories.remember("Uploads and the walrus of Kiel.", id="walrus")
    problems: list[str] = []
    stop = threading.Event()

    def build() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            package = index.packages.build(asked(pinned=["memory:walrus"], tokenBudget=500 + number % 3))
            index.packages.get(package.context_package_id)

    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    index.memories.forget("walrus")
    stop.set()
    for thread in threads:
        thread.join()
    after = index.packages.build(asked(pinned=["memory:walrus"], tokenBudget=499))
    assert "walrus of Kiel" not in after.content
    for record in index.packages.list():
        if "walrus of Kiel" in index.packages.get(record.context_package_id).content:
            problems.append(record.context_package_id)
    assert problems == []


@pytest.mark.slow
def test_an_index_that_was_copied_keeps_its_records(index: Index, tmp_path: Path) -> None:
    package = index.packages.build(asked())
    index.admin.backup(tmp_path / "b.zip")
    with Index(tmp_path / "restored") as other:
        other.admin.restore(tmp_path / "b.zip")
        assert [each.context_package_id for each in other.packages.list()] == [package.context_package_id]
        assert other.packages.get(package.context_package_id).content
