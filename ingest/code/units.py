"""Pieces of code: what is indexed of a file, each with its name, lines, signature, docstring, calls and imports."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ingest.code.definitions import Definition, Parsed

LONGEST = 20_000  # characters of a piece; of a longer one the beginning is kept
_LONGEST_MODULE = 8_000
_LEAST_MODULE = 40  # characters outside of all definitions that are worth finding
_LONGEST_SIGNATURE = 1_000
_LONGEST_DOCSTRING = 4_000
_MOST_IMPORTS = 40
_LINES, _CHARACTERS = 40, 2_000  # of a piece of a file that is not taken apart
CUT = "\n…"

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_COMMENT_MARKS = re.compile(
    r"^[ \t]*(?:///?!?|/\*+!?|\*+/|\*(?!/)|#+!?(?!\[)|--+|;+|<!--)[ \t]?|[ \t]*(?:\*+/|-->)[ \t]*$", re.M
)
_ATTRIBUTE = re.compile(r"^[ \t]*#!?\[.*$\n?", re.M)


@dataclass(frozen=True, slots=True)
class Unit:
    type: str  # function, method, class … ; module: what stands outside of these; text: some lines
    name: str
    qualified_name: str
    start_line: int
    end_line: int
    signature: str
    docstring: str
    text: str
    calls: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Unit:
        return cls(**{**fields, "calls": tuple(fields["calls"]), "imports": tuple(fields["imports"])})


def units_of(source: bytes, parsed: Parsed, language: str, module: str) -> list[Unit]:
    """The pieces of a file that was taken apart. `module` is what it is called itself."""
    statements = [(text, _bound(text)) for start, end in parsed.imports if (text := _one_line(source[start:end]))]
    units = [
        _unit(source, each, parsed.definitions, statements, language)
        for each in parsed.definitions
        if not each.is_scope and not _is_overload(source, each)
    ]
    rest = _module(source, parsed, module, [text for text, _ in statements])
    return [*([rest] if rest else []), *units]


def text_units(text: str, module: str) -> list[Unit]:
    """The pieces of any other file: some lines each, ending at an empty one where there is one."""
    lines = text.splitlines(keepends=True)
    units: list[Unit] = []
    start = 0
    while start < len(lines):
        end, size = start, 0
        while end < len(lines) and end - start < _LINES and (size := size + len(lines[end])) <= _CHARACTERS:
            end += 1
        end = max(end, start + 1)
        if end < len(lines):
            blank = next((n for n in range(end, start + _LINES // 2, -1) if not lines[n - 1].strip()), end)
            end = blank
        piece = "".join(lines[start:end])[:LONGEST]
        if piece.strip():
            name = f"{module}:{start + 1}-{end}"
            units.append(Unit("text", name, name, start + 1, end, "", "", piece.rstrip()))
        start = end
    return units


def _unit(
    source: bytes,
    each: Definition,
    definitions: Sequence[Definition],
    statements: Sequence[tuple[str, frozenset[str]]],
    language: str,
) -> Unit:
    docstring = _docstring(source, each, language) or _leading_comment(source, each)
    whole = _outline(source, each, definitions) if each.is_class else _decoded(source[each.comment_start : each.end])
    used = set(_IDENTIFIER.findall(whole))
    imports = [statement for statement, names in statements if names & used]
    return Unit(
        type=each.unit_type,
        name=each.name,
        qualified_name=each.qualified_name,
        start_line=each.first_row + 1,
        end_line=each.last_row + 1,
        signature=_signature(source, each),
        docstring=docstring[:_LONGEST_DOCSTRING],
        text=_shortened(_dedented(whole, _column(source, each.comment_start)), LONGEST),
        calls=tuple(each.calls),
        imports=tuple(imports[:_MOST_IMPORTS]),
    )


def _outline(source: bytes, whole: Definition, definitions: Sequence[Definition]) -> str:
    """A class without the bodies of its methods, which are pieces of their own."""
    parts: list[bytes] = []
    at = whole.comment_start
    for each in definitions:
        inside = whole.start <= each.start and each.end <= whole.end and each is not whole
        if inside and not each.is_class and each.body_start >= at and each.body_start >= 0:
            parts += [source[at : each.body_start], b"..."]
            at = each.body_end
    parts.append(source[at : whole.end])
    return _decoded(b"".join(parts))


def _module(source: bytes, parsed: Parsed, module: str, imports: Sequence[str]) -> Unit | None:
    """What stands outside of all definitions: constants, what a script does."""
    parts: list[bytes] = []
    at = 0
    taken = sorted([*((d.comment_start, d.end) for d in parsed.definitions if d.kind != "scope"), *parsed.imports])
    for start, end in taken:
        if start >= at:
            parts.append(source[at:start])
        at = max(at, end)
    parts.append(source[at:])
    text = re.sub(r"\n\s*\n+", "\n", _decoded(b"".join(parts))).strip()
    if len(text) < _LEAST_MODULE:
        return None
    last = source.count(b"\n") + (not source.endswith(b"\n"))
    return Unit(
        "module", module, module, 1, last, "", "", _shortened(text, _LONGEST_MODULE), (), tuple(imports[:_MOST_IMPORTS])
    )


def _is_overload(source: bytes, each: Definition) -> bool:
    """A signature only; the function itself comes after."""
    return (
        each.own_start > each.start
        and re.search(rb"@(?:\w+\.)?overload\b", source[each.start : each.own_start]) is not None
    )


def _signature(source: bytes, each: Definition) -> str:
    """Up to the body; what has none, its first line."""
    if each.body_start > each.own_start:
        text = _decoded(source[each.own_start : each.body_start])
    else:
        text = next(iter(_decoded(source[each.own_start : each.end]).splitlines()), "")
    return " ".join(text.split()).removesuffix("{").removesuffix("=>").rstrip()[:_LONGEST_SIGNATURE]


def _docstring(source: bytes, each: Definition, language: str) -> str:
    if language != "python" or each.body_start < 0:
        return ""
    body = _decoded(source[each.body_start : each.body_start + 4 * _LONGEST_DOCSTRING]).lstrip()
    for quote in ('"""', "'''", '"', "'"):
        beginning = re.match(rf"[rRbBuU]{{0,2}}{quote}", body)
        if beginning:
            end = body.find(quote, beginning.end())
            return inspect.cleandoc(body[beginning.end() : end if end > 0 else None])
    return ""


