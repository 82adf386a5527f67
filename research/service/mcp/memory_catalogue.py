"""The tools of memories as an agent sees them; `catalogue` has those of documents."""

from __future__ import annotations

from research.conversation.intake import LONGEST_NAME, LONGEST_TEXT
from research.conversation.turns import MAX_PROMPT_TOKENS
from research.parameters import Parameter
from research.request import LONGEST_QUESTION
from research.service.mcp import memory
from research.service.mcp.budget import MOST_TOKENS
from research.service.mcp.catalogue import (
    INTEGER,
    NUMBER,
    STRING,
    TEXT_PLACE,
    TRUNCATED,
    Tool,
    output_of,
    schema_of,
    tokens_parameter,
)

_SESSION = Parameter("session", "text", "The conversation it belongs to, if only that is meant.", most=LONGEST_NAME)

REMEMBER = Tool(
    "remember",
    "Remember something",
    "Keeps a fact, preference or decision for later conversations: a sentence or a few that make sense by themselves,"
    " with names for pronouns. Telling the same again is harmless; what is newer supersedes what was said before. Use"
    " it when the user asks for it, or says something that will still matter; never for passwords or documents.",
    (
        Parameter("text", "text", "What to remember.", required=True, most=LONGEST_TEXT),
        Parameter("tags", "texts", "Words to find it by, if there are any.", default=(), most=100),
        _SESSION,
        TEXT_PLACE,
    ),
    memory.remember,
    output_of(id=STRING, outcome={"type": "string", "enum": ["stored", "joined", "known"]}),
    read_only=False,
    needs="memories",
)

RECALL = Tool(
    "recall",
    "Recall memories",
    "What was told earlier with remember and may answer a question, best first, and when it was told. Use it before you"
    " ask the user something they may have said already, and for preferences and decisions. What documents say: ask.",
    (
        Parameter("question", "text", "What is asked.", required=True, most=LONGEST_QUESTION),
        Parameter("limit", "integer", "Memories at most.", default=8, least=1, most=100),
        _SESSION,
        Parameter("tags", "texts", "Only memories that have all of these tags.", default=(), most=100),
        tokens_parameter(2000),
        TEXT_PLACE,
    ),
    memory.recall,
    output_of(
        memories={"type": "array", "items": schema_of({"id": STRING, "score": NUMBER, "told_at": STRING})},
        truncated=TRUNCATED,
    ),
    is_question=True,
    needs="memories",
)

BUILD_TURN = Tool(
    "build_turn",
    "Build a turn's messages",
    "For programs that talk to a language model themselves: the messages of a turn as JSON, with memories that may"
    " matter, as much of the history as fits, and on request quoted pages, within max_prompt_tokens exactly. You do not"
    " need it to answer the user.",
    (
        Parameter("user_message", "text", "What the user says now.", required=True, most=LONGEST_TEXT),
        Parameter("system_prompt", "text", "The system prompt.", most=LONGEST_TEXT),
        Parameter("history", "messages", "Earlier messages with role and content, oldest first.", default=()),
        _SESSION,
        Parameter(
            "max_prompt_tokens",
            "integer",
            "The most tokens that the messages may have.",
            default=MAX_PROMPT_TOKENS,
            least=1,
            most=MOST_TOKENS,
        ),
        Parameter("documents", "boolean", "Quote pages that may answer, beside memories.", default=False),
        TEXT_PLACE,
    ),
    memory.build_turn,
    output_of(
        prompt_tokens=INTEGER,
        token_counts={"type": "object", "additionalProperties": INTEGER},
        memories={"type": "array", "items": STRING},
        sources={
            "type": "array",
            "items": schema_of({"citation": INTEGER, "ref": STRING, "filename": STRING, "page": INTEGER}),
        },
    ),
    is_question=True,
    read_only=False,  # what is trimmed of the history is summed up and remembered
    needs="turns",
)

MEMORY = (REMEMBER, RECALL, BUILD_TURN)
