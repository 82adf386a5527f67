"""Marks of classification: a line of its own in a margin or a stamp, and never a word of the text."""

from __future__ import annotations

from pathlib import Path

from research.governance.labels import mark_of, marks_on
from tests.research.governance.governed_index import GovernedIndex

MARKS = {
    "CONFIDENTIAL": "Confidential",
    "**Confidential**": "Confidential",
    "Company Confidential | Page 3 of 12": "Confidential",
    "Confidential – Do not distribute": "Confidential",
    "Confidential and Proprietary": "Confidential",
    "Confidential. © 2026 Saltmarsh Tea Ltd.": "Confidential",
    "Vertraulich": "Confidential",
    "# Strictly confidential": "Restricted",
    "Classification: Restricted": "Restricted",
    "[TOP SECRET]": "Restricted",
    "Streng vertraulich": "Restricted",
    "For internal use only": "Internal",
    "Internal use only": "Internal",
}
SENTENCES = [
    "This is confidential", "Confidential information is protected by law.", "Not confidential", "Confidentiality",
    "Restricted stock units", "Internal controls", "Secretary", "The secret of success", "Keep it confidential", "",
    "Confidential " * 20,
]  # fmt: skip


def test_marks_are_told_from_sentences() -> None:
    assert {line: mark_of(line) for line in MARKS} == MARKS
    assert [line for line in SENTENCES if mark_of(line)] == []


def test_a_mark_stands_at_an_edge_or_in_capitals() -> None:
    text = "\n\n".join(["one", "two", "three", "{}", "four", "five", "six"])
    assert list(marks_on(text.format("Confidential"))) == []
    assert list(marks_on(text.format("CONFIDENTIAL"))) == [("Confidential", "CONFIDENTIAL")]
    assert list(marks_on(f"Confidential\n{text}")) == [("Confidential", "Confidential")]


def test_a_document_is_proposed_by_its_strictest_mark_until_somebody_decides(tmp_path: Path) -> None:
    made = GovernedIndex(tmp_path)
    made.add("tea.pdf", ["Confidential\n\ntext", "Text.\n\nStrictly confidential", "STRICTLY CONFIDENTIAL"])
    [found] = made.labels.proposals()
    assert (found.filename, found.classification, found.pages) == ("tea.pdf", "Restricted", (2, 3))
    assert found.mark == "Strictly confidential"
    [label] = made.labels.accept([found])
    assert (label.target, label.origin) == (f"document:{found.file_id}", "mark")
    assert made.labels.proposals() == []
    made.catalog.close()
