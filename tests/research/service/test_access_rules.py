"""Names that a server goes by, and where a request comes from."""

from __future__ import annotations

import pytest

from research.errors import UsageError
from research.service.guard import AccessRules, From

RULES = AccessRules.of(["box.example", "Other.Example:8443"], ["https://notes.example/", "http://localhost:6274"])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:7777",
        "localhost:7777",
        "LOCALHOST:7777",
        "[::1]:7777",
        "127.0.0.1",
        "localhost",
        "[::1]",
        "box.example",
        "box.example:443",
        "other.example:8443",
    ],
)
def test_names_of_ours(host: str) -> None:
    assert RULES.allows_host(host, 7777) is True


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:7777",
        "127.0.0.1:7778",
        "localhost:80",
        "localhost.evil.example:7777",
        "127.0.0.1.nip.io:7777",
        "box.example.evil.example",
        "other.example",
        "other.example:7777",
        "0.0.0.0:7777",
        "127.1:7777",
        "2130706433:7777",
        "[::ffff:127.0.0.1]:7777",
        "[0:0:0:0:0:0:0:1]:7777",
    ],
)
def test_names_of_others(host: str) -> None:
    """Also those that lead here: whoever can point a name at 127.0.0.1 could make a browser bring us anything."""
    assert RULES.allows_host(host, 7777) is False


@pytest.mark.parametrize(
    "host",
    [
        "",
        " ",
        "localhost:",
        "localhost:abc",
        "localhost:777777",
        "local host",
        "localhost,evil.example",
        "user@localhost:7777",
        "localhost:7777/",
        "http://localhost:7777",
        "localhost:7777:7777",
        "::1",
        "[::1",
        "localhost.",
        "locälhost",
        "localhost\x00",
        "a" * 300,
    ],
)
def test_what_is_no_host(host: str) -> None:
    assert RULES.allows_host(host, 7777) is None


@pytest.mark.parametrize(("host", "allowed"), [("", True), ("localhost", True), ("127.0.0.1:1", True), ("x.y", False)])
def test_over_a_socket_file_there_is_no_port(host: str, allowed: bool) -> None:
    assert RULES.allows_host(host, None) is allowed


HOST = "127.0.0.1:7777"
OWN = f"http://{HOST}"


@pytest.mark.parametrize(
    ("origin", "site", "whence"),
    [
        (None, None, From.HERE),
        (None, "none", From.HERE),
        (None, "same-origin", From.HERE),
        (None, "cross-site", From.ELSEWHERE),
        (None, "same-site", From.ELSEWHERE),
        (None, "nonsense", From.ELSEWHERE),
        (None, "", From.ELSEWHERE),
        (OWN, None, From.HERE),
        (OWN, "same-origin", From.HERE),
        (OWN, "cross-site", From.ELSEWHERE),
        (f"https://{HOST}", None, From.HERE),
        ("null", None, From.ELSEWHERE),
        ("null", "cross-site", From.ELSEWHERE),
        ("null", "none", From.ELSEWHERE),
        ("null", "same-origin", From.HERE),
        ("", None, From.ELSEWHERE),
        ("http://localhost:7777", None, From.ELSEWHERE),
        ("http://127.0.0.1:7778", None, From.ELSEWHERE),
        ("http://127.0.0.1", None, From.ELSEWHERE),
        ("https://evil.example", None, From.ELSEWHERE),
        (f"ftp://{HOST}", None, From.ELSEWHERE),
        (f"chrome-extension://{HOST}", None, From.ELSEWHERE),
        (HOST, None, From.ELSEWHERE),
        (f"http://evil@{HOST}", None, From.ELSEWHERE),
        (f"{OWN}, {OWN}", None, From.ELSEWHERE),
        ("https://notes.example", "cross-site", From.NAMED),
        ("HTTPS://NOTES.EXAMPLE", "cross-site", From.NAMED),
        ("http://notes.example", "cross-site", From.ELSEWHERE),
        ("https://notes.example.evil.example", "cross-site", From.ELSEWHERE),
        ("https://notes.example:8443", "cross-site", From.ELSEWHERE),
        ("http://localhost:6274", "same-site", From.NAMED),
    ],
)
def test_where_a_request_comes_from(origin: str | None, site: str | None, whence: From) -> None:
    assert RULES.whence(HOST, origin, site) is whence


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://box.example", "box.example"),
        ("http://box.example", "box.example:80"),
        ("https://box.example", "box.example:443"),
    ],
)
def test_a_default_port_may_be_left_out(origin: str, host: str) -> None:
    assert RULES.whence(host, origin, None) is From.HERE


@pytest.mark.parametrize("host", ["", "*", "a b", "http://x.example", "x.example/", "x.example:port", "*.example"])
def test_no_host_name(host: str) -> None:
    with pytest.raises(UsageError, match="is no host name") as raised:
        AccessRules.of([host])
    assert "--allow-host" in raised.value.hint


@pytest.mark.parametrize(
    "origin", ["", "*", "null", "notes.example", "https://notes.example/path", "file://x", "https://"]
)
def test_no_origin(origin: str) -> None:
    with pytest.raises(UsageError, match="is no origin") as raised:
        AccessRules.of((), [origin])
    assert "--cors-origin" in raised.value.hint


def test_an_origin_is_kept_as_browsers_write_it() -> None:
    assert AccessRules.of((), ["https://Notes.Example:443/"]).origins == {"https://notes.example"}
