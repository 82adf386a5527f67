"""The model that the settings name."""

from __future__ import annotations

from collections.abc import Mapping

from research.address import EXAMPLE, parse_address
from research.answer.model.client import ModelClient
from research.answer.model.exchange import Patience
from research.answer.model.local import LOCAL, LocalModel
from research.answer.model.openai import OpenAIModel
from research.errors import UsageError
from research.secret import find_key
from research.settings import Settings


def open_model(settings: Settings, environment: Mapping[str, str] | None = None) -> ModelClient:
    """The client for `model` at `model_url`; `local` needs no address. Nothing is contacted or started yet.

    Raises UsageError if no model is named, ModelUnavailableError if the packages of `local` are missing.
    """
    patience = Patience.of(settings.model_timeout)
    if not settings.model:
        raise UsageError(
            "no model is named", hint=f"ctx ask … --model local, or CTX_MODEL_URL={EXAMPLE} ctx ask … --model NAME"
        )
    if settings.model == LOCAL:
        return LocalModel(
            window=settings.model_context, max_answer_tokens=settings.max_answer_tokens, patience=patience
        )
    if not settings.model_url:
        raise UsageError(
            f"the model {settings.model!r} is named, but not where it is",
            hint=f"CTX_MODEL_URL={EXAMPLE}, or --model local",
        )
    return OpenAIModel(
        settings.model_url,
        settings.model,
        key=find_key(parse_address(settings.model_url).host, environment),
        patience=patience,
        window=settings.model_context,
        max_answer_tokens=settings.max_answer_tokens,
    )
