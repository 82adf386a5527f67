"""ctx label, ctx policy: what is given holds and is shown, what is wrong is told with the next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from research.files import user_config
from research.governance import Labels
from research.index import Index
from tests.in_process import Ran

Call = Callable[..., Ran]


@pytest.fixture
def at(copied: Path) -> tuple[str, str]:
    return ("--index", str(copied))


@pytest.fixture
def policy() -> Iterator[Path]:
    path = user_config().parent / "policy.cedar"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    yield path
    path.unlink(missing_ok=True)


def test_things_are_classified_and_what_holds_is_told(call: Call, at: tuple[str, str], copied: Path) -> None:
    assert call("label", *at).out == ""
    with Index(copied) as index:
        [crisis] = index.documents.list("crisis.pdf")
    target = f"document:{crisis.file_id}"
    assert call("label", "set", "crisis.pdf", "--level", "internal", *at).out == f"Internal\t{target}\tcrisis.pdf\n"
    folder = str(Path(crisis.source_path).parent)
    assert (
        call("label", "set", f"path:{folder}", "--level", "Confidential", *at).out == f"Confidential\tpath:{folder}\t\n"
    )
    assert call("label", "set", "crisis.pdf", "--status", "final", *at).out == f"status=final\t{target}\tcrisis.pdf\n"
    assert call("label", "show", "crisis.pdf", *at).out == f"Confidential\t{target}\tcrisis.pdf\tstatus=final\n"
    assert call("label", "show", f"page:{crisis.doc_id}#1", *at).out.startswith(
        f"Confidential\tpage:{crisis.file_id}#1\tcr"
    )
    assert len(call("label", *at).out.splitlines()) == 3
    assert len(call("label", "remove", "crisis.pdf", "status", *at).out.splitlines()) == 2
    assert call("label", "remove", "crisis.pdf", *at).out == f"Confidential\tpath:{folder}\t\n"
    missing = call("label", "remove", "crisis.pdf", *at)
    assert (missing.code, "ctx label show crisis.pdf" in missing.err) == (3, True)
    for args, told in (
        (("label", "set", "crisis.pdf", "--level", "sekret"), "Public, Internal, Confidential, Restricted"),
        (("label", "set", f"page:{crisis.doc_id}#99", "--level", "Public"), "there is no"),
        (("label", "set", "nowhere.pdf", "--level", "Public"), "ctx list"),
        (("label", "set", "crisis.pdf", "--status", "two\nlines"), "one line"),
        (("label", "set", "crisis.pdf"), "--level LEVEL"),
        (("label", "remove", "crisis.pdf", "colour"), "classification, status"),
    ):
        ran = call(*args, *at)
        assert (ran.code > 1, told in ran.err) == (True, True), args


def test_a_rule_may_stand_before_anything_is_ingested(call: Call, tmp_path: Path) -> None:
    at = ("--index", str(tmp_path / "new"))
    assert call("label", *at).code == 0
    assert not (tmp_path / "new").exists()
    assert (
        call("label", "set", "path:~/hr/", "--level", "Restricted", *at).out == f"Restricted\tpath:{Path.home()}/hr\t\n"
    )
    assert call("label", "show", "path:~/hr", *at).out == f"Restricted\tpath:{Path.home()}/hr\t\n"


@pytest.mark.slow
def test_marks_are_proposals_until_somebody_accepts_them(
    call: Call, tmp_path: Path, make_pdf: Callable[..., Path]
) -> None:
    docs = make_pdf("secret.pdf", ["STRICTLY CONFIDENTIAL\n\nThe price of tea is rising."], tmp_path / "docs").parent
    make_pdf("plain.pdf", ["This is confidential, says the text of a page that goes on."], docs)
    at = ("--index", str(tmp_path / "index"))
    assert call("ingest", str(docs), "--no-images", *at).code == 0
    listed = call("label", "propose", *at)
    assert listed.out == "Restricted\tsecret.pdf\tpage 1\tSTRICTLY CONFIDENTIAL\n"
    assert "none of this holds yet" in listed.err
    assert call("label", "show", "secret.pdf", *at).out.startswith("Internal\t")
    assert call("label", "propose", "--accept", *at).code == 0
    assert call("label", "show", "secret.pdf", *at).out.startswith("Restricted\t")
    assert call("label", "propose", "--json", *at).document["proposals"] == []
    assert call("label", "--json", *at).document["labels"][0]["origin"] == "mark"


@pytest.mark.slow
def test_a_policy_is_checked_and_tried(call: Call, at: tuple[str, str], copied: Path, policy: Path) -> None:
    with Index(copied) as index:
        [crisis] = index.documents.list("crisis.pdf")
        labels: Labels = index.policy.labels()
        labels.put(f"page:{crisis.doc_id}#2", {"classification": "Restricted"})
    refs = [f"page:{crisis.doc_id}#{number}" for number in (1, 2)]
    assert "there is no policy" in call("policy", *at).err
    assert (
        call("policy", "try", *refs, *at).out
        == f"allow\t{refs[0]}\tInternal\towner\nallow\t{refs[1]}\tRestricted\towner\n"
    )
    policy.write_text(call("policy", "example").out)
    policy.chmod(0o600)
    assert call("policy", "check", *at).out.splitlines()[0] == "own-things"
    assert call("policy", "try", *refs, *at).out == (
        f"allow\t{refs[0]}\tInternal\town-things\ndeny\t{refs[1]}\tRestricted\trestricted-never\n"
    )
    assert call("policy", "try", "--as", "ann", "--tenant", "lab", refs[0], *at).out.startswith("deny\t")
    assert [check["severity"] for check in _policies(call, at)] == ["ok"]
    policy.write_text("permit (principal, action, resource) when { resource.colour };")
    broken = call("policy", "check", *at)
    assert (broken.code, "policy 1: attribute `colour`" in broken.err) == (1, True)
    tried = call("policy", "try", refs[0], *at)
    assert (tried.code, tried.out.split("\t")[0], "everything is denied" in tried.err) == (1, "deny", True)
    assert [check["severity"] for check in _policies(call, at)] == ["fail"]
    draft = copied / "draft.cedar"
    draft.write_text("permit (principal, action, resource);")
    checked = call("policy", "check", str(draft), *at)
    assert (checked.out, "would not be used from there" in checked.err) == ("draft.cedar#1\n", True)


def _policies(call: Call, at: tuple[str, str]) -> list[dict[str, str]]:
    return [check for check in call("doctor", "--json", *at).document["checks"] if check["name"] == "policy"]
