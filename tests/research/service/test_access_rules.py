"""Names that a server goes by, and where a request comes from."""

from __future__ import annotations

import pytest

from research.errors import UsageError
from research.service.guard import AccessRules, From

RULES = AccessRules.of(["box.example", "Other.Example:8443"], ["https://notes.example/", "http://localhost:6274"])
HOST = "127.0.0.1:7777"
OWN = f"http://{HOST}"

OURS = [
    "127.0.0.1:7777", "localhost:7777", "LOCALHOST:7777", "[::1]:7777", "127.0.0.1", "localhost", "[::1]",
    "box.example", "box.example:443", "other.example:8443",
]  # fmt: skip
# Also those that lead here: whoever can point a name at 127.0.0.1 could make a browser bring us anything.
OF_OTHERS = [
    "evil.example", "evil.example:7777", "127.0.0.1:7778", "localhost:80", "localhost.evil.example:7777",
    "127.0.0.1.nip.io:7777", "box.example.evil.example", "other.example", "other.example:7777", "0.0.0.0:7777",
    "127.1:7777", "2130706433:7777", "[::ffff:127.0.0.1]:7777", "[0:0:0:0:0:0:0:1]:7777",
]  # fmt: skip
NO_HOSTS = [
    "", " ", "localhost:", "localhost:abc", "localhost:777777", "local host", "localhost,evil.example",
    "user@localhost:7777", "localhost:7777/", "http://localhost:7777", "localhost:7777:7777", "::1", "[::1",
    "localhost.", "locälhost", "localhost\x00", "a" * 300,
]  # fmt: skip


def test_names_of_ours_and_of_others() -> None:
    for hosts, allowed in ((OURS, True), (OF_OTHERS, False), (NO_HOSTS, False)):
        for host in hosts:
            assert RULES.allows_host(host, 7777) is allowed, host
    for host, over_a_socket_file in (("", True), ("localhost", True), ("127.0.0.1:1", True), ("x.y", False)):
        assert RULES.allows_host(host, None) is over_a_socket_file, host


WHENCE = {
    From.HERE: [
        (None, None), (None, "none"), (None, "same-origin"), (OWN, None), (OWN, "same-origin"),
        (f"https://{HOST}", None), ("null", "same-origin"),
    ],
    From.ELSEWHERE: [
        (None, "cross-site"), (None, "same-site"), (None, "nonsense"), (None, ""), (OWN, "cross-site"), ("null", None),
        ("null", "cross-site"), ("null", "none"), ("", None), ("http://localhost:7777", None),
        ("http://127.0.0.1:7778", None), ("http://127.0.0.1", None), ("https://evil.example", None),
        (f"ftp://{HOST}", None), (f"chrome-extension://{HOST}", None), (HOST, None), (f"http://evil@{HOST}", None),
        (f"{OWN}, {OWN}", None), ("http://notes.example", "cross-site"),
        ("https://notes.example.evil.example", "cross-site"), ("https://notes.example:8443", "cross-site"),
    ],
    From.NAMED: [
        ("https://notes.example", "cross-site"), ("HTTPS://NOTES.EXAMPLE", "cross-site"),
        ("http://localhost:6274", "same-site"),
    ],
}  # fmt: skip


def test_where_a_request_comes_from() -> None:
    for whence, asked in WHENCE.items():
        for origin, site in asked:
            assert RULES.whence(HOST, origin, site) is whence, (origin, site)
    for scheme, host in (("http", "box.example"), ("http", "box.example:80"), ("https", "box.example:443")):
        assert RULES.whence(host, f"{scheme}://box.example", None) is From.HERE, "a default port may be left out"


def test_what_is_typed_at_the_start() -> None:
    for host in ("", "*", "a b", "http://x.example", "x.example/", "x.example:port", "*.example"):
        with pytest.raises(UsageError, match="is no host name") as raised:
            AccessRules.of([host])
        assert "--allow-host" in raised.value.hint
    for origin in ("", "*", "null", "notes.example", "https://notes.example/path", "file://x", "https://"):
        with pytest.raises(UsageError, match="is no origin") as raised:
            AccessRules.of((), [origin])
        assert "--cors-origin" in raised.value.hint
    assert AccessRules.of((), ["https://Notes.Example:443/"]).origins == {"https://notes.example"}, (
        "as browsers write it"
    )
