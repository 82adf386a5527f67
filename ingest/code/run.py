"""A run: source files → pieces → the catalog → vectors.

Only files that changed are read, each in a process apart. A file's pieces are put in place of those it had in one
transaction, and can be found by their words from then on; pieces that stayed the same keep their vectors. Source files
that are gone are told; those no longer taken (ignored by now, grown too large, passed over) go. Stopped anywhere, the
next run goes on there.
"""

from __future__ import annotations

import os
import re
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ingest.code.find import BEYOND, SourceFile, find_code, no_code
from ingest.code.parse import CLASSES, check_installed
from ingest.code.units import ReadFile, Unit
from ingest.encoder import RunEncoder, embed_items, encoder_for_items
from ingest.jobs import CodeRead, Failed, Job, Task
from ingest.pool import LIMITS, Limits, Pool
from ingest.report import CodeCounts, FileOutcome, IngestSummary, Observer
from ingest.run import HasPaths, finish, in_good_order, report_scan, resolved
from ingest.scan import Scanned, folder_above, removable, to_utf8
from ingest.stages import update_graph_of
from research.encoders import DEFAULT, usable_cores
from research.settings import Settings
from research.store import PART, Catalog, IndexPaths, ItemParent, NewItem, ParentItems, found_at, ledger, write_lock

KIND = "code"
READER = 2
"""To be raised whenever files would be read otherwise: all are then read again."""

_ITEMS_AT_ONCE, _FILES_AT_ONCE = 128, 64  # of a transaction: short writes wait for it to end


@dataclass
class _Run:
    catalog: Catalog
    observer: Observer
    encoder: RunEncoder
    summary: IngestSummary = field(default_factory=lambda: IngestSummary(code=CodeCounts()))
    waiting: list[tuple[ParentItems, FileOutcome]] = field(default_factory=list)  # read, and not written yet

    @property
    def counts(self) -> CodeCounts:
        assert self.summary.code is not None
        return self.summary.code


def ingest_code(
    index: HasPaths | IndexPaths,
    paths: str | Path | Iterable[str | Path],
    *,
    settings: Settings | None = None,
    observer: Observer | None = None,
    wait: float = 0.0,
    follow_links: bool = False,
    retry: bool = False,
    prune: bool = False,
    limits: Mapping[Task, Limits] = LIMITS,
) -> IngestSummary:
    """Bring source code into an index: functions, classes and methods of the files in `paths`.

    Arguments and outcome are those of `ingest`; `summary.code` counts pieces. A file that fails never stops the others.
    Raises CtxError with the line to type if the extra `code` is not installed.
    """
    started = time.monotonic()
    check_installed()
    where, settings, given = resolved(index, settings, paths)
    told = observer or Observer()
    found = find_code(given, follow_links=follow_links)
    if found.empty and not (where.exists and _knows(where, given)):
        raise no_code(given, found)
    with write_lock(where, wait=wait), Catalog(where, writable=True) as catalog:
        run = _Run(catalog, told, encoder_for_items(catalog, settings, told, "code is"))
        with in_good_order(catalog, run.summary):
            report_scan(run, found)
            known = _known(catalog, given, found.files)
            _read(run, found.files, known, limits, retry=retry)
            _settle_gone(run, given, found, known, prune=prune)
            run.counts.embedded = embed_items(catalog, KIND, run.encoder, told)
            update_graph_of(catalog)
        run.counts.pending = len(catalog.items.without_vectors(KIND, run.encoder.name))
    run.summary.seconds = time.monotonic() - started
    return run.summary


def remove_paths(index: HasPaths | IndexPaths, paths: Sequence[Path]) -> list[tuple[str, int, int]]:
    """Take the code of files and folders out of an index, whether these are still there or not; they are not touched.
    Of each path how many files and pieces were removed."""
    where = index if isinstance(index, IndexPaths) else index.paths
    if not where.exists:
        raise where.nothing_found()
    removed: list[tuple[str, int, int]] = []
    with write_lock(where), Catalog(where, writable=True) as catalog:
        for path in paths:
            parents = [parent.parent for parent in catalog.items.parents(KIND, below=_stored(path))]
            removed.append((_stored(path), len(parents), _remove(catalog, parents)))
    return removed


