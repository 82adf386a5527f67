"""Questions to each source with known answers, and about as many that nothing answers: what scores are fitted on.

All of it is our own: memories, experiences and questions of `data/` beside this file, the sample documents, and this
repository's code and history. A group is one person, one field of life, one document, one room of the code or one
stretch of the history; what is held apart is held apart by groups.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest import ingest, ingest_code
from research.encoders import TextEncoder, load_text_encoder
from research.errors import EncoderUnavailable
from research.evaluation import read_questions
from research.evaluation.questions import document_key
from research.index import Index
from research.models import Question
from research.search import Evidence, FoundItem
from research.search.calibration import POOL
from research.settings import Settings
from research.sources import CodeSource, ExperiencesSource, ItemsSource, MemoriesSource
from research.sources.items import CommitsSource
from research.store import Catalog, IndexPaths, StoredItem
from tests.bench.commits import HERE, fill, head

OURS, DATA = Path(__file__).parent / "data", HERE / "data"
DEPTH = POOL
_PLACES = {
    "ingest": ("ingest",),
    "search": ("research/search", "research/answer"),
    "others": ("research/governance", "research/conversation", "research/experiences"),
    "all": ("cli", "ingest", "research"),
}
_NOBODY = "nobody"  # whose are the questions that belong to no group; they are never held apart

Right = frozenset[str]
Entry = tuple[str, str, Right]
"""A question with its group and the names of what answers it, none for nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a group, and what came of it: the evidence of each item, best first, and whether it is right."""

    source: str
    situation: str
    group: str
    text: str
    searched: int
    answered: bool  # whether anything there is right
    found: tuple[tuple[Evidence, bool], ...]


def everything() -> Iterator[Asked]:
    encoder = load_text_encoder()
    with tempfile.TemporaryDirectory() as folder:
        for ask in (_memories, _experiences, _documents, _code, _commits):
            yield from ask(Path(folder) / ask.__name__, encoder)


def _nothing(*_: object) -> TextEncoder:
    raise EncoderUnavailable("not wanted")


def _groups(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((OURS / name).read_text("utf-8"))["group"]
    return found


def _entries(group: dict[str, Any], names: Sequence[str]) -> list[Entry]:
    """Its questions, each of which begins with the numbers of its answers."""
    asked = [entry.partition(" ") for entry in group["asked"]]
    return [(q, group["name"], Right(names[int(n) - 1] for n in numbers.split(","))) for numbers, _, q in asked]


def _unanswered(entries: Sequence[Entry], group: str, step: int) -> list[Entry]:
    """Some of another group's questions, asked of this one."""
    return [(text, group, Right()) for text, _, _ in entries[::step]]


def _memories(root: Path, encoder: TextEncoder) -> Iterator[Asked]:
    """One person's memories alone, among forty of others, and among all there are; conversations, each alone, and all
    of them as if two people had had them."""
    with Index(root) as index:
        for tenant, asked in [*_lives(index), *_talks(index)]:
            while index.memories.maintain(tenant=tenant):
                pass
            with index.catalog.snapshot() as reader:
                for situation, wanted in (("vectors", lambda _: encoder), ("words", _nothing)):
                    source = MemoriesSource(wanted)
                    for text, group, right in asked:
                        found = source.find(reader, tenant, text, DEPTH)
                        rows = tuple((each.evidence, memory.text in right) for _, memory, each in found.ranked)
                        yield Asked("memories", situation, group, text, found.searched, bool(right), rows)


def _lives(index: Index) -> Iterator[tuple[str, list[Entry]]]:
    """Each tenant with what it is asked."""
    people, chance = _groups("lives.toml"), random.Random(7)
    lessons = [text.rpartition(" | ")[2] for field in _groups("trials.toml") for text in field["told"]]
    for person in people:
        others = [text for each in people if each is not person for text in each["told"]]
        foreign = [entry for each in people if each is not person for entry in _entries(each, each["told"])]
        own = [*_entries(person, person["told"]), *((text, person["name"], Right()) for text in person["nothing"])]
        for more in ([], chance.sample(others, 40), others + lessons):
            tenant = f"{person['name']} {len(more)}"
            index.memories.remember_batch([{"text": text} for text in [*person["told"], *more]], tenant=tenant)
            yield tenant, own if more else own + _unanswered(foreign, person["name"], 8)


