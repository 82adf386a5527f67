"""Addresses of servers as users type them."""

from __future__ import annotations

import pytest

from research.address import parse_address


@pytest.mark.parametrize(
    ("text", "base", "host", "loopback"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1", "127.0.0.1:11434", True),
        ("http://localhost:8080/", "http://localhost:8080/v1", "localhost:8080", True),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1", "[::1]:8080", True),
        ("https://API.Example.com/v1/", "https://api.example.com/v1", "api.example.com", False),
        ("https://host/api/v1/chat/completions", "https://host/api/v1", "host", False),
        ("https://host/v1beta/openai/", "https://host/v1beta/openai", "host", False),
        ("http://192.168.1.5:8000", "http://192.168.1.5:8000/v1", "192.168.1.5:8000", False),
    ],
)
def test_what_is_called(text: str, base: str, host: str, loopback: bool) -> None:
    address = parse_address(text)
    assert (address.base, address.host, address.loopback) == (base, host, loopback)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "llama",
        "localhost:11434",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://",
        "http://host:port",
        "http://host:99999",
        "http://[::1",
        "http://host/v1?api-key=hunter2",
        "http://host/v1#hunter2",
        "http://user:hunter2@host/v1",
        "http://hunter2@host/v1",
        "http://ho st/hunter2",
        "http://host/\nhunter2",
    ],
)
def test_what_is_refused_is_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match=r"^it ") as caught:
        parse_address(text)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