def _leading_comment(source: bytes, each: Definition) -> str:
    if each.comment_start >= each.start:
        return ""
    text = _ATTRIBUTE.sub("", _decoded(source[each.comment_start : each.start]))
    return inspect.cleandoc(_COMMENT_MARKS.sub("", text)).strip()


def _bound(statement: str) -> frozenset[str]:
    """The names by which code can use what a statement imports."""
    words = _IDENTIFIER.findall(statement)
    if not words:
        return frozenset()
    if words[0] == "from" and "import" in words:  # Python's
        return frozenset(words[words.index("import") + 1 :]) - {"as"}
    if words[0] == "import" and "from" in words:  # JavaScript's
        return frozenset(words[1 : words.index("from")]) - {"as", "type"}
    if words[0] == "import" and "as" in words:
        return frozenset({words[words.index("as") + 1 if words[-1] != "as" else 0]})
    if words[0] == "import" and not statement.rstrip().endswith(";"):
        return frozenset({words[1]}) if len(words) > 1 else frozenset()
    return frozenset(words[1:] if "{" in statement else words[-1:]) - {"self", "crate", "super"}


def _one_line(code: bytes) -> str:
    return " ".join(_decoded(code).split())[:300]


def _decoded(code: bytes) -> str:
    return code.decode("utf-8", "replace")


def _column(source: bytes, start: int) -> int:
    return start - source.rfind(b"\n", 0, start) - 1


def _dedented(text: str, column: int) -> str:
    """As if it stood at the beginning of a line."""
    first, *others = text.split("\n")
    return "\n".join([first, *(line[column:] if not line[:column].strip() else line.lstrip() for line in others)])


def _shortened(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return text[: text.rfind("\n", 0, most) if "\n" in text[:most] else most] + CUT