def _knows(paths: IndexPaths, given: Sequence[Path]) -> bool:
    with Catalog(paths) as catalog:
        return any(catalog.items.count_parents(KIND, below=_stored(path)) for path in given)


def _known(catalog: Catalog, given: Sequence[Path], files: Sequence[SourceFile]) -> dict[str, ItemParent]:
    """What was read before of these paths, and of files that links lead to."""
    folders = {_stored(path) for path in given}
    folders |= {os.path.dirname(file.name) for file in files}  # noqa: PTH120
    tops = [each for each in folders if not any(str(above) in folders for above in Path(each).parents)]
    return {parent.parent: parent for top in tops for parent in catalog.items.parents(KIND, below=top)}


def _stored(path: Path) -> str:
    return to_utf8(os.path.normpath(path.absolute()))


def _read(
    run: _Run,
    files: Sequence[SourceFile],
    known: Mapping[str, ItemParent],
    limits: Mapping[Task, Limits],
    *,
    retry: bool,
) -> None:
    """Settle what is known, read the rest; every file is accounted for."""
    to_read: dict[Path, SourceFile] = {}
    for file in files:
        outcome = _settled(run, file, known.get(file.name), retry=retry)
        if outcome is None:
            to_read[Path(file.path)] = file
        elif outcome.result != "copy":
            finish(run, outcome)
    if not to_read:
        return
    run.observer.on_plan(len(to_read), sum(file.size for file in to_read.values()))
    output = run.catalog.paths.catalog
    jobs = (Job("code", path, "", output, DEFAULT) for path in to_read)
    with Pool(min(usable_cores(), len(to_read)), limits) as pool, run.encoder.loading():
        for event in pool.run(jobs):
            file = to_read[event.job.path]
            before = known.get(file.name)
            if isinstance(event, CodeRead):
                _take(run, file, event.file, before)
            elif isinstance(event, Failed):
                _fail(run, file, event, before)
    _write(run)


def _settled(run: _Run, file: SourceFile, before: ItemParent | None, *, retry: bool) -> FileOutcome | None:
    """What became of a file that is as it was; None if it must be read."""
    if before is None or before.stamp != _stamp(file):
        return None
    if reason := before.metadata.get("passed_over"):
        _pass_over(run, str(reason))
        return FileOutcome(before.parent, "copy")  # of no interest to anybody
    if code := before.metadata.get("failed"):
        if retry or (code == ledger.KILLED and int(before.metadata.get("tries", 1)) < 2):
            return None
        reason = f"{before.metadata.get('reason', '')}, in an earlier run; it was not tried again"
        return FileOutcome(before.parent, "failed", code=str(code), reason=reason)
    return FileOutcome(before.parent, "unchanged")


def _take(run: _Run, file: SourceFile, read: ReadFile, before: ItemParent | None) -> None:
    """Keep what was read until enough is there for a transaction."""
    metadata = {"sha256": read.sha256, "language": read.language, "root": to_utf8(file.root)}
    if read.passed_over:
        _pass_over(run, read.passed_over)
        metadata["passed_over"] = read.passed_over
    run.counts.units += len(read.units)
    run.counts.syntax_errors += read.has_errors
    run.counts.secrets += read.secrets
    warnings = ("it defines more than is taken of one file",) if read.cut else ()
    items = list(items_of(read.units, file))
    same = before is not None and before.metadata == metadata and before.stamp.endswith(f":{READER}")
    result = "unchanged" if same else "added" if before is None else "replaced"
    outcome = FileOutcome(file.name, result, warnings=warnings)  # type: ignore[arg-type]
    if len(items) > _ITEMS_AT_ONCE:  # these are a transaction of their own
        _write(run)
    run.waiting.append((ParentItems(file.name, _stamp(file), items, metadata), outcome))
    if len(run.waiting) >= _FILES_AT_ONCE or sum(len(each.items) for each, _ in run.waiting) >= _ITEMS_AT_ONCE:
        _write(run)


