"""Known secrets: masked in every writing."""

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
from research.governance.masking import SecretMasker
from research.secret import Secret
from tests.pace import draws

VALUE = 'p"ä/s s\\w0rd+&x'
OTHER = "abcdef0123456789"
MASKER = SecretMasker({"DB_PASSWORD": VALUE, "API_TOKEN": Secret(OTHER)})


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
    )
)
def test_nothing_is_left_and_a_second_pass_changes_nothing(parts: list[str]) -> None:
    masker = SecretMasker({"A": "abcdef", "B": "cdefgh123456", "D": "aaaaaa", "E": "def123abc"})
    masked = masker.mask("".join(parts))
    assert masker.mask(masked) == masked
    rest = re.sub(r"§§secret\(\w\)", "|", masked)
    assert not [value for value in ("abcdef", "cdefgh123456", "aaaaaa", "def123abc") if value in rest]


@draws(100)
@given(st.text(min_size=6, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_any_value_in_any_text(value: str, before: str, after: str) -> None:
    try:
        masker = SecretMasker({"K": value})
    except UsageError:
        return
    assert value not in masker.mask(f"{before}{value}{after}").replace("§§secret(K)", "")


def test_a_text_that_was_cut_in_the_middle_of_a_value() -> None:
    long = "Zx81kQ02mm-Zx81kQ02nn-Zx81kQ02oo"
    masker = SecretMasker({"K": long})
    assert masker.mask(f"it is {long[:20]}") == "it is §§secret(K)"
    assert masker.mask(f"{long[12:]} it was") == "§§secret(K) it was"
    assert masker.mask(long[4:28]) == "§§secret(K)"
    assert masker.mask(f"it is {long[:3]}") == f"it is {long[:3]}", "three letters are no secret"
    assert masker.mask("Zx81 and more") == "Zx81 and more"


def test_nothing_shows_a_value() -> None:
    assert repr(MASKER) == "SecretMasker(DB_PASSWORD, API_TOKEN)"
    with pytest.raises(TypeError) as caught:
        pickle.dumps(MASKER)
    shown = [getattr(MASKER, name) for name in dir(MASKER) if not name.startswith("__")]
    assert OTHER[:8] not in str(caught.value) + repr(MASKER) + repr(shown)
    assert SecretMasker({}).mask("abc") == "abc"
