"""Code: whether a question finds its function, and what reading a tree costs beside encoding its pieces.

    make bench ONLY="code"

Questions are made from packages that are installed here: the first sentence of a function's docstring, which is taken
out of what is indexed. Everything else of the package is there: other functions, classes, what stands outside of them.
Beside ctx stand a plain sum of BM25 over split identifiers and of MiniLM's cosine, over functions alone, and what a
search by the question's words would bring first: the functions that hold most of them.

The tree of 5,000 files is made of functions of these packages, a few in each file.
"""

from __future__ import annotations

import ast
import math
import random
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest import ingest_code
from ingest.code.run import KIND, OF_TESTS
from research.encoders import TextEncoder, fitting, load_text_encoder
from research.index import Index
from research.search.items import fitting_parts
from research.sources import CodeSource
from research.store import IndexPaths, asked_words
from research.store.analyzer import analyze_name
from tests.bench.table import line, median, title

GOAL = (0.45, 0.80, 0.87)
NAMED = ("rich", "typer")
OTHERS = ("click", "httpx", "requests", "jsonschema", "fastapi", "starlette")
_FILES = 5_000
_SAMPLE = 1_500  # texts that are encoded bare
_END = re.compile(r"(?<=[.!?])\s")


@dataclass(frozen=True, slots=True)
class Asked:
    path: str
    name: str
    question: str


@dataclass(frozen=True, slots=True)
class Function:
    path: str
    name: str
    code: str


def run() -> None:
    title("Code: a function by the first sentence of its docstring, which is not indexed; hit@1 / 5 / 10")
    encoder = load_text_encoder()
    with tempfile.TemporaryDirectory() as folder:
        means: dict[str, list[tuple[float, ...]]] = {}
        for package in (*NAMED, *OTHERS):
            for how, hits in _quality(package, encoder, Path(folder) / package):
                means.setdefault(how, []).append(hits)
            if package == NAMED[-1]:
                for how, every in means.items():
                    goal = "goal " + _shown(GOAL) if how == "ctx" else ""
                    line(f"mean of {' and '.join(NAMED)}: {how}", _shown(np.mean(every, axis=0)), goal)
        for how, every in means.items():
            line(f"mean of all {len(every)}: {how}", _shown(np.mean(every, axis=0)))
        title(f"Code: a tree of {_FILES:,} files")
        _speed(encoder, Path(folder))


def _quality(package: str, encoder: TextEncoder, folder: Path) -> Iterator[tuple[str, tuple[float, ...]]]:
    found = find_spec(package)
    if found is None or found.origin is None:
        line(package, "not installed")
        return
    asked, functions = take_docstrings_out(Path(found.origin).parent, folder / package)
    # Tests stand behind what they test: a docstring of one is no question of somebody who looks for code.
    asked = [each for each in asked if not OF_TESTS.search(each.path.removeprefix(str(folder)))]
    with Index(folder / "index") as index:
        ingest_code(index, folder / package)
        source = index.item_source(CodeSource)
        ranks, seconds = [], list[float]()
        with index.catalog.snapshot() as reader:
            for each in asked:
                started = time.perf_counter()
                items = source.find(reader, each.question, 10).items
                seconds.append(time.perf_counter() - started)
                names = [(one.item.parent, one.item.metadata["qualified_name"]) for one in items]
                ranks.append(names.index((each.path, each.name)) if (each.path, each.name) in names else 10)
    beside = {"BM25 + MiniLM": _plain(asked, functions, encoder), "words counted": _counted(asked, functions)}
    told = f"{len(asked)} questions, {len(functions)} functions, {1000 * median(seconds):.0f} ms each"
    line(package, _shown(hits := _hits(ranks)), told)
    yield "ctx", hits
    for how, others in beside.items():
        line(f"  {how}", _shown(hits := _hits(others)))
        yield how, hits


def _shown(hits: Sequence[float] | NDArray[np.float64]) -> str:
    return " / ".join(f"{hit:.3f}".removeprefix("0") for hit in hits)


def _hits(ranks: Sequence[int]) -> tuple[float, ...]:
    return tuple(sum(rank < depth for rank in ranks) / len(ranks) for depth in (1, 5, 10))


def take_docstrings_out(package: Path, into: Path) -> tuple[list[Asked], list[Function]]:
    """A copy of a package without the docstrings of its functions, and what they asked."""
    asked: list[Asked] = []
    functions: list[Function] = []
    for file in sorted(package.rglob("*.py")):
        copy = into / file.relative_to(package)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text("utf-8", "replace")
        lines = text.split("\n")
        defined = list(_functions(ast.parse(text), []))
        for name, node in defined:
            docstring = ast.get_docstring(node)
            if docstring and docstring.strip():
                first = " ".join(docstring.strip().split("\n\n")[0].split())
                end = _END.search(first)
                asked.append(Asked(str(copy), name, first[: end.start()] if end else first))
        for _, node in sorted(defined, key=lambda each: -each[1].lineno):
            if ast.get_docstring(node) is not None:
                _cut(lines, node.body[0], alone=len(node.body) == 1)
        copy.write_text("\n".join(lines))
        functions += [
            Function(str(copy), name, "\n".join(lines[node.lineno - 1 : node.end_lineno])) for name, node in defined
        ]
    return asked, functions