def _fail(run: _Run, file: SourceFile, event: Failed, before: ItemParent | None) -> None:
    """Noted with the file, so that it is not waited for in every run; what was read of it before is out of date."""
    tries = event.tries + (int(before.metadata.get("tries", 0)) if before and before.stamp == _stamp(file) else 0)
    metadata = {"failed": event.code, "reason": event.reason, "tries": tries}
    outcome = FileOutcome(file.name, "failed", code=event.code, reason=event.reason)
    run.waiting.append((ParentItems(file.name, _stamp(file), [], metadata), outcome))


def _write(run: _Run) -> None:
    waiting, run.waiting = run.waiting, []
    if waiting:
        run.catalog.items.put_parents(KIND, [parent for parent, _ in waiting])
    for parent, outcome in waiting:
        if "passed_over" not in parent.metadata:
            finish(run, outcome)


def _stamp(file: SourceFile) -> str:
    return f"{file.stamp}:{READER}"


def _pass_over(run: _Run, reason: str) -> None:
    run.summary.passed_over[reason] = run.summary.passed_over.get(reason, 0) + 1


def _settle_gone(
    run: _Run, given: Sequence[Path], found: Scanned[SourceFile], known: Mapping[str, ItemParent], *, prune: bool
) -> None:
    """Tell what is gone from the folders given; with `prune` the index forgets it. What is there and no longer taken
    goes at once: it would be found as it was."""
    folders = [f"{to_utf8(os.path.normpath(path.absolute())).rstrip('/')}/" for path in given if path.is_dir()]
    taken = {file.name for file in found.files}
    unseen = tuple(f"{to_utf8(path).rstrip('/')}/" for path, _ in found.unreadable)
    left = [
        path
        for path in known
        if path not in taken and path.startswith(tuple(folders)) and not f"{path}/".startswith(unseen or "\0")
    ]
    there = {path for path in left if found_at(path) is not None}
    run.summary.gone = sorted(path for path in left if path not in there and folder_above(path))
    if not found.passed_over[BEYOND]:
        _remove(run.catalog, sorted(there))
    if not prune:
        return
    run.counts.removed, run.summary.empty_folders = removable(run.summary.gone, {})
    _remove(run.catalog, run.counts.removed)


def _remove(catalog: Catalog, parents: Sequence[str]) -> int:
    """Take the pieces of files out of the index; return how many there were."""
    parts = (parents[start : start + _FILES_AT_ONCE] for start in range(0, len(parents), _FILES_AT_ONCE))
    return sum(catalog.items.remove_parents(KIND, part) for part in parts)


# The outline of a class has something of every question to its methods, and a module of every one to the file.
_CLASSES = -0.05
_PRIORS = {"module": -0.2}
# A test has the words of what it tests, and more of them. From here on it hardly stands before that; flat beyond.
_TESTS = -0.2
OF_TESTS = re.compile(
    r"(?i:(?:^|/)(?:tests?|__tests__)/|(?:^|/)(?:test_|conftest\.)[^/]*$|[._-](?:unit)?(?:test|spec)s?\.\w+$)"
    r"|[a-z0-9]Tests?\.\w+$"  # RetryTest.java
)
_SEEN = 500  # characters of code that an encoder sees: about 150 tokens
_ANNOTATION = re.compile(r":\s*\"?[A-Z][A-Za-z\[\], .\"|]*(?=[,)=])")
_DOCSTRING_SEEN = 300
_MARKS = "\"'/*#! \t"  # around lines of a docstring or comment
_LONGEST_WORDS = 4_000
_MOST_CALLS, _MOST_IMPORTS = 40, 20

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Questions are asked in whole words; code is full of short ones. So an identifier is spelled out beside what is
# written, for full-text search and for the encoder: `getCharPos` is "get character position".
_SPELLING = tomllib.loads(Path(__file__).with_name("spelling.toml").read_text("utf-8"))
_IN_FULL = {
    short: words
    for entry in _SPELLING["short"].strip().replace("\n", "|").split("|")
    for short, _, words in [entry.partition(" ")]
}


