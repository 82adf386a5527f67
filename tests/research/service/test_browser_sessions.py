"""Browsers: a link that works once, a cookie that scripts and other sites do not get, and the end of both."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from research.governance import Principal
from research.service.sessions import cookie_name, session_ids
from research.service.tokens import make_token, revoke_tokens
from research.store import IndexPaths
from tests.research.service.guarded import PORT, Answer, Guarded

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    made = Guarded(tmp_path)
    IndexPaths(made.root).create()
    return made


def log_in(guarded: Guarded, token: str, **options: int | None) -> Answer:
    body = json.dumps({"token": token}).encode()
    return guarded.ask("/api/login", "POST", dict(JSON), body, **options)  # type: ignore[arg-type]


def cookie_of(answer: Answer) -> str:
    return answer["set-cookie"].partition(";")[0]


def who(guarded: Guarded, cookie: str) -> object:
    answer = guarded.ask(headers={"cookie": cookie})
    return answer.document["caller"] if answer.status == 200 else answer.status


def test_the_link_opens_a_session_once(guarded: Guarded) -> None:
    link = guarded.sessions.new_link().reveal()
    answer = log_in(guarded, link)
    assert (answer.status, answer.body) == (204, b"")
    assert who(guarded, cookie_of(answer)) == [guarded.tokens.owner.name, "", True]
    again = log_in(guarded, link)
    assert again.status == 401
    assert "set-cookie" not in again
    assert log_in(guarded, guarded.sessions.new_link().reveal()).status == 204, "another can be had"


def test_the_cookie_is_for_our_own_pages_alone(guarded: Guarded) -> None:
    answer = log_in(guarded, guarded.sessions.new_link().reveal())
    name, *attributes = answer["set-cookie"].split("; ")
    assert name.startswith(f"ctx_session_{PORT}=")
    assert sorted(attributes) == ["HttpOnly", "Max-Age=604800", "Path=/", "SameSite=strict"]
    assert answer["cache-control"] == "no-store"
    over_a_socket = log_in(guarded, guarded.sessions.new_link().reveal(), port=None)
    assert over_a_socket["set-cookie"].startswith("ctx_session=")


def test_a_link_is_good_for_ten_minutes(guarded: Guarded) -> None:
    early, late = guarded.sessions.new_link().reveal(), guarded.sessions.new_link().reveal()
    guarded.clock.now += 599
    assert log_in(guarded, early).status == 204
    guarded.clock.now += 2
    assert log_in(guarded, late).status == 401


def test_a_lasting_token_opens_a_session_as_often_as_one_likes(guarded: Guarded) -> None:
    ann, entry = make_token(IndexPaths(guarded.root), "ann", "lab", store=guarded.store)
    for token, caller in (
        (guarded.token, [guarded.tokens.owner.name, "", True]),
        (ann.reveal(), ["ann", "lab", False]),
    ):
        for _ in range(2):
            assert who(guarded, cookie_of(log_in(guarded, token))) == caller
    cookie = cookie_of(log_in(guarded, f"  {ann.reveal()}\n"))
    assert who(guarded, cookie) == ["ann", "lab", False]
    revoke_tokens([entry.id], guarded.store)
    assert who(guarded, cookie) == 401, "a session ends with its token"


def test_the_owners_sessions_end_with_the_owners_token(guarded: Guarded) -> None:
    cookie = cookie_of(log_in(guarded, guarded.sessions.new_link().reveal()))
    assert isinstance(who(guarded, cookie), list)
    link = guarded.sessions.new_link().reveal()
    guarded.token_file.unlink()
    assert who(guarded, cookie) == 401
    assert log_in(guarded, link).status == 401


def test_sessions_end_by_themselves(guarded: Guarded) -> None:
    day = 24 * 3600
    idle = cookie_of(log_in(guarded, guarded.token))
    used = cookie_of(log_in(guarded, guarded.token))
    for _ in range(7):
        guarded.clock.now += day - 2
        assert isinstance(who(guarded, used), list)
    assert who(guarded, idle) == 401
    guarded.clock.now += 60
    assert who(guarded, used) == 401, "after a week, however much it is used"


def test_logging_out(guarded: Guarded) -> None:
    cookie = cookie_of(log_in(guarded, guarded.token))
    other = cookie_of(log_in(guarded, guarded.token))
    answer = guarded.ask("/api/logout", "POST", {"cookie": cookie})
    assert answer.status == 204
    assert answer["set-cookie"].startswith(f'ctx_session_{PORT}="";')
    assert "Max-Age=0" in answer["set-cookie"]
    assert who(guarded, cookie) == 401
    assert isinstance(who(guarded, other), list)
    assert guarded.ask("/api/logout", "POST").status == 401


def test_a_form_without_javascript(guarded: Guarded) -> None:
    body = f"token={quote(guarded.token)}".encode()
    answer = guarded.ask("/login", "POST", dict(FORM), body)
    assert (answer.status, answer["location"]) == (303, "/")
    assert isinstance(who(guarded, cookie_of(answer)), list)
    own_page = {"origin": "null", "sec-fetch-site": "same-origin"}  # as browsers send it where no referrer is told
    assert guarded.ask("/login", "POST", {**FORM, **own_page}, body).status == 303
    wrong = guarded.ask("/login", "POST", {**FORM, "accept": "text/html,*/*"}, b"token=wrong")
    assert wrong.status == 401
    assert wrong["content-type"].startswith("text/html")
    assert b"not accepted" in wrong.body
    assert "set-cookie" not in wrong


@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("/api/login", JSON, b"", 422),
        ("/api/login", JSON, b"{", 400),
        ("/api/login", JSON, b'{"token": ["leaked-secret"]}', 422),
        ("/api/login", JSON, b'{"Token": "leaked-secret"}', 422),
        ("/api/login", JSON, b'{"token": "\\udcff"}', 422),
        ("/api/login", JSON, b"\xff", 400),
        ("/api/login", FORM, b"token=leaked-secret", 422),
        ("/api/login", {"content-type": "text/plain"}, b'{"token": "leaked-secret"}', 422),
        ("/login", {"content-type": "multipart/form-data; boundary=x"}, b"--x--", 422),
        ("/login", FORM, b"token", 422),
        ("/login", FORM, b"token=leaked-secret", 401),
    ],
)
def test_what_is_no_login(guarded: Guarded, path: str, headers: dict[str, str], body: bytes, status: int) -> None:
    answer = guarded.ask(path, "POST", dict(headers), body)
    assert answer.status == status
    assert answer["content-type"] == "application/problem+json"
    assert answer.document["status"] == status
    assert b"leaked-secret" not in answer.body
    assert "set-cookie" not in answer


def test_a_wrong_token_a_used_link_and_one_that_is_over_sound_the_same(guarded: Guarded) -> None:
    link = guarded.sessions.new_link().reveal()
    log_in(guarded, link)
    old = guarded.sessions.new_link().reveal()
    guarded.clock.now += 3600
    answers = [log_in(guarded, token) for token in ("never existed", link, old)]
    documents = [{k: v for k, v in answer.document.items() if k != "instance"} for answer in answers]
    assert documents[0] == documents[1] == documents[2]
    assert {answer.status for answer in answers} == {401}


def test_cookies_of_other_ports_and_tossed_ones() -> None:
    assert cookie_name(80) != cookie_name(8080)
    headers = ["a=b; ctx_session_7777=one; ctx_session_77=no", 'ctx_session_7777="two"; ctx_session=no']
    assert session_ids(headers, 7777) == ["one", "two"]
    assert len(session_ids(["ctx_session_7777=x; " * 100], 7777)) == 4
    assert session_ids(["", ";;;=", "ctx_session_7777"], 7777) == []


def test_a_cookie_that_was_set_before_ours_does_not_hide_it(guarded: Guarded) -> None:
    cookie = cookie_of(log_in(guarded, guarded.token))
    assert isinstance(who(guarded, f"ctx_session_{PORT}=tossed; {cookie}"), list)
    assert who(guarded, f"ctx_session_{PORT}={'x' * 5000}") == 401
    assert who(guarded, f"ctx_session_{PORT}=\xff") == 401


def test_only_hashes_are_kept(guarded: Guarded) -> None:
    link = guarded.sessions.new_link().reveal()
    session = cookie_of(log_in(guarded, guarded.token)).partition("=")[2]
    kept = repr(vars(guarded.sessions))
    assert link not in kept
    assert session not in kept
    assert guarded.sessions.caller_for([session]) == Principal(guarded.tokens.owner.name, "", owner=True)
