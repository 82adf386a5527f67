"""Everything together: what a team's agent gets of one index with code, history, memories, experiences and documents.

    make bench ONLY=together
    python -m tests.bench together [--keep FOLDER] [--verbose FILE]

The index holds this repository at a named commit with the history before it, Starlette's source, and what data/together
has of an invented team: 40 memories, 30 experiences, 12 documents. Of 30 questions it is named what an answer needs, by
kind; nothing answers six more. All of that was written, and committed, before any of them was asked.

How it is judged, without a person:
- A need is there if its item is, in any form. A page is named by words on it ("file.pdf|words") and is shown in full if
  these words are in the text that is given out: a page that was cut around them is there, and not in full.
- An item is useful if it is a need, or on the question's list of what a colleague would also like to read: the same
  class or page's neighbour, another record of the same event. What is out of date, and the other edition of a handbook,
  is not useful. A value is as useful as the experience that it is quoted from. The share is of tokens, not of items.
- `ask` is right if all key words of the answer are within its quotes and the text of its first source; where an answer
  has none, if the first source is a need. It says nothing if the command would exit with 3. Everything else is wrong.
  Where what is out of date has words of its own (`stale`), it is told how often they stand before those of the answer.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from string import Template

import pymupdf

from ingest import Observer, ingest, ingest_code, ingest_commits
from research.index import Index
from research.settings import Settings
from research.sources import CONTEXT_TYPES
from research.store import IndexPaths
from tests.bench.table import line, title

HERE = Path(__file__).parents[2]
DATA = HERE / "data" / "together"
# Needs name functions and commits, so what is indexed must not move with the branch.
COMMIT, GENERATIONS = "056953925c02a72f4d9b5734eb9491a90cf348a6", 90  # some 240 commits
TOKENS = 2_000
ASKED = ("documents", "code", "commits", "memories", "experiences")
PAPER, FRAME = pymupdf.paper_rect("a5"), pymupdf.Rect(44, 48, 376, 550)
CSS = """
body { font-family: sans-serif; font-size: 10pt; } h1 { font-size: 16pt; } h2 { font-size: 12pt; }
table { border-collapse: collapse; } td, th { border: 1px solid #666; padding: 2pt 4pt; text-align: left; }
"""


@dataclass(frozen=True, slots=True)
class Question:
    qid: str
    query: str
    needs: tuple[str, ...]
    useful: tuple[str, ...]
    answer: tuple[str, ...]
    stale: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """An item that was given out."""

    name: str  # "page:file.pdf#3", "code:ctx/path.py#name", "commit:subject", "memory:m01", "experience:id"
    score: float
    tokens: int
    useful: bool


@dataclass(frozen=True, slots=True)
class Given:
    """What one way gave out for a question."""

    items: list[Shown]
    there: list[str]
    missing: list[str]
    cut: list[str] = field(default_factory=list)  # needs whose page is there without the words that answer

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)

    @property
    def useful(self) -> int:
        return sum(item.tokens for item in self.items if item.useful)


@dataclass(frozen=True, slots=True)
class Answered:
    verdict: str  # "right", "nothing" or "wrong"
    level: str
    value: float
    sources: list[Shown]
    quotes: list[str]
    stale: bool  # what is out of date stands before the answer


def run(keep: Path | None = None, verbose: Path | None = None) -> None:
    title(f"Everything together: needs and useful tokens within {TOKENS:,} tokens, and what ask says")
    if _git("cat-file", "-e", f"{COMMIT}^{{commit}}").returncode:
        line("the commit that is indexed is not here", COMMIT[:9])
        return
    with ExitStack() as stack:
        apart = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = (keep or apart) / "together"
        filled(folder)
        asked = read_questions()
        # Packages count what was used before: every run begins with the same index.
        with Index.open(shutil.copytree(folder / "index", apart / "index")) as index:
            names = Names(index, folder)
            ways: dict[str, Callable[[Question], Given]] = {
                "context": lambda question: _context(index, names, question),
                "package": lambda question: _package(index, names, question),
            }
            given = {way: {question.qid: get(question) for question in asked} for way, get in ways.items()}
            answers = {question.qid: _ask(index, names, question) for question in asked}
    _tell(asked, given, answers)
    if verbose is not None:
        verbose.write_text("\n".join(_told_at_length(asked, given, answers)) + "\n", "utf-8")
        line("each question", "", str(verbose))


def read_questions() -> list[Question]:
    lines = (json.loads(text) for text in (DATA / "questions.jsonl").read_text("utf-8").splitlines())
    lists = ("needs", "useful", "answer", "stale")
    return [Question(told["qid"], told["query"], *(tuple(told[name]) for name in lists)) for told in lines]


def filled(folder: Path) -> None:
    """The index, made of all kinds; what was kept is used again while the data is the same."""
    stamp = "".join(path.read_text("utf-8") for path in sorted(DATA.rglob("*")) if path.suffix in (".md", ".toml"))
    stamp += COMMIT + "".join((DATA / f"{name}.jsonl").read_text("utf-8") for name in ("memories", "experiences"))
    mark = folder / "filled"
    if mark.exists() and mark.read_text("utf-8") == stamp:
        return
    shutil.rmtree(folder, ignore_errors=True)
    make_documents(folder / "documents")
    _copy_code(folder / "code")
    paths, settings = IndexPaths(folder / "index"), Settings(images=False, ocr="off")
    ingest(paths, [folder / "documents"], settings=settings, observer=Observer())
    ingest_code(paths, folder / "code")
    ingest_commits(paths, folder / "code" / "ctx")
    with Index(folder / "index") as index:
        # One after the other, as they were told: what is newer takes back what is older.
        for text in (DATA / "memories.jsonl").read_text("utf-8").splitlines():
            index.memories.remember_batch([json.loads(text)])
        index.experiences.import_lines(BytesIO((DATA / "experiences.jsonl").read_bytes()))
        index.memories.maintain(seconds=60)
        index.experiences.embed(seconds=60)
        index.graph.update()
        index.prepare()
    mark.write_text(stamp, "utf-8")


def _copy_code(folder: Path) -> None:
    clone = folder / "ctx"
    clone.mkdir(parents=True)
    upload = "git -c uploadpack.allowAnySHA1InWant=true upload-pack"
    _git("init", "-q", where=clone)
    fetched = ("fetch", "-q", "--depth", str(GENERATIONS), "--upload-pack", upload, HERE.as_uri(), COMMIT)
    for command in (fetched, ("checkout", "-q", "-B", "main", "FETCH_HEAD")):
        _git(*command, where=clone).check_returncode()
    found = find_spec("starlette")
    assert found is not None and found.origin is not None
    shutil.copytree(Path(found.origin).parent, folder / "starlette", ignore=shutil.ignore_patterns("__pycache__"))


def _git(*arguments: str, where: Path = HERE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=where, capture_output=True, text=True, check=False)


def make_documents(folder: Path) -> None:
    """The PDFs: every chapter begins on a page of its own."""
    folder.mkdir(parents=True)
    texts = {path.stem: path.read_text("utf-8") for path in sorted((DATA / "documents").glob("*.md"))}
    handbook = Template(texts.pop("staff-handbook"))
    editions = tomllib.loads((DATA / "documents" / "editions.toml").read_text("utf-8"))
    for year, words in editions.items():
        texts[f"staff-handbook-{year}"] = handbook.substitute(words, year=year)
    for name, text in texts.items():
        chapters = [part for part in re.split(r"(?m)^(?=# )", text) if part.strip()]
        buffer = BytesIO()
        writer = pymupdf.DocumentWriter(buffer)
        for chapter in chapters:
            story, more = pymupdf.Story(html_of(chapter), user_css=CSS), 1
            while more:
                device = writer.begin_page(PAPER)
                more, _ = story.place(FRAME)
                story.draw(device)
                writer.end_page()
        writer.close()
        with pymupdf.open("pdf", buffer.getvalue()) as document:
            heading = chapters[0].partition("\n")[0].removeprefix("# ")
            document.set_metadata({"title": heading, "author": "Alderbrook Systems"})
            document.save(folder / f"{name}.pdf")


def html_of(text: str) -> str:
    """Headings, tables, lists and paragraphs of a chapter."""
    parts = []
    for block in re.split(r"\n\n+", text.strip().replace("&", "&amp;").replace("<", "&lt;")):
        lines = block.split("\n")
        while lines and (match := re.match(r"(#+) (.*)", lines[0])):
            parts.append(f"<h{len(match[1])}>{match[2]}</h{len(match[1])}>")
            del lines[0]
        if lines and lines[0].startswith("|"):
            rows = [line.strip("|").split("|") for line in lines if not line.startswith("|-")]
            cells = ("".join(f"<td>{cell.strip()}</td>" for cell in row) for row in rows)
            parts.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")
        elif lines and lines[0].startswith("- "):
            parts.append(f"<ul>{''.join(f'<li>{line[2:]}</li>' for line in lines)}</ul>")
        elif lines:
            parts.append(f"<p>{' '.join(lines)}</p>")
    return "".join(parts)


class Names:
    """What an item is called in the questions, and whether it is one that they name."""

    def __init__(self, index: Index, folder: Path) -> None:
        self._index = index
        self._files = {document.doc_id: document.filename for document in index.documents.list()}
        self._code = f"{folder / 'code'}{os.sep}"
        log = _git("log", "--format=%H %s", where=folder / "code" / "ctx").stdout
        self._subjects = dict(text.split(" ", 1) for text in log.splitlines() if " " in text)
        self._pages: dict[str, list[str]] = {}
        for path in sorted((folder / "documents").glob("*.pdf")):
            with pymupdf.open(path) as document:
                self._pages[path.name] = [plain(page.get_text()) for page in document]
        self.of_document = {name: len(pages) for name, pages in self._pages.items()}

    def of(self, ref: str) -> str:
        kind, _, key = ref.partition(":")
        if kind == "page":
            doc_id, _, page = key.partition("#")
            return f"page:{self._files[doc_id]}#{page}"
        if kind == "code":
            return f"code:{key.removeprefix(self._code)}"
        if kind == "commit":
            return f"commit:{self._subjects[key]}"
        if kind == "value":
            return f"experience:{self._index.experiences.value(key).experience}"
        return ref.partition("#")[0]  # an experience has a text for each axis

    def is_named(self, name: str, wanted: str) -> bool:
        """Whether an item is what a need, or a line of what is useful, names."""
        if not wanted.startswith("page:"):
            return fnmatchcase(name, wanted)
        file, _, words = wanted.removeprefix("page:").partition("|")
        on = [number for number, text in enumerate(self._pages[file], 1) if words in text]
        if not on:
            raise ValueError(f"no page of {file} says {words!r}")
        return name in {f"page:{file}#{number}" for number in on}

    def given(self, question: Question, found: Sequence[tuple[str, float, int]], text: str) -> Given:
        """Of refs with their scores and tokens."""
        wanted = (*question.needs, *question.useful)
        named = [(self.of(ref), score, tokens) for ref, score, tokens in found]
        items = [
            Shown(name, score, tokens, any(self.is_named(name, each) for each in wanted))
            for name, score, tokens in named
        ]
        there = [need for need in question.needs if any(self.is_named(item.name, need) for item in items)]
        missing = [need for need in question.needs if need not in there]
        return Given(items, there, missing, [need for need in there if need.partition("|")[2] not in plain(text)])


def plain(text: str) -> str:
    """Text as it is compared: without marks of markdown, ligatures and line breaks."""
    return " ".join(unicodedata.normalize("NFKC", re.sub(r"[*_\\]", "", text)).split())


def _context(index: Index, names: Names, question: Question) -> Given:
    found = index.context(question.query, CONTEXT_TYPES, max_tokens=TOKENS)
    items = [(item.ref, item.score, index.counter.count(item.content)) for item in found.items]
    return names.given(question, items, found.markdown)


def _package(index: Index, names: Names, question: Question) -> Given:
    found = index.packages.build({"intent": question.query, "tokenBudget": TOKENS})
    items = [(source.ref, source.score, source.tokens) for source in found.sources]
    return names.given(question, items, found.content)


def _ask(index: Index, names: Names, question: Question) -> Answered:
    found = index.ask(question.query, types=ASKED)
    counted = [(each.ref, each.relevance_score, index.counter.count(each.markdown_content)) for each in found.sources]
    sources = names.given(question, counted, found.formatted_text).items
    level, value = (found.confidence.level, found.confidence.value) if found.confidence else ("none", 0.0)
    quotes = [quote.text for quote in found.quotes]
    said = plain(" ".join([*quotes, *(each.markdown_content for each in found.sources[:1])]))
    if not sources or level == "none":
        verdict = "nothing"
    elif question.answer:
        verdict = "right" if all(words in said for words in question.answer) else "wrong"
    else:
        verdict = "right" if any(names.is_named(sources[0].name, need) for need in question.needs) else "wrong"
    before = said.partition(question.answer[0])[0] if question.answer else ""
    stale = verdict != "nothing" and any(words in before for words in question.stale)
    return Answered(verdict, level, value, sources, quotes, stale)


def _tell(asked: Sequence[Question], given: Mapping[str, Mapping[str, Given]], answers: Mapping[str, Answered]) -> None:
    answerable, others = ([q for q in asked if bool(q.needs) is some] for some in (True, False))
    needs = sum(len(question.needs) for question in answerable)
    for way, of in given.items():
        there = sum(len(of[question.qid].there) for question in answerable)
        cut = sum(len(of[question.qid].cut) for question in answerable)
        whole = sum(not of[question.qid].missing for question in answerable)
        line(
            f"{way}: needs that are there", f"{there} of {needs}", f"{there / needs:.2f}; {cut} cut before their words"
        )
        line(f"{way}: questions with all of them", f"{whole} of {len(answerable)}")
        for kind in ("page", "code", "commit", "memory", "experience"):
            wanted = sum(need.startswith(f"{kind}:") for question in answerable for need in question.needs)
            have = sum(need.startswith(f"{kind}:") for question in answerable for need in of[question.qid].there)
            line(f"  {kind}", f"{have} of {wanted}")
        tokens, useful = (
            sum(getattr(of[question.qid], what) for question in answerable) for what in ("tokens", "useful")
        )
        each = f"{tokens / len(answerable):.0f} tokens a question, {useful / len(answerable):.0f} useful"
        line(f"{way}: share of useful tokens", f"{useful / max(1, tokens):.2f}", each)
        shown = [of[question.qid].tokens for question in others]
        mean = f"else {sum(shown) / max(1, sum(map(bool, shown))):.0f} tokens"
        line(f"{way}: empty where nothing answers", f"{shown.count(0)} of {len(others)}", mean)
    for what, of_them in (("with an answer", answerable), ("without one", others)):
        verdicts = [answers[question.qid] for question in of_them]
        counts = Counter(each.verdict for each in verdicts)
        levels = Counter(each.level for each in verdicts if each.verdict == "wrong")
        sure = ", ".join(f"{levels[level]} {level}" for level in ("high", "medium", "low"))
        told = f"nothing {counts['nothing']}, wrong {counts['wrong']} ({sure})"
        right = f"{counts['right']} right" if of_them is answerable else f"{counts['nothing']} honest"
        line(f"ask: {len(of_them)} questions {what}", right, told)
    dated = [question for question in answerable if question.stale]
    stale = sum(answers[question.qid].stale for question in dated)
    line("ask: what is out of date stands before the answer", f"{stale} of {len(dated)}")


def _told_at_length(
    asked: Sequence[Question], given: Mapping[str, Mapping[str, Given]], answers: Mapping[str, Answered]
) -> Iterator[str]:
    for question in asked:
        yield f"\n# {question.qid} {question.query}"
        for way, of in given.items():
            one = of[question.qid]
            yield f"{way}: {len(one.there)} of {len(question.needs)} needs, {one.useful} of {one.tokens} tokens useful"
            yield from (f"    missing {need}" for need in one.missing)
            yield from (f"    cut     {need}" for need in one.cut)
            yield from map(_shown, one.items)
        answer = answers[question.qid]
        yield f"ask: {answer.verdict}{', stale' * answer.stale}, confidence {answer.level} {answer.value:.2f}"
        yield from (f"    quote: {plain(quote)[:160]}" for quote in answer.quotes[:3])
        yield from map(_shown, answer.sources[:5])


def _shown(item: Shown) -> str:
    return f"    {'+' if item.useful else '-'} {item.score:.2f} {item.tokens:5} {item.name[:140]}"