def items_of(units: Iterable[Unit], file: SourceFile) -> Iterator[NewItem]:
    """Make items of the units of a file. What it defines twice under one name is counted in the key."""
    seen: Counter[str] = Counter()
    for unit in units:
        name = "" if unit.type == "module" else unit.qualified_name
        seen[name] += 1
        part = name if seen[name] == 1 else f"{name}@{seen[name]}"
        yield _item(unit, file, f"{file.name}#{part}" if part else file.name)


def _item(unit: Unit, file: SourceFile, key: str) -> NewItem:
    path = to_utf8(file.file_path)
    modified = datetime.fromtimestamp(min(max(file.modified, 0.0), 32_503_680_000.0), UTC)
    is_test = OF_TESTS.search(path) is not None
    return NewItem(
        key=key,
        title=unit.name,
        text=unit.text,
        created_at=modified.isoformat(timespec="seconds"),
        metadata={
            "file_path": path,
            "start_line": unit.start_line,
            "end_line": unit.end_line,
            "language": file.language,
            "qualified_name": unit.qualified_name,
            "name": unit.name,
            "unit_type": unit.type,
            "signature": unit.signature,
            "docstring": unit.docstring,
            "calls": list(unit.calls[:_MOST_CALLS]),
            "imports": list(unit.imports[:_MOST_IMPORTS]),
        },
        words=_words(unit, path),
        embedded=f"{_name(unit, path)}{PART}{_seen(unit, path)}",
        prior=_PRIORS.get(unit.type, _CLASSES if unit.type in CLASSES else 0.0) + (_TESTS if is_test else 0.0),
    )


def _words(unit: Unit, path: str) -> str:
    """Where it stands, and its name in whole words where it is written in short ones."""
    above = apart(unit.qualified_name.rpartition(".")[0])
    short = [_IN_FULL[word] for word in apart(unit.qualified_name).split() if word in _IN_FULL]
    special = spelled(unit.name) if unit.name.startswith("__") else ""
    return " ".join(filter(None, (above, _path_words(path), *short, special)))[:_LONGEST_WORDS]


def _name(unit: Unit, path: str) -> str:
    """What it is called in whole words, with its class, or without one the file."""
    above = unit.qualified_name.split(".")[:-1] if unit.type not in ("module", "text") else []
    around = spelled(" ".join(above) if above else _path_words(path).rpartition(" ")[2])
    return f"{around} {spelled(unit.name)}".strip()[:_SEEN] or unit.name


def _seen(unit: Unit, path: str) -> str:
    """Name, docstring, and the beginning of the code without it and without types.

    Measured: the name in whole words with its class, a text of its own, is worth half of what the code says, and code
    beyond the first lines adds nothing (tests/bench/RETRIEVAL.md).
    """
    told = f"{' '.join(unit.docstring.split())[:_DOCSTRING_SEEN]}\n" if unit.docstring else ""
    said = {line.strip(_MARKS) for line in unit.docstring.split("\n")}
    lines = (line.strip() for line in _ANNOTATION.sub("", unit.text[: 4 * _LONGEST_WORDS]).split("\n"))
    body = "\n".join(line for line in lines if line and line.strip(_MARKS) not in said)
    return f"{_name(unit, path)}\n{told}{body}"[: _SEEN + len(told)]


def _path_words(path: str) -> str:
    """The words of a path, without its ending."""
    return apart(path.rsplit(".", 1)[0].removesuffix("__init__"))


def apart(name: str) -> str:
    """Split an identifier into its words, in small letters."""
    return " ".join(_CAMEL.sub(" ", re.sub(r"[\W_]+", " ", name)).lower().split())


def spelled(name: str) -> str:
    """Split an identifier into words and write short ones out."""
    if name in _SPELLING["special"]:
        return str(_SPELLING["special"][name])
    return " ".join(_IN_FULL.get(word, word) for word in apart(name).split())
