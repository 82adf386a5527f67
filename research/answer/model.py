"""The model that writes answers: the one that the settings name, with the call that the contract (seed 004) has.

    with open_model(settings) as client:
        for piece in client.reply(messages, max_tokens=600):
            ...

`await client.complete_with_context(query, context, system_message)` gives an object with `.content`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from research.addresses import EXAMPLE, parse_address
from research.answer.prompt import messages_of
from research.errors import UsageError
from research.llm import LOCAL, ChatModel, LocalChat, OpenAIChat, Patience
from research.secret import MODEL_KEY, find_key
from research.settings import Settings

if TYPE_CHECKING:
    from research.llm import Completion


class ModelClient(ChatModel):
    """A language model that is asked about a context."""

    async def complete_with_context(self, query: str, context: str, system_message: str = "") -> Completion:
        """Answer `query` from `context`, the `formatted_text` of a `ResearchContext`. Without a `system_message` the
        model is told what `prompts/system.txt` says."""
        return await asyncio.to_thread(self.complete, messages_of(query, context, system_message))


class OpenAIModel(OpenAIChat, ModelClient):
    """A model behind an OpenAI-compatible address."""


class LocalModel(LocalChat, ModelClient):
    """The small model that runs on this machine."""


def open_model(settings: Settings, environment: Mapping[str, str] | None = None) -> ModelClient:
    """Return the client for `model` at `model_url`; `local` needs no address. Nothing is contacted or started yet.

    Raise UsageError if no model is named, ModelUnavailableError if the packages of `local` are missing.
    """
    patience = Patience.of(settings.model_timeout)
    if not settings.model:
        raise UsageError(
            "no model is named", hint=f"ctx ask … --model local, or CTX_MODEL_URL={EXAMPLE} ctx ask … --model NAME"
        )
    window, most = settings.model_context, settings.max_answer_tokens
    if settings.model == LOCAL:
        return LocalModel(window=window, max_answer_tokens=most, patience=patience)
    if not settings.model_url:
        raise UsageError(
            f"the model {settings.model!r} is named, but not where it is",
            hint=f"CTX_MODEL_URL={EXAMPLE}, or --model local",
        )
    key = find_key(parse_address(settings.model_url).base, MODEL_KEY, environment)
    return OpenAIModel(
        settings.model_url, settings.model, key=key, patience=patience, window=window, max_answer_tokens=most
    )
