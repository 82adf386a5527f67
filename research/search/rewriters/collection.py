"""Searches for the topic alone where a question asks for documents.

"List the documents about elections" says what is wanted, not what stands in it: with all of its words, pages that list
documents would be the best.
"""

from __future__ import annotations

from research.models import Rewrite
from research.search.boosters.collection import collection_question

NAME = "collection"


def topic_alone(question: str) -> Rewrite | None:
    """The topic of a question for documents; None if it asks for none."""
    asked = collection_question(question)
    if asked is None:
        return None
    return Rewrite(NAME, question, asked.topic, "it asks for documents; they are ranked by their topic")