def _talks(index: Index) -> Iterator[tuple[str, list[Entry]]]:
    talks = _groups("talks.toml")
    for names in ("own", "Ann and Bob"):
        asked: list[Entry] = []
        for talk in talks:
            tenant = talk["name"] if names == "own" else names
            renamed = dict(zip(talk["name"].split(" and "), tenant.split(" and "), strict=True))
            lines = [_renamed(text, renamed) for text in talk["told"]]
            told = [text.partition(": ")[2] for text in lines if text != "--"]
            sessions = [f"{talk['name']} {lines[:at].count('--')}" for at, text in enumerate(lines) if text != "--"]
            speakers = [text.partition(": ")[0] for text in lines if text != "--"]
            said = zip(told, speakers, sessions, strict=True)
            index.memories.remember_batch([{"text": a, "speaker": b, "session": c} for a, b, c in said], tenant=tenant)
            own = [(_renamed(text, renamed), group, right) for text, group, right in _entries(talk, told)]
            own += [(_renamed(text, renamed), talk["name"], Right()) for text in talk["nothing"]]
            foreign = [entry for each in talks if each is not talk for entry in _entries(each, ["?"] * 99)]
            if names == "own":
                yield tenant, own + _unanswered(foreign, talk["name"], 4)
            asked += own
        if names != "own":
            yield names, asked


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for old, new in names.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


