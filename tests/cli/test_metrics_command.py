"""ctx metrics: a running server's, or what can be counted without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.in_process import Ran
from tests.loopback import Serving
from tests.served import free_port, served

Call = Callable[..., Ran]


def test_without_a_server_the_index_is_counted(call: Call, filled: Path, loopback: None, tmp_path: Path) -> None:
    ran = call("metrics", "--index", str(filled))
    assert ran.code == 0
    assert "no server answers" in ran.err
    families = {family.name: family.samples[0].value for family in text_string_to_metric_families(ran.out)}
    assert (families["ctx_documents"], families["ctx_pages"]) == (4, 6)
    assert call("metrics", "--index", str(tmp_path / "none"), "--quiet").err == ""
    nobody = call("metrics", "--url", f"http://127.0.0.1:{free_port()}")
    assert (nobody.code, nobody.out) == (1, "")


@pytest.mark.slow
def test_a_running_server_is_asked_with_its_token(call: Call, copied: Path, loopback: None, tmp_path: Path) -> None:
    with served(copied, tmp_path) as server:
        url = f"http://127.0.0.1:{server.port}"
        client = server.client()
        client.post("/context/turn", {"user_message": "hello"})
        client.close()
        ran = call("metrics", "--url", url, "--token-file", str(tmp_path / "token"))
        assert ran.code == 0
        names = {family.name for family in text_string_to_metric_families(ran.out)}
        assert {"ctx_http_requests", "thinking_total_seconds", "context_builder_prompt"} <= names
        wrong = tmp_path / "wrong"
        wrong.write_text("x" * 40)
        wrong.chmod(0o600)
        refused = call("metrics", "--url", url, "--token-file", str(wrong))
        assert (refused.code, "another token" in refused.err) == (1, True)


def test_a_token_goes_to_nobody_else(call: Call, serving: Serving, tmp_path: Path) -> None:
    other = serving(lambda call: call.answer("<html>", kind="text/html"))
    ran = call("metrics", "--url", other.url)
    assert (ran.code, "is no ctx serve" in ran.err) == (1, True)
    for url in ("http://example.com", "https://127.0.0.1:1", "ftp://x", "http://u:p@127.0.0.1"):
        refused = call("metrics", "--url", url)
        assert refused.code == 2
        assert "u:p" not in refused.err
    assert call("metrics", "--token-file", str(tmp_path / "nowhere")).code == 2
