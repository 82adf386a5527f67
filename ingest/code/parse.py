"""What a file defines, from its tree: functions, classes and methods with their full names, calls and imports.

`languages.toml` has the languages and how each is taken apart. A bracket that is never closed makes the parser give up
the rest of a file. People begin a definition at the beginning of a line: where a file has errors and such a line is the
beginning of nothing that was recognised, what follows is parsed by itself, up to the next such line.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from research.errors import CtxError

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Query

_TABLES = tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8"))
LANGUAGES: dict[str, dict[str, str]] = _TABLES["parsed"]  # those that are taken apart; all others are text by lines
_ENDINGS = {
    ending: name
    for name, endings in [*((name, each["endings"]) for name, each in LANGUAGES.items()), *_TABLES["by_lines"].items()]
    for ending in endings.split()
}

CLASSES = frozenset({"class", "struct", "interface", "trait", "enum", "type"})
_SCOPES = frozenset({"scope", "owner_scope"})
_KINDS = frozenset({"function", "method", "macro"}) | CLASSES | _SCOPES
# What stands around a definition and belongs to it: decorators, `export`, `template <…>`, `const f =`.
_WRAPPERS = frozenset(
    {
        "decorated_definition",
        "export_statement",
        "template_declaration",
        "lexical_declaration",
        "variable_declaration",
        "expression_statement",
    }
)
_MOST_CALLS = 40
_MOST_DEFINITIONS = 5000  # of a file; what has more was not written by people
_LONGEST_NAME = 200
_DEEPEST = 12  # names in a full name
_MOST_PARSED_APART = 500  # parts that are parsed by themselves


def language_of(filename: str) -> str:
    """Return what a file is written in, by its name; empty if that tells of no source code."""
    lowered = filename.lower()
    if lowered in _TABLES["names"]:
        return str(_TABLES["names"][lowered])
    stem, dot, ending = lowered.rpartition(".")
    return _ENDINGS.get(f".{ending}", "") if dot and stem else ""


def check_installed() -> None:
    """Raise if the grammars are not there, before anything is read."""
    for module in ("tree_sitter", "pathspec", *{language["module"] for language in LANGUAGES.values()}):
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise CtxError(
                f"reading code needs a package that is not installed ({module.replace('_', '-')})",
                hint="install it with: pip install 'ctx-research[code]'",
            ) from error


@cache
def grammar(name: str) -> tuple[Grammar, Query]:
    """Return a language's grammar and query."""
    from tree_sitter import Language, Query

    known = LANGUAGES[name]
    loaded = Language(getattr(importlib.import_module(known["module"]), known.get("function", "language"))())
    return loaded, Query(loaded, "".join(_TABLES["queries"][part] for part in known["queries"]))


