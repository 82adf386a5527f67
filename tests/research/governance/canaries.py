"""An index with something of every kind in which every text, title, file name and heading holds a word of its own, a
canary, and some hold what a redactor masks. Whoever finds a canary somewhere knows whose text has got there."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pymupdf

from ingest import Observer, ingest, ingest_code, ingest_commits
from research.index import Index
from research.settings import Settings
from research.store import IndexPaths, NewItem
from tests.ingest.commits import git_making

CANARY = re.compile(r"zq[0-9][a-z0-9]{4}")
NAME = "index-of-canaries"
TENANT = "eva"


class Words:
    """Canaries and secrets, none of them twice, the same in every run."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self) -> str:
        self._number += 1
        return f"zq{self._number % 10}{self._number * 7919 % 9973:04d}"

    def mail(self) -> str:
        return f"{self()}@saltmarsh.example"

    def card(self) -> str:
        self._number += 1
        return with_luhn(f"4539{self._number * 7919 % 9973:04d}{self._number:07d}")

    def iban(self) -> str:
        self._number += 1
        bban = f"37040044{self._number * 7919:010d}"
        return f"DE{98 - int(f'{bban}131400') % 97:02d}{bban}"

    def phone(self) -> str:
        self._number += 1
        return f"+49 30 {self._number * 7919 % 900000 + 100000}"


def with_luhn(digits: str) -> str:
    doubled = sum(sum(divmod(int(each) * (2 if at % 2 == 0 else 1), 10)) for at, each in enumerate(digits[::-1]))
    return f"{digits}{-doubled % 10}"


def _pdf(path: Path, pages: Sequence[tuple[str, str]]) -> None:
    """Pages of headings, one a line, and a text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pymupdf.open() as document:
        for heading, text in pages:
            page = document.new_page()
            for at, line in enumerate(heading.split("\n")):
                page.insert_text((72, 80 + 40 * at), line, fontsize=22 - 4 * at, fontname="hebo")
            page.insert_textbox(pymupdf.Rect(72, 150, 520, 760), text, fontsize=11)
        document.save(path)


def fill(root: Path) -> None:
    """The index in this folder, from files beside it; what was written as a secret is kept with it."""
    w, files, secrets = Words(), root.with_name("canaries"), []

    def secret(value: str) -> str:
        secrets.append(value)
        return value

    filler = " ".join(f"Day {day} was quiet and the gates were shut before noon." for day in range(1, 25))
    about = "the feeding of walrus at the pool and the upload of its figures"
    _pdf(
        files / w() / f"{w()}-salaries.pdf",
        [
            (f"Wages {w()}\nKeepers {w()}",
             f"On {w()}, {about}. Write to {secret(w.mail())} or call {secret(w.phone())}.\n\n{filler}\n\n"
             f"The keeper {w()} told everybody who asked about the herring and the pool of {w()} that this one"),
            ("", f"sentence of {w()} runs on to the next page and ends here. More on {w()} and {about}, see page 3.\n\n"
             f"{filler}"),
            (f"Bonus {w()}", f"Paid to {secret(w.iban())} for {w()}, {about}. It is as page 1 says of {w()}."),
        ],
    )  # fmt: skip
    _pdf(
        files / w() / f"{w()}-whales.pdf",
        [
            (f"Whales {w()}", f"Whales of {w()} and walrus feeding {w()}: a herring at noon, {w()} uploads later."),
            (f"Costs {w()}", f"The card {secret(w.card())} paid for {w()}; the walrus got {w()}, {about}."),
        ],
    )
    _pdf(
        files / w() / f"{w()}-notes-2024.pdf", [(f"Old {w()}", f"Notes on {w()}: {about}. The upload is late, {w()}.")]
    )
    _pdf(
        files / w() / f"{secret(w.mail())} notes-2025.pdf",
        [(f"New {w()} by {secret(w.mail())}", f"Notes on {w()}: {about}. The upload is {w()}.")],
    )
    assert not ingest(IndexPaths(root), [files], settings=Settings(), observer=Observer()).failed
    ingest_commits(IndexPaths(root), _repository(files / "app", w, secret))
    (files / "app" / "feeding.py").write_text(
        f'"""Feeding {w()}."""\n\n\ndef feed_walrus(herring: int) -> int:\n    """Feed a walrus {w()} at the pool; ask'
        f' {secret(w.mail())}."""\n    return upload_figures(herring)\n\n\ndef upload_figures(figures: int) -> int:\n'
        f'    """Upload the figures {w()} of a walrus."""\n    return figures + len("{w()}")\n'
    )
    ingest_code(IndexPaths(root), files / "app" / "feeding.py")
    with Index.open(root) as index:
        for tenant in ("", TENANT):
            index.memories.remember(
                f"The walrus {w()} likes herring at the pool", tenant=tenant, tags=["zoo"], category=f"c{w()}"
            )
            index.memories.remember(
                f"Mail {secret(w.mail())} about the upload {w()} of walrus figures", tenant=tenant, session="s", key=w()
            )
            index.memories.remember(f"Feeding at the pool is {w()} and upload later", tenant=tenant, speaker=f"n{w()}")
        for name, tags in (("whales", ["open", "zoo"]), ("notes-2024", ["old"]), ("notes-2025", ["zoo"])):
            index.documents.tag(f"*{name}.pdf", *tags)
        index.experiences.put([_experience(w, secret, number) for number in range(3)])
        [told, *_] = index.experiences.list()
        value = NewItem("val", "", f"A walrus {w()} uploads herring", metadata={"experience": told.id, "axis": "full"})
        index.catalog.items.put("value", "full", "1", [value], short=True)
        index.graph.update()
    (root.with_name("secrets.json")).write_text(json.dumps(secrets))


