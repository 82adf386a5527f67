"""What a model says is made safe piece by piece: the same whether it comes at once or letter by letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.llm.refusals import LENGTH, REPETITION, Guard, repeats_itself
from research.secret import Secret
from tests.pace import draws

KEY = "sk-live-0123456789abcdefghij"


def passed(*pieces: str, max_tokens: int = 1000, key: str = "") -> str:
    guard = Guard(max_tokens, Secret(key) if key else None)
    given_out = [guard.feed(piece) for piece in pieces]
    return "".join(given_out) + guard.end()


@pytest.mark.parametrize(
    ("said", "safe"),
    [
        ("plain text, 18 weeks [1].\n\n- a list\tof it", "plain text, 18 weeks [1].\n\n- a list\tof it"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07and\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "red andlink"),
        ("\x9b2Jcleared \x1bcreset", "cleared reset"),
        ("one\x00two\x08\x7fthree\x85four\ud800five", "onetwothree\nfourfive"),
        ("line\r\nover\rwritten", "line\nover\nwritten"),
        ("ends in \x1b[3", "ends in 3"),
        ("over\r\x1b[3m\nthere", "over\nthere"),
        ("\n\n  begins late", "begins late"),
        ("<think>so\nmuch</think>\n\nYes.", "Yes."),
        ("<think>never ends", ""),
        ("later <think>it is text</think>", "later <think>it is text</think>"),
        ("<thin ice", "<thin ice"),
        ("日本語の答え [1]。مرحبا", "日本語の答え [1]。مرحبا"),
    ],
)
def test_whole_or_in_letters(said: str, safe: str) -> None:
    assert passed(said) == safe
    assert passed(*said) == safe


@draws(100)
@given(
    st.lists(st.sampled_from(["\x1b", "[", "3", "m", "]", "\x07", "\\", "\r", "\n", "\x9b", "a", " ", "P", "\x00"])),
    st.integers(1, 4),
)
def test_no_escape_passes_however_it_is_cut(letters: list[str], size: int) -> None:
    said = "x" + "".join(letters)
    safe = passed(*(said[at : at + size] for at in range(0, len(said), size)))
    assert safe == passed(said)
    assert all(character.isprintable() or character in "\n\t" for character in safe)


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_key_in_an_answer_is_taken_out_across_pieces(size: int) -> None:
    said = f"Your key is {KEY}, is it not? sk-live is its beginning; so says ss"
    safe = passed(*(said[at : at + size] for at in range(0, len(said), size)), key=KEY)
    assert safe == said.replace(KEY, "[key]")


def test_nothing_is_held_back_without_a_reason() -> None:
    guard = Guard(100, Secret(KEY))
    assert [guard.feed(piece) for piece in ("Eighteen", " week", "s", " [1].")] == ["Eighteen", " week", "", "s [1]."]


def test_who_ignores_the_limit_is_stopped() -> None:
    guard = Guard(2)
    assert guard.feed("x y " * 100) == "x y " * 8
    assert guard.stopped == LENGTH


@pytest.mark.parametrize("unit", ["ha ", "\n", "The answer is 18 weeks [1]. ", "A long sentence, said again. " * 9])
def test_who_repeats_himself_for_ever_is_stopped(unit: str) -> None:
    guard = Guard(100_000)
    said = guard.feed("Well, now. ")
    while not guard.stopped:
        said += guard.feed(unit)
    assert guard.stopped == REPETITION
    assert said.startswith("Well, now. ")
    assert len(said) < 2000


@pytest.mark.parametrize(
    "text",
    [
        "| Year | Profit | Loss |\n|---|---|---|\n" + "".join(f"| {year} | {year % 7} | 0 |\n" for year in range(60)),
        "".join(f"- item {number} [1]\n" for number in range(100)),
        "Yes. " * 5,
        "=" * 100,
        "1010" * 30,
        "",
    ],
)
def test_lists_and_tables_are_no_repetition(text: str) -> None:
    assert not any(repeats_itself(text[:end]) for end in range(0, len(text) + 1, 7) if text[:end])
