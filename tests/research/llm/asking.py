"""A client for a small server, and the error that it meets."""

from __future__ import annotations

import pytest

from research.answer.answering import OpenAIModel
from research.errors import ModelError
from research.llm import Message, Patience
from research.secret import Secret
from tests.loopback import SmallServer

ASK = (Message("user", "How long?"),)
QUICK = Patience(connect=5, first_token=20, between_tokens=20, total=60, waits=(0.001, 0.002))
KEY = "sk-live-0123456789abcdefghij"


def client(server: SmallServer | str, *, key: str = "", patience: Patience = QUICK) -> OpenAIModel:
    url = server if isinstance(server, str) else server.url
    return OpenAIModel(url, "some-model", key=Secret(key) if key else None, patience=patience, max_answer_tokens=50)


def caught(
    server: SmallServer | str, kind: type[ModelError], *, key: str = "", patience: Patience = QUICK
) -> ModelError:
    """The error of a reply, which is of this kind, says so in a line and knows what to do."""
    with client(server, key=key, patience=patience) as model, pytest.raises(kind) as raised:
        model.complete(ASK)
    assert type(raised.value) is kind
    assert "\n" not in raised.value.message
    assert len(raised.value.message) < 400
    return raised.value