def _experience(w: Words, secret: object, number: int) -> dict[str, str]:
    ask = f" ask {secret(w.mail())}" if number == 1 else ""  # type: ignore[operator]
    return {
        "goal": f"Find why the upload {w()} of walrus figures stops",
        "hypothesis": f"The pool {w()} is at fault{ask}",
        "action": f"Logged every herring {w()}",
        "prediction": f"The log shows a refused upload {w()}",
        "domain": "debugging",
        "strategy": "read-the-error",
        "outcome": "falsified",
        "outcome_result": f"The pool {w()} was not the reason",
        "surprise": f"The walrus {w()} had closed the connection",
        "root_cause": f"An idle limit of the pool {w()} that nobody knew of",
        "lesson": f"Read the log {w()} of the other side first",
    }


def _repository(folder: Path, w: Words, secret: object) -> Path:
    made = git_making.Made(folder)
    for at, ask in enumerate(("", f", as {secret(w.mail())} said")):  # type: ignore[operator]
        name = f"{w()}.txt"
        message = f"Upload the walrus figures {w()} anew{ask}\n\nThe pool {w()} was asked too often."
        made.commit(message, {name: f"walrus {at}\n"})
    return folder


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that a policy decides about, as the test sees it. `names`: canaries of its title, file and folder;
    `texts`: of its text; `secrets`: what a redactor has to mask in it."""

    ref: str
    kind: str
    targets: tuple[str, ...]
    """What labels are kept under, that hold for it."""
    paths: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    tenant: str = ""
    names: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    maskable: bool = False
    """Whether there is something to mask in its text, so that the rest of it may be seen."""


@dataclass(frozen=True, slots=True)
class Corpus:
    things: dict[str, Thing] = field(default_factory=dict)

    @property
    def everything(self) -> frozenset[str]:
        return frozenset().union(*(each.names | each.texts | each.secrets for each in self.things.values()))


def read_corpus(root: Path) -> Corpus:
    """Everything there is, read past all that governs."""
    secrets = frozenset(json.loads(root.with_name("secrets.json").read_text()))
    things: list[Thing] = []

    def thing(ref: str, targets: Iterable[str], *texts: str, names: str = "", **rest: object) -> None:
        text = "\n".join(texts)
        held = frozenset(each for each in secrets if each in text or each in names)
        hidden = {canary for each in held for canary in CANARY.findall(each)}
        named = frozenset(CANARY.findall(names)) - hidden
        words = frozenset(CANARY.findall(text)) - hidden - named
        all_targets = tuple(dict.fromkeys((ref, *targets)))
        maskable = any(each in text for each in held)
        things.append(
            Thing(
                ref,
                ref.partition(":")[0],
                all_targets,
                names=named,
                texts=words,
                secrets=held,
                maskable=maskable,
                **rest,  # type: ignore[arg-type]
            )
        )

    with Index(root) as index:
        for info in index.documents.list():
            lasting = f"document:{info.file_id}"
            names = f"{info.title} {info.filename} {info.source_path}"
            rest = {"names": names, "paths": (info.source_path,), "tags": frozenset(index.documents.tags(info.doc_id))}
            thing(f"document:{info.doc_id}", [lasting], **rest)
            for number in range(1, info.num_pages + 1):
                text = index.documents.page(info.doc_id, number).item.text
                thing(f"page:{info.doc_id}#{number}", [f"page:{info.file_id}#{number}", lasting], text, **rest)
    with sqlite3.connect(root / "catalog.sqlite3") as catalog:
        for tenant, name, tags, *told in catalog.execute(
            "SELECT tenant, id, tags, text, category, speaker, key FROM memories"
        ):
            thing(f"memory:{name}", (), *told, tags=frozenset(json.loads(tags)), tenant=tenant)
        whole: dict[str, list[str]] = {}
        for kind, parent, key, title, text, metadata in catalog.execute(
            "SELECT kind, parent, key, title, text, metadata FROM items"
        ):
            facts, told = json.loads(metadata), [title, text, metadata]
            folder = parent.removesuffix("/.git")
            paths = (folder, *(f"{folder}/{file}" for file in facts.get("files_changed", ())))
            made_from = [f"experience:{facts['experience']}"] if kind == "value" else []
            if kind == "experience":  # its axes go by its own ref
                whole.setdefault(parent, []).extend(told)
                continue
            thing(f"{kind}:{key}", [f"{kind}:{parent}", *made_from], *told,
                  paths=paths if kind in ("code", "commit") else ())  # fmt: skip
        for parent, told in whole.items():
            thing(f"experience:{parent}", (), *told)
    return Corpus({each.ref: each for each in things})
