"""The tools of memories as an agent sees them; `catalogue` has those of documents."""

from __future__ import annotations

from research.conversation.intake import LONGEST_NAME, LONGEST_TEXT
from research.conversation.turns import MAX_PROMPT_TOKENS
from research.parameters import Parameter
from research.request import LONGEST_QUESTION
from research.service.mcp import memory
from research.service.mcp.budget import MOST_TOKENS
from research.service.mcp.catalogue import PLACED, TEXT_PLACE, Tool, output_of, tokens_parameter

_SESSION = Parameter("session", "text", "The conversation it belongs to.", most=LONGEST_NAME)

REMEMBER = Tool(
    "remember",
    "Remember something",
    "Keeps a fact, preference or decision for later conversations: a sentence or a few that make sense alone. Use it"
    " when the user asks, or says what will still matter; never for passwords.",
    (
        Parameter("text", "text", "What to remember.", required=True, most=LONGEST_TEXT),
        Parameter("tags", "texts", "Words to find it by.", default=(), most=100),
        _SESSION,
        TEXT_PLACE,
    ),
    memory.remember,
    output_of(id=str, outcome={"stored", "joined", "known"}),
    read_only=False,
    needs="memories",
)

RECALL = Tool(
    "recall",
    "Recall memories",
    "What was told earlier with remember and may answer. Use it before you ask what the user may have said.",
    (
        Parameter("question", "text", "What is asked.", required=True, most=LONGEST_QUESTION),
        Parameter("limit", "integer", "Memories at most.", default=8, least=1, most=100),
        _SESSION,
        Parameter("tags", "texts", "Only with all of these tags.", default=(), most=100),
        tokens_parameter(2000),
        TEXT_PLACE,
    ),
    memory.recall,
    output_of(memories=[{"id": str, "score": float, "told_at": str}], truncated=bool),
    is_question=True,
    needs="memories",
)

BUILD_TURN = Tool(
    "build_turn",
    "Build a turn's messages",
    "For programs that talk to a language model themselves: a turn's messages as JSON, with memories, history and"
    " quoted pages. You do not need it to answer.",
    (
        Parameter("user_message", "text", "What the user says.", required=True, most=LONGEST_TEXT),
        Parameter("system_prompt", "text", "Stands before all.", most=LONGEST_TEXT),
        Parameter("history", "messages", "With role and content, oldest first.", default=()),
        _SESSION,
        Parameter(
            "max_prompt_tokens", "integer", "Of all messages.", default=MAX_PROMPT_TOKENS, least=1, most=MOST_TOKENS
        ),
        Parameter("documents", "boolean", "Quote pages, too.", default=False),
        TEXT_PLACE,
    ),
    memory.build_turn,
    output_of(prompt_tokens=int, token_counts=object, memories=[str], sources=[PLACED]),
    is_question=True,
    read_only=False,  # what is trimmed of the history is summed up and remembered
    needs="turns",
)

MEMORY = (REMEMBER, RECALL, BUILD_TURN)