@dataclass(slots=True)
class Definition:
    """One thing that a file defines, by its bytes in the file."""

    kind: str
    name: str
    start: int  # with what stands around it
    end: int
    own_start: int  # where it begins itself
    body_start: int  # -1 without a body
    body_end: int
    first_row: int
    last_row: int
    comment_start: int  # where the comment above it begins; `start` without one
    owner: str = ""
    parent: Definition | None = None
    calls: dict[str, None] = field(default_factory=dict)

    @property
    def is_class(self) -> bool:
        return self.kind in CLASSES

    @property
    def is_scope(self) -> bool:
        return self.kind in _SCOPES

    @property
    def names(self) -> list[str]:
        """From the outermost inwards."""
        own = [self.owner, self.name] if self.owner else [self.name]
        return own if self.parent is None else [*self.parent.names, *own]

    @property
    def qualified_name(self) -> str:
        return ".".join(self.names[-_DEEPEST:])

    @property
    def unit_type(self) -> str:
        above = self.parent
        holds_methods = above is not None and (above.is_class or above.kind == "owner_scope")
        return "method" if self.kind == "function" and (self.owner or holds_methods) else self.kind


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file taken apart."""

    definitions: Sequence[Definition]  # in the order of the file, outer ones first
    imports: Sequence[tuple[int, int]]
    quoted: Sequence[tuple[int, int]]  # strings and comments
    has_errors: bool
    cut: bool  # it defines more than is taken


def parse(source: bytes, language: str) -> Parsed:
    """Take a file apart; where it has errors, parse what was lost behind them by itself."""
    parsed = _parse(source, language, 0, len(source))
    return _recover(source, parsed, language) if parsed.has_errors else parsed


def _parse(source: bytes, language: str, start: int, end: int) -> Parsed:
    """Parse a part of a file that begins at the beginning of a line."""
    from tree_sitter import Parser, Point, QueryCursor, Range

    loaded, query = grammar(language)
    first, last = (Point(source.count(b"\n", 0, at), at - source.rfind(b"\n", 0, at) - 1) for at in (start, end))
    root = Parser(loaded, included_ranges=[Range(first, last, start, end)]).parse(source).root_node
    found: dict[tuple[int, int, str], Definition] = {}
    calls: list[tuple[int, str]] = []
    imports: list[tuple[int, int]] = []
    quoted: list[tuple[int, int]] = []
    for _, captures in QueryCursor(query).matches(root):
        kind = next((name for name in captures if name in _KINDS), "")
        if kind:
            made = _definition(kind, captures)
            if made is not None:
                found.setdefault((made.start, made.end, made.name), made)
        calls += [(node.start_byte, _text(node)) for node in captures.get("call", ())]
        imports += [(node.start_byte, node.end_byte) for node in captures.get("import", ())]
        for name in ("string", "comment"):
            quoted += [(node.start_byte, node.end_byte) for node in captures.get(name, ())]
    definitions = sorted(found.values(), key=_place)[:_MOST_DEFINITIONS]
    _nest(definitions, sorted(calls))
    cut = len(found) > len(definitions)
    return Parsed(definitions, sorted(imports), sorted(quoted), root.has_error, cut=cut)


def _recover(source: bytes, parsed: Parsed, language: str) -> Parsed:
    """Add to what was parsed of a file what was lost behind its errors."""
    begins = re.compile(rb"^(?:" + _TABLES["starts"][LANGUAGES[language]["starts"]].encode() + rb")", re.M)
    starts = [match.start() for match in begins.finditer(source)]
    claimed = {at for each in parsed.definitions for at in (each.start, each.own_start)}
    ends = dict(pairwise([*starts, len(source)]))
    lost = [at for at in starts if at not in claimed][:_MOST_PARSED_APART]
    more = [found for at in lost for found in _parse(source, language, at, ends[at]).definitions]
    begun = sorted({each.start for each in more} | claimed.intersection(starts))
    kept = [
        each if each.is_scope or (each.is_class and language != "python") else _ended(each, begun, source)
        for each in parsed.definitions
    ]
    known = {each.start for each in kept}
    definitions = sorted([*kept, *(each for each in more if each.start not in known)], key=_place)
    stack: list[Definition] = []
    for each in definitions:
        while stack and stack[-1].end <= each.start:
            stack.pop()
        each.parent = stack[-1] if stack else None
        stack.append(each)
    return replace(parsed, definitions=definitions)


def _place(each: Definition) -> tuple[int, int]:
    return each.start, -each.end


def _definition(kind: str, captures: dict[str, list[Node]]) -> Definition | None:
    [node, *_] = captures[kind]
    owner, name = _named(captures)
    if not name:
        return None
    body = _body(node)
    outer = node
    while outer.parent is not None and outer.parent.type in _WRAPPERS and outer.parent.parent is not None:
        outer = outer.parent
    return Definition(
        kind=kind,
        name=name,
        owner=owner,
        start=outer.start_byte,
        end=outer.end_byte,
        own_start=_own_start(node),
        body_start=body.start_byte if body else -1,
        body_end=body.end_byte if body else -1,
        first_row=outer.start_point[0],
        last_row=outer.end_point[0],
        comment_start=_comment_start(outer),
    )


def _own_start(node: Node) -> int:
    """Of `const f = …` the beginning is that of `const`."""
    parent = node.parent
    return parent.start_byte if parent is not None and parent.type.endswith("_declaration") else node.start_byte


def _named(captures: dict[str, list[Node]]) -> tuple[str, str]:
    """What a definition is of, if it stands outside of it, and its name."""
    if "declarator" in captures:
        written = _declared(captures["declarator"][0])
        owner, _, name = written.rpartition("::")
        return owner.replace("::", ".")[-_LONGEST_NAME:], name[:_LONGEST_NAME]
    owner = _text(captures["owner"][0]) if "owner" in captures else ""
    name = _text(captures["name"][0]).strip("\"'`#") if "name" in captures else ""
    return owner[:_LONGEST_NAME], name[:_LONGEST_NAME]


def _declared(node: Node) -> str:
    """The name that C hides behind pointers and brackets: `static char *(*name(int))[3]`."""
    at: Node | None = node
    for _ in range(40):
        if at is None or at.child_count == 0 or at.type in ("qualified_identifier", "operator_name", "destructor_name"):
            break
        at = at.child_by_field_name("declarator") or next(
            (child for child in at.named_children if child.type.endswith(("declarator", "identifier"))), None
        )
    return "" if at is None else "".join(_text(at).split())


def _body(node: Node) -> Node | None:
    body = node.child_by_field_name("body")
    if body is None:
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        body = None if value is None else value.child_by_field_name("body")
    return body


def _comment_start(node: Node) -> int:
    """Where the comments and attributes right above begin; no empty line may stand between."""
    start, row, before = node.start_byte, node.start_point[0], node.prev_sibling
    while before is not None and ("comment" in before.type or before.type == "attribute_item"):
        # A comment's end may be the line break after it.
        ends = before.end_point[0] - (before.end_point[1] == 0)
        if ends < row - 1 or _shares_line(before):
            break
        start, row, before = before.start_byte, before.start_point[0], before.prev_sibling
    return start


def _shares_line(comment: Node) -> bool:
    """One behind a statement tells of that."""
    before = comment.prev_sibling
    return before is not None and before.end_point[0] == comment.start_point[0] and before.end_point[1] > 0


def _nest(definitions: Sequence[Definition], calls: Sequence[tuple[int, str]]) -> None:
    """Give each its parent, and each call to what it stands in."""
    stack: list[Definition] = []
    waiting = iter(calls)
    call = next(waiting, None)
    for each in [*definitions, None]:
        while call is not None and (each is None or call[0] < each.start):
            _note_call(stack, *call)
            call = next(waiting, None)
        if each is None:
            break
        while stack and stack[-1].end < each.end:
            stack.pop()
        each.parent = next(iter(_inside(stack, each.start)), None)
        stack.append(each)


def _note_call(stack: list[Definition], at: int, name: str) -> None:
    for each in _inside(stack, at):
        if not each.is_class and len(each.calls) < _MOST_CALLS:
            each.calls[name[:_LONGEST_NAME]] = None


def _inside(stack: list[Definition], at: int) -> Iterator[Definition]:
    """Those that a place is in, the innermost first."""
    while stack and stack[-1].end <= at:
        stack.pop()
    yield from (each for each in reversed(stack) if each.start <= at < each.end)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _ended(each: Definition, begun: Sequence[int], source: bytes) -> Definition:
    """One that swallowed others ends where the first of them begins."""
    at = next((start for start in begun[bisect_right(begun, each.own_start) :] if start < each.end), 0)
    if not at:
        return each
    end = len(source[:at].rstrip())
    return replace(each, end=end, body_end=min(each.body_end, end), last_row=source.count(b"\n", 0, end))
