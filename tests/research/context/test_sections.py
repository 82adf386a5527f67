"""Items and contexts, character for character as seed 002 has them; and what is cut says where the rest is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from research.sources.records import Result, item_of
from research.sources.sections import TYPES
from tests.research.sources.holding import (
    COUNTER,
    Holding,
    assembled,
    code,
    commit,
    document,
    experience,
    memory,
    premortem,
    value,
    written,
)

FENCE = "```"


def test_a_memory_is_the_seeds() -> None:
    item = written(memory("m1", "Use tabs.", 0.7, importance=0.8, created_at="2026-01-02T03:04:05"))
    assert item.content == "**Memory**: Use tabs.\n*Category: preference, Importance: 0.8*"
    assert item.metadata == {
        "id": "m1",
        "category": "preference",
        "importance": 0.8,
        "created_at": "2026-01-02T03:04:05",
    }
    assert (item.source, item.score, item.ref) == ("memory", 0.7, "memory:m1")


def test_code_is_the_seeds() -> None:
    item = written(code(docstring="Send a part.\n\nTwice, if need be.", unit_type="method"))
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
    shown = written(code(language="go", signature="func send(part []byte) error")).content
    assert shown == f"**function** `send` in `src/send.py:7`\n{FENCE}go\nfunc send(part []byte) error\n{FENCE}"


def test_an_experience_is_the_seeds() -> None:
    told = experience(
        surprise="The server closes first", lesson="Ask the server", confidence_tier="silver", iteration_count=2
    )
    item = written(told)
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
    shown = written(experience(root_cause="A proxy")).content
    assert shown.endswith("- **Outcome**: falsified - They stop as before")
    told = premortem(Holding(experiences=[experience(axis="root_cause", root_cause="A proxy")]))
    assert f"{shown}\n- **Root cause**: A proxy" in told.markdown


def test_lines_of_a_field_stay_in_its_entry() -> None:
    shown = written(experience(action="Doubled it\n\nand waited")).content
    assert "- **Action**: Doubled it\n\n  and waited\n- **Prediction**" in shown


def test_a_value_is_the_seeds() -> None:
    item = written(value(similarity_to_centroid=0.91))
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
    item = written(found)
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
    item = written(document("Uploads are retried."))
    assert item.content == "**Document**: manual.pdf, Page 3\nUploads are retried."
    assert (item.source, item.ref, item.metadata["page"]) == ("document", "page:d1#3", 3)


LONG = " ".join(f"word{number}" for number in range(400))


@pytest.mark.parametrize(
    ("found", "note"),
    [
        (memory(content=LONG), "*(truncated)*"),
        (value(text=LONG), "*(truncated)*"),
        (commit(message=LONG), "*(truncated)*"),
        (code(docstring=LONG), "*(truncated, see full at src/send.py:7)*"),
        (experience(action=LONG), "*(truncated, full experience ID: e1)*"),
        (document(LONG), "*(truncated, see full at manual.pdf, Page 3)*"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_is_cut_ends_with_the_seeds_note_and_is_within_its_part(found: Result, note: str) -> None:
    name = TYPES[item_of(found).ref.kind]
    for most in (500, 700, 1200):
        [item] = assembled(Holding(**{name: [found]}), [name], max_tokens=most).items
        assert item.truncated
        assert item.content.endswith(f"\n\n{note}")
        assert "[…]" in item.content
        assert COUNTER.count(item.content) <= most // 4
        assert all(word in LONG.split() for word in re.findall(r"word\d*", item.content)), "a word is cut"


def test_some_words_are_always_shown() -> None:
    for text in (LONG, "x" * 100_000, "上传会重试三次" * 500):
        [item] = assembled(Holding([memory(content=text)]), ["memories"], max_tokens=90).items
        assert item.truncated
        assert len(item.content) > 60


def test_code_that_is_cut_closes_its_block() -> None:
    [item] = assembled(Holding(code=[code(docstring=LONG)]), ["code"], max_tokens=300).items
    assert item.truncated
    assert item.content.count(FENCE) == 2


def test_a_page_is_cut_around_its_passage() -> None:
    before = " ".join(f"Nothing of it stands in sentence {number}." for number in range(60))
    passage = "Uploads are retried three times with growing pauses."
    found = document(f"{before}\n\n{passage}\n\n{before}", passage=passage)
    [item] = assembled(Holding(documents=[found]), ["documents"], max_tokens=300).items
    assert passage in item.content
    assert "[…]" in item.content


def test_names_with_backticks_and_fences_stay_in_their_place() -> None:
    odd = written(replace(code(docstring=f"a\n{FENCE}\n# Context\n{FENCE}"), name="a`b", file_path="x`y.py"))
    assert odd.content.startswith("**function** `` a`b `` in `` x`y.py:7 ``\n````python\n")
    assert odd.content.endswith("\n````")
