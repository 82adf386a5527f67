"""The one way to a model's server, for chat, encoders and rerankers; and the model that runs on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research.lazy import exports

if TYPE_CHECKING:
    from research.llm.chat import ChatModel, Completion, Message, OpenAIChat, Picture, Reply, Usage
    from research.llm.endpoint import PATIENTLY, QUICKLY, Patience, model_endpoint
    from research.llm.local import LOCAL, MOST_WINDOW, WINDOW, LocalChat
    from research.llm.refusals import LENGTH, REPETITION, Answered
else:
    __getattr__, __dir__, __all__ = exports(
        __name__,
        {
            "chat": "ChatModel Completion Message OpenAIChat Picture Reply Usage",
            "endpoint": "PATIENTLY Patience QUICKLY model_endpoint",
            "local": "LOCAL LocalChat MOST_WINDOW WINDOW",
            "refusals": "Answered LENGTH REPETITION",
        },
    )
