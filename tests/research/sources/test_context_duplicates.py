"""What several sources say alike is said once; what only looks alike is not joined."""

from __future__ import annotations

import random
import re
from itertools import combinations
from pathlib import Path

import pytest

from research.context.duplicates import without_duplicates
from research.models import Item, Ref
from research.sources.records import item_of
from tests.research.sources.holding import Holding, assembled, code, commit, experience, memory, value

PROSE = Path(__file__).parents[3] / "data"


def sentences() -> list[str]:
    """Real ones, of our own data."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(PROSE.glob("*.jsonl"))]
    found = re.findall(r"[A-Z][^.!?\n|`\"{}]{30,160}[.!?]", "\n".join(texts))
    return list(dict.fromkeys(found))


def kept(*items: Item, same_file: bool = True) -> list[str]:
    return [str(each.ref) for each in without_duplicates(items, same_file=same_file)]


def are_alike(one: str, other: str) -> bool:
    return len(kept(Item(Ref("memory", "m1"), "", one, 0.5), Item(Ref("experience", "e1"), "", other, 0.5))) == 1


def test_the_higher_score_stays() -> None:
    low = item_of(memory("m1", "Retry uploads three times, with growing pauses.", 0.3))
    high = item_of(commit("c" * 40, "Retry uploads three times with growing pauses", 0.6))
    assert kept(low, high) == ["commit:" + "c" * 40]
    assert kept(high, low) == ["commit:" + "c" * 40]
    equal = item_of(value("v1", "Retry uploads three times with growing pauses.", 0.3))
    assert kept(low, equal) == ["memory:m1"]


def test_an_experience_and_the_value_told_in_its_words() -> None:
    first, second = item_of(experience("e1", 0.5)), item_of(experience("e2", 0.4, goal="Other"))
    assert kept(first, second, item_of(value("v1", score=0.8, experience="e1"))) == ["experience:e2", "value:v1"]
    assert kept(first, second, item_of(value("v1", score=0.1, experience="e1"))) == [
        "experience:e1", "experience:e2"
    ]  # fmt: skip
    assert len(kept(first, item_of(value("v1", experience="")))) == 2


@pytest.mark.parametrize(
    ("path", "changed", "repository", "joined"),
    [
        ("src/retry.py", ("src/retry.py",), "", True),
        ("src/retry.py", ("src/other.py",), "", False),
        ("/home/ana/app/src/retry.py", ("src/retry.py",), "/home/ana/app", True),
        ("/home/ana/app/src/retry.py", ("src/retry.py",), "", True),
        ("/home/ana/app/src/retry.py", ("src/retry.py",), "/home/ana/app/", True),
        ("/home/ana/app/retry.py", ("retry.py",), "", False),
        ("/home/ana/app/retry.py", ("retry.py",), "/home/ana/app", True),
    ],
)
def test_code_and_a_commit_of_one_file(path: str, changed: tuple[str, ...], repository: str, joined: bool) -> None:
    unit = item_of(code(score=0.6, file_path=path))
    change = item_of(commit(score=0.5, files_changed=changed, repository=repository))
    assert (len(kept(unit, change)) == 1) is joined
    assert len(kept(unit, change, same_file=False)) == 2


def test_the_switch_is_the_assemblers() -> None:
    found = Holding(code=[code(score=0.4)], commits=[commit(score=0.5, files_changed=("src/send.py",))])
    assert assembled(found, same_file=True).sources_used == {"commits": 1}
    assert assembled(found, same_file=True).duplicates == 1
    assert assembled(found).sources_used == {"code": 1, "commits": 1}


def test_within_a_source_only_the_same_words_are_the_same() -> None:
    versions = [item_of(memory(f"m{n}", f"The service runs version {n} of the parser.", 0.5)) for n in range(5)]
    again = item_of(memory("again", "the service runs version 3 of the parser", 0.4))
    assert kept(*versions, again) == [f"memory:m{n}" for n in range(5)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The timeout of uploads is 30 seconds.", "The timeout of uploads is 60 seconds."),
        ("We do use the new parser for uploads.", "We do not use the new parser for uploads."),
        ("Ana reviewed the change of the retry loop.", "Eva reviewed the change of the retry loop."),
        ("Use version 2.1 of the parser everywhere.", "Use version 2.2 of the parser everywhere."),
        ("The server doesn't close the socket first.", "The server does close the socket first."),
        ("", ""),
    ],
)
def test_what_differs_in_a_number_a_name_or_a_no_is_not_the_same(one: str, other: str) -> None:
    assert not are_alike(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use async/await for I/O.", "use async / await for I/O"),
        ("Don't retry more than 1,000 times.", "Dont retry more than 1000 times"),
        ("It takes 3.5 s, at most.", "It takes 3 5 s at most"),
        ("Pauses grow with every try of an upload.", "Pauses grow with every try of an uplaod."),
        ("上传会重试三次。", "上传会重试三次"),
    ],
)
def test_marks_spaces_and_slips_change_nothing(one: str, other: str) -> None:
    assert are_alike(one, other)


def marked_anew(text: str, maker: random.Random) -> str:
    """With other marks and other spaces."""
    text = re.sub(r"[.!?](?=\s|$)", lambda _: maker.choice([".", "!", " …", ""]), text)
    text = re.sub(r"[,;:](?=\s)", lambda _: maker.choice([",", ";", " –", ""]), text)
    text = re.sub(r"[()*_]", "", text)
    return re.sub(r" ", lambda _: maker.choice([" ", " ", "  ", "\n"]), text)


def test_300_made_pairs_are_found_and_300_different_ones_are_not_joined() -> None:
    maker = random.Random(16)
    pool = sentences()
    assert len(pool) > 100
    found = {"same": 0, "marks": 0, "longer": 0}
    for number in range(100):
        text = " ".join(maker.sample(pool, maker.randint(1, 8)))
        found["same"] += are_alike(text, text)
        found["marks"] += are_alike(text, marked_anew(text, maker))
        long = maker.sample(pool, 11 + number % 8)
        at = maker.randrange(len(long))
        found["longer"] += are_alike(" ".join(long), " ".join(long[:at] + long[at + 1 :]))
    assert found["same"] == 100
    assert found["marks"] >= 95
    assert found["longer"] >= 95
    others = maker.sample(list(combinations(maker.sample(pool, 60), 2)), 200)
    joined = sum(are_alike(one, other) for one, other in others)
    for _ in range(100):  # half of the sentences are the same, and not what they say
        shared = maker.sample(pool, 4)
        one, other = [*shared, *maker.sample(pool, 4)], [*shared, *maker.sample(pool, 4)]
        joined += are_alike(" ".join(one), " ".join(other))
    assert joined <= 3


def test_two_hundred_items_at_once_are_told_apart_as_pairs_are() -> None:
    maker = random.Random(4)
    pool = sentences()
    texts = [" ".join(maker.sample(pool, maker.randint(1, 4))) for _ in range(80)]
    candidates = [item_of(memory(f"m{n}", text, 0.5)) for n, text in enumerate(texts)]
    candidates += [item_of(value(f"v{n}", marked_anew(text, maker), 0.6)) for n, text in enumerate(texts[:40])]
    candidates += [item_of(commit(f"{n:040x}", text, 0.4)) for n, text in enumerate(texts[40:])]
    maker.shuffle(candidates)
    stays = kept(*candidates)
    assert sum(name.startswith("value") for name in stays) == 40
    assert sum(name.startswith("memory") for name in stays) <= 42
    assert sum(name.startswith("commit") for name in stays) == 0
