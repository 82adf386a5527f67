"""Commits: whether a question finds its commit, and what reading a history costs beside encoding its messages.

    make bench ONLY="commits"

Questions are the commits of this repository: the first line of a message, which is left out of what is indexed, and
whole messages. A merge has no change of its own, so without its first line nothing of it is left to be found; figures
are told with merges and without. Where two commits say the same, either is right.

The history of 10,000 commits is made: messages of one to three sentences, one to four files of a hundred.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ingest import ingest_commits
from ingest.commits.git import Commit, find_repository, reachable, read_commits
from ingest.commits.run import KIND, commit_items, redactor
from research.encoders import TextEncoder, load_text_encoder
from research.search import ItemSearch
from research.search.items import fitting_parts
from research.sources.items import CommitsSource
from research.store import Catalog, IndexPaths
from tests.bench.table import line, title

HERE = Path(__file__).parents[2]
_MADE = 10_000
_WORDS = tuple(
    """
    parser cache token server index budget query vector page table reader writer lock queue worker message date limit
    schema header encoder stream chunk file folder session memory answer quote source filter booster upload retry
    timeout error warning signal process thread batch commit merge branch history ranking score test bench
    """.split()  # noqa: SIM905 (one word a line would hide the list)
)


def run(repository: Path = HERE) -> None:
    title("Commits: found by their first line, and by whole messages")
    encoder = load_text_encoder()
    commits = head(repository)
    if not commits:
        line("no history here", "0")
        return
    with tempfile.TemporaryDirectory() as folder:
        _found(encoder, commits, Path(folder))
        title(f"Commits: {_MADE:,} of a made history")
        _speed(encoder, Path(folder))


def head(repository: Path) -> list[Commit]:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=False)
    if done.returncode:
        return []
    with find_repository(repository).borrowed() as git:
        return list(read_commits(git, reachable(git, [done.stdout.strip()])[0]))


def _found(encoder: TextEncoder, commits: Sequence[Commit], folder: Path) -> None:
    own = [commit for commit in commits if commit.files]
    line("commits", f"{len(commits):,}", f"{len(commits) - len(own)} without a change of their own")
    with Catalog(IndexPaths(folder / "without"), writable=True) as catalog:
        fill(catalog, encoder, commits, subjects=False)
        for what, asked in (("all", commits), ("those with changes", own)):
            first, five, ten = _hits(catalog, encoder, commits, [(each, subject_of(each)) for each in asked])
            line(f"by the first line, not indexed; {what}", f"{five:.3f}", f"hit@5, goal .60; {first:.3f} / {ten:.3f}")
    with Catalog(IndexPaths(folder / "with"), writable=True) as catalog:
        fill(catalog, encoder, commits, subjects=True)
        whole = [(each, each.message) for each in commits]
        first, five, _ = _hits(catalog, encoder, commits, whole)
        line("by whole messages, found first", f"{first:.3f}", f"goal .95; {five:.3f} among five")
        alone = _hits(catalog, encoder, commits, whole, strict=True)[0]
        most = len({each.message for each in commits}) / len(commits)
        line("the same, the very commit", f"{alone:.3f}", f"{most:.3f} is the most: others have the same message")


def fill(catalog: Catalog, encoder: TextEncoder, commits: Sequence[Commit], *, subjects: bool) -> None:
    catalog.items.put(KIND, "bench", "1", commit_items(commits, redactor(), subjects=subjects))
    numbers = catalog.items.without_vectors(KIND, encoder.name)
    parts, owners = fitting_parts(catalog.items.pending(numbers), encoder)
    catalog.items.write_vectors(encoder.name, owners, encoder.embed(parts))


def _hits(
    catalog: Catalog,
    encoder: TextEncoder,
    commits: Sequence[Commit],
    asked: Sequence[tuple[Commit, str]],
    *,
    strict: bool = False,
) -> tuple[float, float, float]:
    """Among one, five and ten; a commit that says the same is as good, unless `strict`."""
    search = ItemSearch(KIND, lambda _: encoder, CommitsSource.ranking)
    says = {commit.sha: commit.sha if strict else commit.message for commit in commits}
    ranks: list[int] = []
    with catalog.snapshot() as reader:
        for commit, question in asked:
            found = [says[each.item.key] for each in search.find(reader, question, 10).items]
            wanted = says[commit.sha]
            ranks.append(found.index(wanted) if wanted in found else 10)
    shares = [sum(rank < depth for rank in ranks) / len(ranks) for depth in (1, 5, 10)]
    return shares[0], shares[1], shares[2]


def subject_of(commit: Commit) -> str:
    return commit.message.partition("\n")[0]


def _speed(encoder: TextEncoder, folder: Path) -> None:
    repository = folder / "made"
    messages = list(make_history(repository, _MADE))
    encoder.embed(messages[:64])
    started = time.perf_counter()
    for start in range(0, len(messages), 256):
        encoder.embed(messages[start : start + 256])
    bare = time.perf_counter() - started
    summary = ingest_commits(IndexPaths(folder / "made-index"), repository)
    line("encoding the messages alone", f"{bare:.1f} s", f"{len(messages) / bare:,.0f}/s")
    ratio = summary.seconds / bare
    line("ctx ingest --commits, vectors and all", f"{ratio:.2f}", f"of that, goal 2; {summary.seconds:.1f} s")
    again = ingest_commits(IndexPaths(folder / "made-index"), repository)
    line("again, nothing new", f"{again.seconds:.2f} s")


def make_history(folder: Path, count: int, seed: int = 7) -> Iterator[str]:
    """A repository of so many commits, by git's own way for many at once; the message of each."""
    chance = random.Random(seed)
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    process = subprocess.Popen(["git", "fast-import", "--quiet"], cwd=folder, stdin=subprocess.PIPE)
    assert process.stdin is not None
    for number in range(count):
        message = " ".join(_sentence(chance) for _ in range(chance.randint(1, 3)))
        told = message.encode()
        process.stdin.write(b"commit refs/heads/main\n")
        process.stdin.write(b"committer A B <a@b.example> %d +0000\n" % (1_600_000_000 + number * 60))
        process.stdin.write(b"data %d\n%s\n" % (len(told), told))
        for _ in range(chance.randint(1, 4)):
            name = f"src/{chance.choice(_WORDS)}/{chance.choice(_WORDS[:2])}.py"
            content = "".join(f"def {chance.choice(_WORDS)}_{n}():\n    return {chance.random()}\n" for n in range(12))
            process.stdin.write(b"M 644 inline %s\ndata %d\n%s\n" % (name.encode(), len(content), content.encode()))
        yield message
    process.stdin.close()
    if process.wait():
        raise RuntimeError("git fast-import failed")


def _sentence(chance: random.Random) -> str:
    words = " ".join(chance.choice(_WORDS) for _ in range(chance.randint(6, 16)))
    return f"{words.capitalize()}."