def _experiences(root: Path, encoder: TextEncoder) -> Iterator[Asked]:
    """Those of one field of life alone, those of data/, and all together."""
    names = ("goal", "hypothesis", "action", "prediction", "outcome", "outcome_result", "lesson")
    sets: dict[str, tuple[list[dict[str, Any]], list[Entry]]] = {}
    for group in _groups("trials.toml"):
        told = [dict(zip(names, text.split(" | "), strict=True)) for text in group["told"]]
        ids = [f"{group['name']}-{number}" for number in range(1, len(told) + 1)]
        sets[group["name"]] = (
            [{"id": id, "domain": "other", "strategy": "other", **each} for id, each in zip(ids, told, strict=True)],
            _entries(group, ids),
        )
    ours = [each for each in _lines("experience_questions.jsonl") if each["axis"] in ("full", "root_cause")]
    entries = [(each["query"], each["experience"].partition("-")[0], Right([each["experience"]])) for each in ours]
    sets["software"] = (_lines("experiences.jsonl"), entries)
    for name in [*sets, "all"]:
        records = [each for own, _ in sets.values() for each in own] if name == "all" else sets[name][0]
        own = [each for _, entries in sets.values() for each in entries] if name == "all" else sets[name][1]
        others = [each for other, (_, entries) in sets.items() if other != name for each in entries]
        far = _unanswered(others, name, max(1, len(others) // len(own))) if name != "all" else _far("all")
        with Index(root / name) as index:
            index.experiences.put(records)
            while index.experiences.embed():
                pass
            yield from _items(index.catalog, ExperiencesSource, encoder, [*own, *far], lambda each: each.item.parent)


def _far(group: str) -> list[Entry]:
    """What no software, no trade and no document of ours answers: questions about other people's lives."""
    lives = [text for person in _groups("lives.toml") for text in (*(e[0] for e in _entries(person, person["told"])),)]
    return [(text, group, Right()) for text in lives]


def _documents(root: Path, encoder: TextEncoder) -> Iterator[Asked]:
    """Three sets of documents, each with its own questions and those of the others; and all of them together."""
    files = sorted((DATA / "no-harm" / "pdfs").glob("*.pdf"))
    sets = {
        "samples": (sorted((DATA / "samples").glob("*.pdf")), "questions.jsonl"),
        "first": (files[::2], "no-harm/questions.jsonl"),
        "second": (files[1::2], "no-harm/questions.jsonl"),
    }
    asked: dict[str, list[Entry]] = {}
    for name, (pdfs, questions) in sets.items():
        keys = {document_key(path.name) for path in pdfs}
        for question in read_questions(DATA / questions):
            right = Right(f"{document_key(document)} {page}" for document, page in question.gold)
            if {entry.rpartition(" ")[0] for entry in right} <= keys:
                group = min(right).rpartition(" ")[0].partition("-")[0]
                asked.setdefault(name, []).append((question.query, group, right))
    for name in [*sets, "all"]:
        pdfs = [path for each, _ in sets.values() for path in each] if name == "all" else sets[name][0]
        own = [each for entries in asked.values() for each in entries] if name == "all" else asked[name]
        others = [(text, group, Right()) for other, each in asked.items() if other != name for text, group, _ in each]
        with Index(root / name, Settings(images=False)) as index:
            ingest(index, pdfs)
            for mode, situation in (("text", "vectors"), ("lexical", "words"), ("dense", "dense")):
                for text, group, right in own + (_far(_NOBODY) if name == "all" else others):
                    with index.catalog.snapshot() as reader:
                        found = index.source.retrieve(reader, Question(text, mode=mode), DEPTH).items
                        searched = reader.pages.totals().pages
                    rows = []
                    for item in found:
                        cosine = item.legs["dense"].score if "dense" in item.legs else None
                        page = f"{document_key(str(item.metadata['filename']))} {item.ref.part}"
                        rows.append((Evidence(item.raw_score, cosine), page in right))
                    yield Asked("documents", situation, group, text, searched, bool(right), tuple(rows))


def _code(root: Path, encoder: TextEncoder) -> Iterator[Asked]:
    """Our code, all of it and its rooms: asked about what is there, what is only in another room, and what is not."""
    ours = tomllib.loads((OURS / "programming.toml").read_text("utf-8"))
    for name, rooms in _PLACES.items():
        with Index(root / name) as index:
            ingest_code(index, [HERE / room for room in rooms])
            with index.catalog.snapshot() as reader:
                known = {_name_of(item): _name_of(item) for item in reader.items.all(CodeSource.kind)}
            entries = _by_patterns(ours["code"], known) + _by_patterns(ours["nothing"], {})
            yield from _items(index.catalog, CodeSource, encoder, entries, lambda each: _name_of(each.item))


def _commits(root: Path, encoder: TextEncoder) -> Iterator[Asked]:
    """Our history, all of it and parts, asked as the code is."""
    ours = tomllib.loads((OURS / "programming.toml").read_text("utf-8"))
    history = head(HERE)[::-1]  # the oldest first: what comes anew leaves the parts as they are
    for part in (history, history[::4], history[1::12]):
        known = {each.sha: each.message for each in part}
        entries = _by_patterns(ours["commits"], known) + _by_patterns(ours["nothing"], {})
        with Catalog(IndexPaths(root / str(len(part))), writable=True) as catalog:
            fill(catalog, encoder, part, subjects=True)
            yield from _items(catalog, CommitsSource, encoder, entries, lambda each: each.item.key)


def _by_patterns(told: Sequence[str], known: Mapping[str, str]) -> list[Entry]:
    """Questions with what fits their patterns. Each is a group of its own: of thirds, one is held apart."""
    entries = []
    for number, entry in enumerate(told):
        pattern, _, text = entry.rpartition(" => ")
        right = Right(name for name, said in known.items() if pattern and re.search(pattern, said, re.IGNORECASE))
        entries.append((text, f"question {number}", right))
    return entries


def _name_of(item: StoredItem) -> str:
    return f"{item.parent.removeprefix(str(HERE))} {item.metadata['qualified_name']}"


def _items(
    catalog: Catalog,
    kind: type[ItemsSource],
    encoder: TextEncoder,
    asked: Sequence[Entry],
    name_of: Callable[[FoundItem], str],
) -> Iterator[Asked]:
    with catalog.snapshot() as reader:
        for situation, wanted in (("vectors", lambda _: encoder), ("words", _nothing)):
            source = kind(wanted)
            for text, group, right in asked:
                found = source.find(reader, text, DEPTH)
                rows = tuple(
                    (Evidence(each.total, each.parts.get("vectors")), name_of(each) in right) for each in found.items
                )
                yield Asked(source.name, situation, group, text, found.searched, bool(right), rows)


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in (DATA / name).read_text("utf-8").splitlines()]
