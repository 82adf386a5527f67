"""The guard before a server: who is let in, what is turned away, and what every answer says."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from research.service.guard import CSP, AccessRules
from research.service.tokens import make_token
from research.store import IndexPaths
from tests.research.service.guarded import HOST, PORT, SECRET_WORDS, Answer, Guarded

OWN = f"http://{HOST}"
EVIL = "https://evil.example"
NOTES = "https://notes.example"


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path)


@pytest.fixture
def open_to_all(tmp_path: Path) -> Guarded:
    """Started with --no-token."""
    return Guarded(tmp_path, rules=AccessRules(token_needed=False))


@pytest.fixture
def with_notes(tmp_path: Path) -> Guarded:
    """Started with --cors-origin."""
    return Guarded(tmp_path, rules=AccessRules.of((), [NOTES]))


def cookie(guarded: Guarded) -> dict[str, str]:
    return {"cookie": f"ctx_session_{PORT}={guarded.sessions.log_in(guarded.token)}"}


# Who asks


def test_everything_needs_a_token_but_what_holds_nothing(guarded: Guarded) -> None:
    for path in ("/", "/health", "/static/app.js"):
        answer = guarded.ask(path)
        assert (answer.status, answer.document["caller"]) == (200, None), path
    for path in ("/api/whoami", "/metrics", "/nowhere", "/static", "/staticx", "/docs/", "/api/login/", "/Health"):
        answer = guarded.ask(path)
        assert (answer.status, answer["www-authenticate"]) == (401, "Bearer"), path
        assert answer["content-type"] == "application/problem+json"
    assert set(guarded.reached) == {"/", "/health", "/static/app.js"}


def test_the_owner_and_others_by_their_tokens(guarded: Guarded) -> None:
    assert guarded.owner().document["caller"] == [guarded.tokens.owner.name, "", True]
    paths = IndexPaths(guarded.root)
    paths.create()
    ann, _ = make_token(paths, "ann", "lab", store=guarded.store)
    for scheme in ("Bearer", "bearer", "BEARER  "):
        answer = guarded.ask(headers={"authorization": f"{scheme} {ann.reveal()}"})
        assert answer.document["caller"] == ["ann", "lab", False]
    assert guarded.ask("/", token=ann.reveal()).document["caller"] == ["ann", "lab", False], "on public paths too"


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Bearer wrong", "Basic {token}", "{token}", "Token {token}", "Bearer {token}x",
     "Bearer \xff\xfe", "Bearer " + "x" * 20_000, "Bearer {token} {token}", "Bearer {token},", 'Bearer "{token}"'],
)  # fmt: skip
def test_no_token_and_wrong_ones_sound_the_same(guarded: Guarded, authorization: str) -> None:
    headers = {"x-request-id": "one", "authorization": authorization.format(token=guarded.token)}
    without = guarded.ask(headers={"x-request-id": "one"})
    answer = guarded.ask(headers=headers)
    assert (answer.status, answer.body) == (401, without.body)
    assert [name for name, _ in answer.headers] == [name for name, _ in without.headers]
    assert guarded.ask("/", headers=headers).document["caller"] is None
    assert guarded.reached == ["/"]


def test_a_token_in_the_address_is_none(guarded: Guarded) -> None:
    for query in ("token", "access_token", "authorization"):
        assert guarded.ask(f"/api/whoami?{query}={guarded.token}").status == 401
    assert guarded.ask(headers={"cookie": f"ctx_session_{PORT}={guarded.token}"}).status == 401, "nor in a cookie"


def test_without_a_token_everybody_here_is_the_owner(open_to_all: Guarded) -> None:
    owner = [open_to_all.tokens.owner.name, "", True]
    assert open_to_all.ask().document["caller"] == owner
    assert open_to_all.ask(method="POST").document["caller"] == owner
    assert open_to_all.ask(headers={"authorization": "Bearer whatever"}).document["caller"] == owner
    assert open_to_all.ask(host="evil.example").status == 403
    for headers in ({"origin": EVIL}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert open_to_all.ask(headers=dict(headers)).status == 403, "a page elsewhere is nobody here"
        assert open_to_all.ask(method="POST", headers=dict(headers)).status == 403
    paths = IndexPaths(open_to_all.root)
    paths.create()
    ann, _ = make_token(paths, "ann", "lab", store=open_to_all.store)
    assert open_to_all.ask(token=ann.reveal()).document["caller"] == ["ann", "lab", False]


# Host: no name that somebody pointed at us


@pytest.mark.parametrize(
    ("host", "status"),
    [(HOST, 200), ("localhost", 200), ("[::1]:7777", 200), ("rebound.evil.example:7777", 403), ("127.0.0.1:1", 403),
     ("", 403), (None, 403), ("a b", 403), ("localhost:7777@evil.example", 403)],
)  # fmt: skip
def test_dns_rebinding(guarded: Guarded, host: str | None, status: int) -> None:
    for path in ("/api/whoami", "/", "/health"):
        answer = guarded.owner(path, host=host)
        assert answer.status == status
        if status != 200:
            assert answer.document["status"] == status
            assert "evil" not in answer.body.decode()
    assert guarded.owner(method="POST", host=host).status == status


def test_over_a_socket_file(guarded: Guarded) -> None:
    for host in ("localhost", "127.0.0.1:9", "", None):
        assert guarded.owner(host=host, port=None).status == 200
        assert guarded.ask(host=host, port=None).status == 401
    assert guarded.owner(host="evil.example", port=None).status == 403


@pytest.mark.parametrize(
    "header", ["host", "authorization", "origin", "content-length", "content-type", "sec-fetch-site"]
)
def test_a_header_that_stands_there_twice(guarded: Guarded, header: str) -> None:
    values = {"host": HOST, "authorization": f"Bearer {guarded.token}", "content-length": "0", "origin": OWN}
    twice = [(header, values.get(header, "x/y"))] * 2
    given = [(name, value) for name, value in values.items() if name not in (header, "origin", "content-length")]
    answer = guarded.ask(headers=[*given, *twice], host=None)
    assert answer.status == 400
    assert guarded.reached == []


# Origin: no page but ours


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"])
@pytest.mark.parametrize(
    "headers",
    [{"origin": EVIL}, {"origin": "null"}, {"origin": "http://localhost:7777"}, {"origin": "http://127.0.0.1:8888"},
     {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
     {"origin": OWN, "sec-fetch-site": "cross-site"}],
)  # fmt: skip
def test_cross_site_posts(guarded: Guarded, method: str, headers: dict[str, str]) -> None:
    for path, how in (("/api/whoami", cookie(guarded)), ("/api/login", {}), ("/login", {}), ("/health", {})):
        answer = guarded.ask(path, method, {**headers, **how})
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer
    assert guarded.owner(method=method, headers=dict(headers)).status == 403, "with a bearer token too"
    assert guarded.reached == []


def test_our_own_page_posts(guarded: Guarded) -> None:
    for headers in ({"origin": OWN}, {"origin": OWN, "sec-fetch-site": "same-origin"}, {}):
        assert guarded.ask(method="POST", headers={**headers, **cookie(guarded)}).status == 200
    assert guarded.owner(method="POST").status == 200, "a program sends no origin"


def test_a_cookie_counts_only_for_our_own_page(guarded: Guarded) -> None:
    held = cookie(guarded)
    for headers in ({}, {"sec-fetch-site": "none"}, {"sec-fetch-site": "same-origin"}, {"origin": OWN}):
        assert guarded.ask(headers={**headers, **held}).status == 200
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": EVIL},
        {"origin": "null"},
    ):
        assert guarded.ask(headers={**headers, **held}).status == 403
        public = guarded.ask("/", headers={**headers, **held})
        assert (public.status, public.document["caller"]) == (200, None)
    reading = guarded.owner(headers={"origin": EVIL})
    assert reading.status == 200, "who has the token may read; a browser does not show it to the page"
    assert "access-control-allow-origin" not in reading


def test_a_page_that_was_named(with_notes: Guarded) -> None:
    named = {"origin": NOTES, "sec-fetch-site": "cross-site"}
    for answer in (with_notes.owner(headers=dict(named)), with_notes.owner(method="POST", headers=dict(named))):
        assert (answer.status, answer["access-control-allow-origin"], answer["vary"]) == (200, NOTES, "Origin")
        assert "access-control-allow-credentials" not in answer
    refused = with_notes.ask(headers={**named, **cookie(with_notes)})
    assert refused.status == 401, "cookies are for our own page"
    assert refused["access-control-allow-origin"] == NOTES, "it may read why"
    other = with_notes.owner(method="POST", headers={"origin": EVIL})
    assert other.status == 403
    assert "access-control-allow-origin" not in other


def test_preflights(with_notes: Guarded, guarded: Guarded) -> None:
    wanted = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    answer = with_notes.ask("/api/whoami", "OPTIONS", {"origin": NOTES, **wanted})
    assert answer.status == 200
    assert answer["access-control-allow-origin"] == NOTES
    assert "Authorization" in answer["access-control-allow-headers"]
    assert "POST" in answer["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in answer
    for where, origin in ((with_notes, EVIL), (with_notes, "null"), (guarded, NOTES), (guarded, EVIL)):
        refused = where.ask("/api/whoami", "OPTIONS", {"origin": origin, **wanted})
        assert refused.status in (400, 403)
        assert "access-control-allow-origin" not in refused
    assert with_notes.reached == guarded.reached == []
    assert guarded.ask("/api/whoami", "OPTIONS").status == 401, "it is no preflight"


# The names of a request


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-123._X", True), ("a", True), ("x" * 64, True), ("x" * 65, False), ("", False), ("a b", False), ("-a", False),
     ("ä", False), ("a;b", False), ("<script>", False), (None, False)],
)  # fmt: skip
def test_the_request_id(guarded: Guarded, given: str | None, kept: bool) -> None:
    answer = guarded.owner(headers={} if given is None else {"x-request-id": given})
    assert (answer["x-request-id"] == given) is kept
    assert re.fullmatch(r"[\w.-]{1,64}", answer["x-request-id"])
    assert answer.document["id"] == answer["x-request-id"]
    refused = guarded.ask(headers={} if given is None else {"x-request-id": given})
    assert refused.document["instance"] == refused["x-request-id"]


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("given", "flags"),
    [(f"00-{TRACE}-{SPAN}-01", "01"), (f"00-{TRACE}-{SPAN}-00", "00"), (f"00-{TRACE}-{SPAN}-ff", "01"),
     (f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like", "01")],
)  # fmt: skip
def test_a_trace_goes_on(guarded: Guarded, given: str, flags: str) -> None:
    for answer in (guarded.owner(headers={"traceparent": given}), guarded.ask(headers={"traceparent": given})):
        version, trace, span, ours = answer["traceparent"].split("-")
        assert (version, trace, ours) == ("00", TRACE, flags)
        assert span != SPAN
        assert re.fullmatch(r"[0-9a-f]{16}", span)
    assert guarded.owner(headers={"traceparent": given}).document["trace"].startswith(f"00-{TRACE}-")


@pytest.mark.parametrize(
    "given",
    ["", "x", f"00-{TRACE}-{SPAN}", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
     f"00-{TRACE.upper()}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01-x", f"00-{TRACE}-{SPAN}-0g", "\xff" * 55, "0" * 5000,
     f" 00-{TRACE}-{SPAN}-01, 00-{TRACE}-{SPAN}-01"],
)  # fmt: skip
def test_a_malformed_trace_is_replaced(guarded: Guarded, given: str) -> None:
    answer = guarded.owner(headers={"traceparent": given})
    assert answer.status == 200
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", answer["traceparent"])
    assert TRACE not in answer["traceparent"]


# What every answer says


def check_headers(answer: Answer) -> None:
    assert answer["content-security-policy"] == CSP
    assert answer["cache-control"] == "no-store"
    assert answer["x-content-type-options"] == "nosniff"
    assert answer["referrer-policy"] == "no-referrer"
    assert answer["cross-origin-resource-policy"] == "same-origin"
    assert answer["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in answer
    assert "access-control-allow-origin" not in answer
    assert answer["x-request-id"]
    assert answer["traceparent"]


def test_headers_of_safety(guarded: Guarded) -> None:
    assert "default-src 'none'" in CSP
    assert "unsafe" not in CSP
    for answer in (
        guarded.owner(),
        guarded.ask(),
        guarded.ask("/"),
        guarded.ask(host="evil.example"),
        guarded.owner("/nowhere"),
        guarded.owner("/api/whoami", method="PUT"),
        guarded.owner("/api/fails"),
        guarded.ask("/api/login", "POST"),
    ):
        check_headers(answer)


def test_an_application_may_say_otherwise_of_its_own_policy_and_cache(guarded: Guarded) -> None:
    answer = guarded.owner("/own-headers")
    assert answer["content-security-policy"] == "default-src 'self'"
    assert answer["cache-control"] == "private"
    assert answer["referrer-policy"] == "no-referrer"
    assert answer["x-request-id"] != "mine"
    assert "server" not in answer


# What goes wrong behind it


def test_whatever_an_application_raises_is_a_problem_without_its_words(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    async def raises(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError(SECRET_WORDS)

    for path in ("/api/fails", "/api/whoami"):  # first through a framework that has an answer of its own
        with caplog.at_level(logging.INFO, "ctx"):
            answer = guarded.owner(path, headers={"x-request-id": "one"})
        assert (answer.status, answer["content-type"]) == (500, "application/problem+json")
        assert answer.document["instance"] == "one"
        assert "secret" not in answer.body.decode()
        assert "Traceback" not in answer.body.decode()
        guarded.app._app = raises
    assert [record.getMessage() for record in caplog.records] == ["a request failed: ValueError"] * 2


def test_a_client_that_goes_away_is_no_error(guarded: Guarded, caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []

    async def main() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {guarded.token}".encode())]
        headers += [(b"content-length", b"9"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/api/json", "raw_path": b"/api/json", "query_string": b""}
        scope |= {"headers": headers, "server": ("127.0.0.1", PORT), "scheme": "http", "http_version": "1.1"}
        await guarded.app(scope | {"root_path": "", "client": None}, receive, send)

    with caplog.at_level(logging.INFO, "ctx"):
        asyncio.run(main())
    assert caplog.records == []


def test_tokens_are_nowhere_in_logs_errors_and_answers(guarded: Guarded, caplog: pytest.LogCaptureFixture) -> None:
    paths = IndexPaths(guarded.root)
    paths.create()
    ann = make_token(paths, "ann", "lab", store=guarded.store)[0].reveal()
    link = guarded.sessions.new_link().reveal()
    session = guarded.sessions.log_in(guarded.token) or ""
    shown: list[str] = []
    with caplog.at_level(logging.DEBUG):
        for token in (guarded.token, ann, link, session):
            headers = {"cookie": f"ctx_session_{PORT}={token}", "referer": token, "x-request-id": f"<{token}>"}
            for path in (
                "/api/whoami",
                f"/api/whoami?token={token}",
                "/api/fails",
                "/nowhere",
                "/health",
            ):
                for answer in (guarded.ask(path, headers=dict(headers)), guarded.ask(path, token=token)):
                    shown.append(repr(answer))
            body = json.dumps({"token": [token]}).encode()
            shown.append(repr(guarded.ask("/api/login", "POST", {"content-type": "application/json"}, body)))
            shown.append(
                repr(guarded.ask("/api/json", "POST", {"content-type": "application/json"}, body, token=token))
            )
    everything = "\n".join([*shown, caplog.text, repr(guarded.tokens), repr(vars(guarded.tokens)), repr(guarded.app)])
    for secret in (guarded.token, ann, link, session):
        assert secret
        assert secret not in everything
        assert secret.removeprefix("ctx_") not in everything
