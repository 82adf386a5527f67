"""Counts equal tiktoken's own, by whichever path they are made."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from research.context import tokens
from research.context.tokens import RunningCount, TokenCounter
from research.errors import CtxError
from tests.pace import draws
from tools import build_tables

TEXTS = [
    "",
    "The financial crisis of 2008 was caused by subprime mortgages.",
    "  leading,   many     spaces\n\n\n\tand tabs\r\n",
    "1234567890 3.14159 €1,234.50 (net)",
    "価格は上がった。 Überprüfung naïve مرحبا",
    "💶🏳️‍🌈 x" * 20,
    "a" * 3000,
    "half a character \ud83d or \udcff, and a whole one \ud83d\ude00 in halves",
    "<|endoftext|> is text here, not a special token",
]


@lru_cache
def published(name: str) -> tiktoken.Encoding:
    """tiktoken as it is, with the published table and pattern."""
    return tiktoken.Encoding(
        name, pat_str=tokens._PATTERNS[name], mergeable_ranks=build_tables.published_ranks(name), special_tokens={}
    )


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@pytest.mark.parametrize("text", TEXTS)
def test_counts_are_tiktokens(encoding: str, text: str) -> None:
    assert TokenCounter(encoding).count(text) == len(published(encoding).encode_ordinary(text))


# Characters that Python does not know yet are left out: `regex` may follow a newer Unicode than tiktoken, and one then
# takes for a letter what the other does not.
@draws(150)
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cn")), max_size=200))
def test_any_text(text: str) -> None:
    assert TokenCounter().count(text) == len(published("o200k_base").encode_ordinary(text))


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@draws(300)
@given(parts=st.lists(st.text(st.sampled_from("aB'sreé1 \n\r\t.,/#-|💶語"), max_size=14), max_size=8))
def test_a_tally_of_parts_is_the_count_of_the_whole(encoding: str, parts: list[str]) -> None:
    tally, text = RunningCount(TokenCounter(encoding)), ""
    for part in parts:
        tally, text = tally.plus(part), text + part
        assert tally.tokens == len(published(encoding).encode_ordinary(text))


def test_patterns_are_tiktokens_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken_ext import openai_public

    seen: dict[str, str] = {}

    def table(address: str, expected_hash: str) -> dict[bytes, int]:
        seen[address.rsplit("/", 1)[1].removesuffix(".tiktoken")] = expected_hash
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", table)
    for name in ("o200k_base", "cl100k_base"):
        assert getattr(openai_public, name)()["pat_str"] == tokens._PATTERNS[name]
        assert seen[name] == build_tables.TOKEN_SHA256[name]


def test_much_text_switches_to_the_whole_table() -> None:
    counter = TokenCounter()
    text = " ".join(f"zq{number:x}xv" for number in range(20_000))
    assert counter.count(text) == len(published("o200k_base").encode_ordinary(text))


def test_unknown_encoding() -> None:
    with pytest.raises(CtxError, match="unknown token encoding"):
        TokenCounter("p50k")


def test_counting_needs_neither_tiktoken_nor_a_download() -> None:
    script = (
        "import sys; from research.context.tokens import TokenCounter\n"
        "print(TokenCounter().count('hello wonderful world'), 'tiktoken' in sys.modules, 'requests' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "False", "False"]
