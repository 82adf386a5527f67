"""Known secrets: masked in every writing, whole or in pieces, and put back only by who asks for it."""

from __future__ import annotations

import base64
import html
import json
import pickle
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.errors import UsageError
from research.governance.masking import MaskingStream, SecretMasker
from research.secret import Secret
from tests.pace import draws

VALUE = 'p"ä/s s\\w0rd+&x'
OTHER = "abcdef0123456789"
MASKER = SecretMasker({"DB_PASSWORD": VALUE, "API_TOKEN": Secret(OTHER)})


def _in_pieces(masker: SecretMasker, text: str, sizes: list[int]) -> str:
    stream, shown, at = masker.stream(), [], 0
    while at < len(text):
        size = sizes[len(shown) % len(sizes)]
        shown.append(stream.feed(text[at : at + size]))
        at += size
    return "".join([*shown, stream.end()])


@pytest.mark.parametrize(
    "written",
    [
        VALUE,
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps({"k": VALUE}))[1:-1],
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        re.sub("%..", lambda match: match[0].lower(), quote(VALUE, safe="")),
        html.escape(VALUE),
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
        base64.b64encode(VALUE.encode()).decode(),
        base64.urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
        base64.b64encode(f"user:{VALUE}".encode()).decode(),
        base64.b64encode(f"admin:{VALUE}!!".encode()).decode(),
        base64.b64encode(f"me:{VALUE}".encode()).decode(),
    ],
)
def test_every_writing_is_masked(written: str) -> None:
    for text in (written, f"a {written} b", f'{{"x": "{written}", "y": 1}}'):
        masked = MASKER.mask(text)
        assert "§§secret(DB_PASSWORD)" in masked
        assert written not in masked
        for sizes in ([1], [3, 1, 4], [1000]):
            assert _in_pieces(MASKER, text, sizes) == masked
    assert MASKER.mask(f"{OTHER}{OTHER} and {VALUE}") == (
        "§§secret(API_TOKEN)§§secret(API_TOKEN) and §§secret(DB_PASSWORD)"
    )


def test_values_that_overlap_or_hold_each_other() -> None:
    masker = SecretMasker({"A": "abcdef", "B": "cdefgh123456", "C": "xabcdefx", "D": "aaaaaa"})
    assert masker.mask("1 abcdefgh123456 2") == "1 §§secret(A)§§secret(B) 2"
    assert masker.mask("1 xabcdefx 2") == "1 §§secret(C) 2"
    assert masker.mask("1 xabcdefy 2") == "1 x§§secret(A)y 2"
    assert masker.mask("1 aaaaaaaaaaaaaaaaaaaa 2") == "1 §§secret(D) 2"


@draws(300)
@given(
    st.lists(
        st.sampled_from(["abc", "def", "gh", "123", "456", "aa", "x", "abcdef", "cdefgh123456", "§§secret(A)", " "])
    ),
    st.lists(st.integers(1, 7), min_size=1, max_size=5),
)
def test_pieces_make_no_difference_and_nothing_is_left(parts: list[str], sizes: list[int]) -> None:
    masker = SecretMasker({"A": "abcdef", "B": "cdefgh123456", "D": "aaaaaa", "E": "def123abc"})
    text = "".join(parts)
    masked = masker.mask(text)
    assert _in_pieces(masker, text, sizes) == masked
    assert masker.mask(masked) == masked, "a second pass changes nothing"
    rest = re.sub(r"§§secret\(\w\)", "|", masked)
    assert not [value for value in ("abcdef", "cdefgh123456", "aaaaaa", "def123abc") if value in rest]


@draws(100)
@given(st.text(min_size=6, max_size=40), st.text(max_size=20), st.text(max_size=20), st.integers(1, 5))
def test_any_value_in_any_text(value: str, before: str, after: str, size: int) -> None:
    try:
        masker = SecretMasker({"K": value})
    except UsageError:
        return
    text = f"{before}{value}{after}"
    masked = masker.mask(text)
    assert value not in masked.replace("§§secret(K)", "")
    assert _in_pieces(masker, text, [size]) == masked


def test_a_text_that_was_cut_in_the_middle_of_a_value() -> None:
    long = "Zx81kQ02mm-Zx81kQ02nn-Zx81kQ02oo"
    masker = SecretMasker({"K": long})
    assert masker.mask(f"it is {long[:20]}") == "it is §§secret(K)"
    assert masker.mask(f"{long[12:]} it was") == "§§secret(K) it was"
    assert masker.mask(long[4:28]) == "§§secret(K)"
    assert masker.mask(f"it is {long[:3]}") == f"it is {long[:3]}", "three letters are no secret"
    assert masker.mask("Zx81 and more") == "Zx81 and more"


def test_what_is_held_back_is_no_more_than_it_must_be() -> None:
    stream = MASKER.stream()
    assert stream.feed("say abc") == "say "
    assert stream.feed("xyz, ") == "abcxyz, "
    assert stream.feed(OTHER[:9]) == ""
    assert repr(stream) == "MaskingStream(9 characters held)"
    assert stream.feed(OTHER[9:]) == "§§secret(API_TOKEN)"
    assert stream.end() == ""
    assert stream.end() == ""
    with pytest.raises(ValueError, match="ended"):
        stream.feed("x")


def test_an_endless_repetition_of_a_value_is_not_held() -> None:
    stream = SecretMasker({"D": "aaaaaa"}).stream()
    shown = "".join(stream.feed("a") for _ in range(500))
    assert shown == "§§secret(D)"
    assert len(stream._held) <= 6
    assert stream.feed("b") == "b"


def test_a_value_is_put_back_only_on_request() -> None:
    order = MASKER.mask(f"curl -u x:{VALUE} -H {OTHER}")
    revealed = MASKER.reveal(order, ["DB_PASSWORD", "UNKNOWN"])
    assert revealed.reveal() == f"curl -u x:{VALUE} -H §§secret(API_TOKEN)"
    assert VALUE not in repr(revealed) + str(revealed) + f"{revealed}"
    assert MASKER.reveal("§§secret(NOBODY) §§secret(DB_PASSWORD)", []).reveal() == (
        "§§secret(NOBODY) §§secret(DB_PASSWORD)"
    )


def test_nothing_shows_a_value() -> None:
    stream = MASKER.stream()
    stream.feed(OTHER[:12])
    assert repr(MASKER) == "SecretMasker(DB_PASSWORD, API_TOKEN)"
    for each in (MASKER, stream):
        with pytest.raises(TypeError) as caught:
            pickle.dumps(each)
        assert OTHER[:8] not in str(caught.value) + repr(each)
        shown = [getattr(each, name) for name in dir(each) if not name.startswith("__") and name != "_held"]
        assert OTHER[:8] not in repr(shown)
    assert isinstance(stream, MaskingStream)


def test_no_secrets_mask_nothing() -> None:
    masker = SecretMasker({})
    assert masker.mask("abc") == "abc"
    assert masker.stream().feed("abc") == "abc"
