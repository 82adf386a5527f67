"""Which half of a result a client shows its model, where that is known.

Told apart by the name a client gives for itself. It decides nothing but where the text stands: a name that is missing
here, or that no longer fits, costs one more call, because each half says how to get the other (`budget`).
"""

from __future__ import annotations

from research.service.mcp.budget import TextIn

# Of a result with structured content these show a model nothing else, as their users report (2025, 2026):
# anthropics/claude-code#79944, anomalyco/opencode#32868 (which says the same of Codex), microsoft/vscode#290063,
# modelcontextprotocol#1411 (of Cursor).
_STRUCTURED_ALONE = frozenset(
    {
        "claude-code",
        "codex",
        "codex-mcp-client",
        "cursor",
        "cursor-vscode",
        "opencode",
        "visual studio code",
        "visual studio code - insiders",
    }
)


def text_in_for(client: str) -> TextIn:
    """Where this client's model will see the text."""
    return "structured" if client.strip().lower() in _STRUCTURED_ALONE else "content"


def product_of(user_agent: str) -> str:
    """The name in a User-Agent header: `claude-code` of `claude-code/2.1.280 (cli)`."""
    return user_agent.partition("/")[0].strip()
