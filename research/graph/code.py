"""Code in the graph: what pieces of code are called in their tree, and what they call and import."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from research.graph.documents import digest
from research.store.catalog.edges import CALLS, IMPORTS

_MOST_SUFFIXES = 6
# Methods of what every language has built in: a tree that defines one of them is seldom who is called.
_BUILT_IN = frozenset(
    """
    add all any append apply call clear clone close copy count create decode delete dict encode endswith execute exit
    extend fetchall fetchone filter find findall finditer flush float format forEach from get getattr group has hash
    index init insert int is isinstance items iter join keys len list lower main map match max min new next ok open
    parse pop print push put range read remove repr replace reverse round run save send set setup sort sorted split
    start startswith stop str strip sub sum super test text toString tuple type unwrap update upper values wait write
    zip
    """.split()  # noqa: SIM905 (one word a line would hide the list)
)
_PYTHON_FROM = re.compile(r"from\s+(\.*)([\w.]*)\s+import\s+(.+)")
_PYTHON_IMPORT = re.compile(r"import\s+(.+)")
_QUOTED = re.compile(r"[\"']([^\"']{1,200})[\"']")
_PATH = re.compile(r"[\w]+(?:(?:\.|::|/)\w+)+")
_NAME = re.compile(r"\w+")


def piece_names(root: str, metadata: Mapping[str, Any]) -> list[int]:
    """What a piece of code is called by others of its tree."""
    if metadata.get("unit_type") == "module":
        return []
    names = {str(metadata.get(key) or "") for key in ("name", "qualified_name")} - {""}
    return [digest("code", f"{root}\0{name}") for name in sorted(names)]


def file_names(root: str, file_path: str) -> list[int]:
    """How a file is imported: by its path in the tree, in dots, or by the end of it."""
    parts = _module_parts(file_path)
    ends = {".".join(parts[at:]) for at in range(min(len(parts), _MOST_SUFFIXES)) if at == 0 or len(parts) - at >= 2}
    return [digest("module", f"{root}\0{name}") for name in sorted(ends - {""})]


def piece_mentions(root: str, metadata: Mapping[str, Any]) -> list[tuple[int, int]]:
    """(kind, name) of what a piece calls and imports."""
    calls = [str(name) for name in metadata.get("calls") or ()]
    found = [(CALLS, digest("code", f"{root}\0{name}")) for name in calls if name not in _BUILT_IN]
    own = str(metadata.get("file_path") or "")
    for statement in metadata.get("imports") or ():
        found += [(IMPORTS, digest("module", f"{root}\0{name}")) for name in imported(str(statement), own)]
    return list(dict.fromkeys(found))


def imported(statement: str, file_path: str) -> Iterator[str]:
    """The modules that an import of a file may mean, in dots."""
    if match := _PYTHON_FROM.match(statement):
        dots, module, names = match.groups()
        base = _module_parts(file_path) if dots else []
        if dots and not file_path.endswith("__init__.py"):
            base = base[:-1]
        base = base[: len(base) - (len(dots) - 1)] if len(dots) > 1 else base
        path = ".".join([*base, *filter(None, module.split("."))])
        yield path
        yield from (f"{path}.{name}" for name in _NAME.findall(names)[:20] if name != "as")
    elif quoted := _QUOTED.search(statement):
        yield from _relative(quoted[1], file_path)
    elif match := _PYTHON_IMPORT.match(statement):
        for part in match[1].rstrip(";").split(",")[:20]:
            yield part.split(" as ")[0].strip().replace("::", ".").replace("/", ".")
    else:
        yield from (path.group().replace("::", ".").replace("/", ".") for path in _PATH.finditer(statement))


def _relative(path: str, file_path: str) -> Iterator[str]:
    """`./dates`, as JavaScript writes it; `util/text.h`, as C does."""
    if not path.startswith("."):
        yield ".".join(_module_parts(path))
        return
    parts = list(PurePosixPath(file_path).parent.parts)
    for part in PurePosixPath(path).parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    yield ".".join(_module_parts("/".join(parts)))


def _module_parts(file_path: str) -> list[str]:
    path = PurePosixPath(file_path)
    stem = path.name if path.name.startswith(".") else path.name.partition(".")[0]
    parts = [*path.parent.parts, stem]
    return [part for part in parts if part not in ("", ".", "/", "__init__", "index", "mod")]