def _functions(node: ast.AST, above: list[str]) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        names = [*above, child.name] if named else above  # type: ignore[attr-defined]
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield ".".join(names), child
        yield from _functions(child, names)


def _cut(lines: list[str], docstring: ast.stmt, *, alone: bool) -> None:
    """Without it, in as many lines."""
    first, last = docstring.lineno - 1, (docstring.end_lineno or docstring.lineno) - 1
    before = lines[first].encode()[: docstring.col_offset].decode()
    after = lines[last].encode()[docstring.end_col_offset :].decode().lstrip(" ;")
    lines[first : last + 1] = [f"{before}{'pass' if alone else ''}{after}", *[""] * (last - first)]


def _plain(asked: Sequence[Asked], functions: Sequence[Function], encoder: TextEncoder) -> list[int]:
    words = [Counter(analyze_name(each.code)) for each in functions]
    held = Counter(word for each in words for word in each)
    lengths = np.array([sum(each.values()) for each in words], float)
    norms = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
    vectors = encoder.embed([fitting(each.code, encoder) for each in functions])
    ranks = []
    for each in asked:
        scores, most = np.zeros(len(functions)), 1e-9
        for word in asked_words(each.question):
            idf = math.log(1 + (len(functions) - held[word] + 0.5) / (held[word] + 0.5))
            counts = np.array([found[word] for found in words], float)
            scores += idf * counts / (counts + norms)
            most += idf
        ranks.append(_rank(scores / most + vectors @ encoder.embed_query(each.question), each, functions))
    return ranks


def _counted(asked: Sequence[Asked], functions: Sequence[Function]) -> list[int]:
    """As whoever looks with grep would: the functions with most of the words, then those that repeat them."""
    texts = [f"{each.name}\n{each.code}".lower() for each in functions]
    ranks = []
    for each in asked:
        words = set(re.findall(r"[a-z]{3,}", each.question.lower()))
        counts = [[text.count(word) for word in words] for text in texts]
        scores = np.array([sum(map(bool, found)) + min(0.9, sum(found) / 1000) for found in counts])
        ranks.append(_rank(scores, each, functions))
    return ranks


def _rank(scores: NDArray[np.float64], wanted: Asked, functions: Sequence[Function]) -> int:
    """Of the first that bears the name."""
    order = np.argsort(-scores, kind="stable")
    right = (
        n for n, row in enumerate(order) if (functions[row].path, functions[row].name) == (wanted.path, wanted.name)
    )
    return next(right, len(functions))


def _speed(encoder: TextEncoder, folder: Path) -> None:
    """By CPU seconds of this process and of those that read: the machine may do other things."""
    tree, paths = folder / "tree", IndexPaths(folder / "tree-index")
    make_tree(tree, _FILES)
    used = _cpu()
    summary = ingest_code(paths, tree)
    used = _cpu() - used
    assert summary.code is not None
    with Index(paths.root) as index, index.catalog.snapshot() as reader:
        numbers = [item.item_no for item in reader.items.all(KIND)]
        pieces, _ = fitting_parts(reader.items.pending(numbers), encoder)
    sample = random.Random(7).sample(pieces, min(_SAMPLE, len(pieces)))
    encoder.embed(sample[:16])
    bare, started = _cpu(), time.perf_counter()
    encoder.embed(sample)
    bare, seconds = ((each * len(pieces) / len(sample)) for each in (_cpu() - bare, time.perf_counter() - started))
    line("pieces", f"{summary.code.units:,}", f"{len(pieces):,} texts for the encoder")
    line(
        "ctx ingest --code",
        f"{used:.0f} CPU s",
        f"{summary.seconds:.0f} s, {len(pieces) / summary.seconds:,.0f} texts/s",
    )
    line("the encoder alone, from a part of the texts", f"{bare:.0f} CPU s", f"{seconds:.0f} s")
    line("speed of the ingest as a share of the encoder's", f"{bare / used:.2f}", "goal 0.8")
    again = ingest_code(paths, tree)
    line("again, nothing changed", f"{again.seconds:.2f} s")


def _cpu() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def make_tree(folder: Path, files: int, seed: int = 7) -> None:
    """Folders of files with one to four functions each, taken from packages that are installed here."""
    chance = random.Random(seed)
    functions: list[str] = []
    for package in (*NAMED, *OTHERS):
        found = find_spec(package)
        for file in sorted(Path(found.origin).parent.rglob("*.py")) if found and found.origin else ():
            text = file.read_text("utf-8", "replace")
            lines = text.split("\n")
            functions += [
                "\n".join(lines[node.lineno - 1 : node.end_lineno])
                for node in ast.parse(text).body
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
    for number in range(files):
        file = folder / f"part{number % 50}" / f"file{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import os\n\n\n" + "\n\n\n".join(chance.choices(functions, k=chance.randint(1, 4))) + "\n")
