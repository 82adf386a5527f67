"""ctx graph: what is near to a thing, and by what it is connected.

A neighbourhood as a tree for a person, and in the languages of Graphviz and Mermaid.

Titles are somebody else's text: in DOT and Mermaid they stand in quotes, in which nothing of theirs can end them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from cli.call import Call, complete_document, offers
from cli.options import LimitOption, TenantOption
from cli.output import write, write_document
from research.errors import UsageError
from research.text import one_line

if TYPE_CHECKING:
    from research.graph import ShownGraph, ShownNode

_SHOWN = 60  # nodes
_SHAPES = {"document": "folder", "page": "note", "section": "box", "commit": "cds", "file": "component"}


def as_text(graph: ShownGraph) -> str:
    """Every node once, below the nearest one that it was reached from."""
    nodes = {node.ref: node for node in graph.nodes}
    below: dict[str, list[tuple[str, str]]] = {}
    for ref, (above, how) in _reached(graph, nodes).items():
        below.setdefault(above, []).append((ref, how))
    lines: list[str] = []
    for ref in (ref for ref in graph.refs if ref in nodes):
        lines.append(_told(nodes[ref]))
        lines += _branches(ref, below, nodes, "")
    return "".join(f"{line}\n" for line in lines)


def _reached(graph: ShownGraph, nodes: Mapping[str, ShownNode]) -> dict[str, tuple[str, str]]:
    """ref → the node it hangs below, and how an edge leads to it."""
    found: dict[str, tuple[str, str]] = {}
    ways: dict[str, list[tuple[float, str, str]]] = {}
    for edge in graph.edges:
        one, other = nodes[edge.source], nodes[edge.target]
        if one.hop < other.hop:
            ways.setdefault(other.ref, []).append((-one.proximity, one.ref, f"─ {edge.kind} → "))
        elif other.hop < one.hop:
            ways.setdefault(one.ref, []).append((-other.proximity, other.ref, f"← {edge.kind} ─ "))
    for ref, known in ways.items():
        _, above, how = min(known)
        found[ref] = (above, how)
    return {ref: found[ref] for ref in nodes if ref in found}


def _branches(
    ref: str, below: Mapping[str, list[tuple[str, str]]], nodes: Mapping[str, ShownNode], indent: str
) -> Iterator[str]:
    children = below.get(ref, [])
    for number, (child, how) in enumerate(children, start=1):
        last = number == len(children)
        yield f"{indent}{'└' if last else '├'}{how}{_told(nodes[child])}"
        yield from _branches(child, below, nodes, f"{indent}{'  ' if last else '│ '}")


def _told(node: ShownNode) -> str:
    label = one_line(node.label)
    ref = one_line(node.ref)
    return label if label == ref or node.kind in ("code", "file", "session") else f"{label}  [{ref}]"


def as_dot(graph: ShownGraph) -> str:
    lines = ["digraph ctx {", "  rankdir=LR;"]
    for node in graph.nodes:
        shape = _SHAPES.get(node.kind, "ellipse")
        bold = ", style=bold" if node.hop == 0 else ""
        lines.append(f"  {_dot(node.ref)} [label={_dot(node.label)}, shape={shape}{bold}];")
    lines += [f"  {_dot(edge.source)} -> {_dot(edge.target)} [label={_dot(edge.kind)}];" for edge in graph.edges]
    return "\n".join([*lines, "}", ""])


def _dot(text: str) -> str:
    """In quotes. A backslash would begin an escape of Graphviz's own, and `<` stands for HTML only outside of them."""
    return json.dumps(one_line(text).replace("\\", "/"), ensure_ascii=False)


def as_mermaid(graph: ShownGraph) -> str:
    names = {node.ref: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    lines += [f'  {names[node.ref]}["{_mermaid(node.label)}"]' for node in graph.nodes]
    lines += [f"  {names[edge.source]} -->|{edge.kind}| {names[edge.target]}" for edge in graph.edges]
    return "\n".join([*lines, ""])


def _mermaid(text: str) -> str:
    """All but plain letters as Mermaid's entities: nothing left means anything to it, or to the page it is drawn in."""
    return "".join(
        letter if letter.isalnum() or letter in " .,:-_/…" else f"#{ord(letter)};" for letter in one_line(text)
    )


FORMATS: Mapping[str, Callable[[ShownGraph], str]] = {"text": as_text, "dot": as_dot, "mermaid": as_mermaid}


@offers(acting=True)
def graph(
    call: Call,
    things: Annotated[
        list[str],
        typer.Argument(
            metavar="REF|DOC", help="A ref, or a document's name, path or id.", autocompletion=complete_document
        ),
    ],
    *,
    hops: Annotated[int, typer.Option("--hops", metavar="N", help="Edges from it, 1 to 3.")] = 1,
    kinds: Annotated[
        str | None, typer.Option("--kinds", metavar="KIND,…", help="Only edges of these kinds. Default: all.")
    ] = None,
    limit: LimitOption = None,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, json, dot or mermaid.")] = "text",
    tenant: TenantOption = "",
) -> int:
    """Shows what a page, a document, a piece of code, a commit, a memory or an experience is connected with, as the
    things themselves say: pages that refer to each other ("see Table 5", "on page 12"), documents that name each other
    or are newer versions, calls and imports, the files of a commit, the session of a memory. No model is asked. The
    nearest 60 are shown, or as many as --limit says. Kinds of edges: refers, cites, newer, calls, imports, supports,
    changes, told_in, contains.

    Examples:
      ctx graph handbook.pdf
      ctx graph page:4f2a91c07d3be8a1#7 --hops 2
      ctx graph code:src/dates.py#parse --kinds calls,imports
      ctx graph handbook.pdf --format dot | dot -Tsvg > handbook.svg
      ctx graph handbook.pdf --json | jq -r '.nodes[].ref'
    """
    if form not in (*FORMATS, "json"):
        raise UsageError(f"there is no format {form!r}", hint="formats: text, json, dot, mermaid")
    wanted = None if kinds is None else [kind.strip() for kind in kinds.split(",") if kind.strip()]
    with call.index_of(call.settings()) as index:
        found = index.graph.show(*things, hops=hops, kinds=wanted, limit=limit or _SHOWN, tenant=tenant)
    if call.as_json or form == "json":
        write_document("ctx.graph/1", found.to_dict())
    else:
        write(FORMATS[form](found))
    if found.cut:
        call.note(f"only the nearest {len(found.nodes)} are shown; more with --limit, fewer with --kinds")
    if not found.complete:
        call.note("the graph is not complete yet; the next ctx ingest or ctx graph goes on with it")
    return 0
