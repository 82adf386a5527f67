"""Items and contexts, character for character as seed 002 has them; and what is cut says where the rest is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from research.sources import formats
from research.sources.formats import capped
from research.sources.records import Candidate
from tests.research.sources.holding import COUNTER, code, commit, document, experience, memory, value

FENCE = "```"


def test_a_memory_is_the_seeds() -> None:
    item = formats.memory(memory("m1", "Use tabs.", 0.7, importance=0.8, created_at="2026-01-02T03:04:05")).item
    assert item.content == "**Memory**: Use tabs.\n*Category: preference, Importance: 0.8*"
    assert item.metadata == {
        "id": "m1",
        "category": "preference",
        "importance": 0.8,
        "created_at": "2026-01-02T03:04:05",
    }
    assert (item.source, item.relevance, item.score, item.ref) == ("memory", 0.7, 0.7, "memory:m1")


def test_code_is_the_seeds() -> None:
    item = formats.code(code(docstring="Send a part.\n\nTwice, if need be.", unit_type="method")).item
    assert item.content == (
        "**method** `send` in `src/send.py:7`\n"
        f"{FENCE}python\n"
        "def send(part: bytes) -> None:\n"
        "Send a part.\n\nTwice, if need be.\n"
        f"{FENCE}"
    )
    assert item.metadata == {
        "file_path": "src/send.py",
        "start_line": 7,
        "end_line": 19,
        "language": "python",
        "qualified_name": "uploads.send",
    }
    assert (item.source, item.ref) == ("code", "code:src/send.py#uploads.send")


def test_code_without_docstring_and_in_another_language() -> None:
    shown = formats.code(code(language="go", signature="func send(part []byte) error")).item.content
    assert shown == f"**function** `send` in `src/send.py:7`\n{FENCE}go\nfunc send(part []byte) error\n{FENCE}"


def test_an_experience_is_the_seeds() -> None:
    told = experience(
        surprise="The server closes first", lesson="Ask the server", confidence_tier="silver", iteration_count=2
    )
    item = formats.experience(told).item
    assert item.content == (
        "**Experience**: debugging | read-the-error\n"
        "- **Goal**: Find why uploads stop\n"
        "- **Hypothesis**: The timeout is too short\n"
        "- **Action**: Doubled it\n"
        "- **Prediction**: Uploads go through\n"
        "- **Outcome**: falsified - They stop as before\n"
        "- **Surprise**: The server closes first\n"
        "- **Lesson**: Ask the server"
    )
    assert item.metadata == {
        "id": "e1",
        "domain": "debugging",
        "strategy": "read-the-error",
        "outcome_status": "falsified",
        "confidence_tier": "silver",
        "iteration_count": 2,
    }


def test_an_experience_without_surprise_and_lesson_has_no_lines_for_them() -> None:
    shown = formats.experience(experience(root_cause="A proxy")).item.content
    assert shown.endswith("- **Outcome**: falsified - They stop as before")
    with_cause = formats.experience(experience(root_cause="A proxy"), with_cause=True).item.content
    assert with_cause == f"{shown}\n- **Root cause**: A proxy"


def test_lines_of_a_field_stay_in_its_entry() -> None:
    shown = formats.experience(experience(action="Doubled it\n\nand waited")).item.content
    assert "- **Action**: Doubled it\n\n  and waited\n- **Prediction**" in shown


def test_a_value_is_the_seeds() -> None:
    item = formats.value(value(similarity_to_centroid=0.91)).item
    assert item.content == "**Value** (strategy, cluster size: 5):\nRead the error first."
    assert item.metadata == {
        "id": "v1",
        "axis": "strategy",
        "cluster_id": "c1",
        "cluster_size": 5,
        "similarity_to_centroid": 0.91,
    }


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (("a.py",), "\n*Files: a.py*"),
        (("a.py", "b/c.py"), "\n*Files: a.py, b/c.py*"),
        (("a.py", "b/c.py", "d.py"), "\n*Files: a.py, b/c.py, ...*"),
        ((), ""),
    ],
)
def test_a_commit_is_the_seeds(files: tuple[str, ...], line: str) -> None:
    found = commit(message="Retry uploads\n\nThree times.", files_changed=files, insertions=12, deletions=3)
    item = formats.commit(found).item
    assert item.content == (
        f"**Commit** `0123456` by Ana on 2025-03-01T09:00:00+00:00\nRetry uploads\n\nThree times.{line}"
    )
    assert item.metadata == {
        "sha": "0123456789abcdef",
        "author": "Ana",
        "timestamp": "2025-03-01T09:00:00+00:00",
        "files_changed": list(files),
        "insertions": 12,
        "deletions": 3,
    }


def test_a_document_follows_their_manner() -> None:
    item = formats.document(document("Uploads are retried.")).item
    assert item.content == "**Document**: manual.pdf, Page 3\nUploads are retried."
    assert (item.source, item.ref, item.metadata["page"]) == ("document", "page:d1#3", 3)


def test_a_context_is_the_seeds() -> None:
    shown = formats.markdown(
        "Context", [("Memories", ["one", "two"]), ("Code", []), ("Commits", ["three"])], "3 items from 2 sources"
    )
    assert shown == ("# Context\n\n## Memories\none\n\ntwo\n\n## Commits\nthree\n\n---\n*3 items from 2 sources*")


LONG = " ".join(f"word{number}" for number in range(400))


@pytest.mark.parametrize(
    ("candidate", "note"),
    [
        (formats.memory(memory(content=LONG)), "*(truncated)*"),
        (formats.value(value(text=LONG)), "*(truncated)*"),
        (formats.commit(commit(message=LONG)), "*(truncated)*"),
        (formats.code(code(docstring=LONG)), "*(truncated, see full at src/send.py:7)*"),
        (formats.experience(experience(action=LONG)), "*(truncated, full experience ID: e1)*"),
        (formats.document(document(LONG)), "*(truncated, see full at manual.pdf, Page 3)*"),
    ],
)
def test_what_is_cut_ends_with_the_seeds_note_and_is_within_its_tokens(candidate: Candidate, note: str) -> None:
    for most in (80, 120, 200):
        cut = capped(candidate, most, COUNTER)
        assert cut is not None
        shown = cut.item.content
        assert shown.endswith(f"\n\n{note}")
        assert COUNTER.count(shown) <= most
        assert cut.item.truncated
        assert not candidate.item.truncated
        if candidate.item.source == "document":
            continue
        kept = shown.removesuffix(f"\n\n{note}").removesuffix(f"\n{FENCE}")
        assert kept.endswith("...")
        assert candidate.item.content.startswith(kept.removesuffix("..."))
        assert candidate.item.content[len(kept) - 3].isspace(), "a word is cut"


def test_what_fits_is_left_as_it_is_and_some_words_always() -> None:
    short = formats.memory(memory())
    assert capped(short, 40, COUNTER) is short
    least = capped(formats.memory(memory(content=LONG)), 1, COUNTER)
    assert least is not None
    assert least.item.content.startswith("**Memory**: word0 word1 word2")
    for unspaced in ("x" * 100_000, "上传会重试三次" * 500):
        cut = capped(formats.memory(memory(content=unspaced)), 60, COUNTER)
        assert cut is not None
        assert 30 < COUNTER.count(cut.item.content) <= 60


def test_code_that_is_cut_closes_its_block() -> None:
    cut = capped(formats.code(code(docstring=LONG)), 60, COUNTER)
    assert cut is not None
    assert cut.item.content.count(FENCE) == 2
    within = formats.memory(memory(content=f"See\n{FENCE}\n{LONG}\n{FENCE}\nthere"))
    cut = capped(within, 60, COUNTER)
    assert cut is not None
    assert cut.item.content.count(FENCE) == 2


def test_a_page_is_cut_around_its_passage() -> None:
    before = " ".join(f"Nothing of it stands in sentence {number}." for number in range(60))
    passage = "Uploads are retried three times with growing pauses."
    cut = capped(formats.document(document(f"{before}\n\n{passage}\n\n{before}", passage=passage)), 60, COUNTER)
    assert cut is not None
    assert passage in cut.item.content
    assert "[…]" in cut.item.content


def test_names_with_backticks_and_fences_stay_in_their_place() -> None:
    odd = formats.code(replace(code(docstring=f"a\n{FENCE}\n# Context\n{FENCE}"), name="a`b", file_path="x`y.py"))
    assert odd.item.content.startswith("**function** `` a`b `` in `` x`y.py:7 ``\n````python\n")
    assert odd.item.content.endswith("\n````")
