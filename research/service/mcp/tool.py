"""What a tool is: a function on an index, and all that an agent sees of it.

An agent has nothing but a tool's docstring, its parameters and what it gives to go by, and pays for every word of them
in each session: `tool` makes all of that from the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_args

from research.parameters import Parameter, input_schema, read_values
from research.request import parameters_of, request_of
from research.service.mcp.results import LEAST_TOKENS, MOST_TOKENS, TEXT_IN, Reply

Run = TypeVar("Run", bound=Callable[..., Reply])

TEXT_PLACE = Parameter("text_in", "text", "", choices=TEXT_IN)
_WORDS = {"documents": "Only these: names, titles or ids", "pages": "Only these: 3-5,8,10-", "types": "Which sources"}


@dataclass(frozen=True, slots=True)
class Tool:
    """One of them. `question`: it searches, and takes its turn; others only look something up. `documents`: it says how
    to add some where there are none."""

    name: str
    title: str
    words: str
    parameters: tuple[Parameter, ...]
    run: Callable[..., Reply]
    output: Mapping[str, Any] | None = None
    question: bool = False
    documents: bool = True
    read_only: bool = True
    door: str = ""  # of the request that its function takes; what else it takes is its own
    wants_maker: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of its arguments, with no more in it than tells a model what to write. Where the text stands is
        said by the result, and by the instructions."""
        return input_schema([each for each in self.parameters if each != TEXT_PLACE], brief=True)

    @property
    def has_budget(self) -> bool:
        return TEXT_PLACE in self.parameters

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check what an agent sent: what the function is called with, but for `budget`. Raises UsageError."""
        values = read_values(self.parameters, given)
        if self.door:
            own = {each.name: values[each.name] for each in self.parameters if not each.field}
            values = {"request": request_of(parameters_of(self.door), values), **own}
        return values


def tool(
    title: str,
    gives: Mapping[str, Any] | None = None,
    *,
    tokens: int = 0,
    door: str = "",
    parameters: Sequence[Parameter] = (),
    question: bool = False,
    documents: bool = True,
    read_only: bool = True,
) -> Callable[[Run], Run]:
    """Make a tool of a function. `tokens`: the default of its budget, if it has one; `door`: of its `request`;
    `parameters`: those that stand for its `**` ones."""

    def add(run: Run) -> Run:
        signature = inspect.signature(run, eval_str=True).parameters
        taken = [*parameters]
        if door:
            taken += [replace(each, words=_WORDS.get(each.name, "")) for each in parameters_of(door)]
        for name, each in signature.items():
            kind = next((found for found in get_args(each.annotation)[1:] if isinstance(found, Parameter)), None)
            if kind is not None:
                missing = each.default is inspect.Parameter.empty
                taken.append(replace(kind, name=name, default=None if missing else each.default, required=missing))
        if tokens:
            most = {"default": tokens, "least": LEAST_TOKENS, "most": MOST_TOKENS}
            taken += [Parameter("max_tokens", "integer", "", **most), TEXT_PLACE]  # type: ignore[arg-type]
        name, words = run.__name__, " ".join((run.__doc__ or "").split())
        output = None if gives is None else output_schema(gives)
        TOOLS[name] = Tool(
            name, title, words, tuple(taken), run, output, question, documents, read_only, door, "maker" in signature
        )
        return run

    return add


TOOLS: dict[str, Tool] = {}
"""By name, in the order in which an agent sees them."""


def output_schema(gives: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of a tool's structured content: text and note are either here or there, `next_` only sometimes. A
    list of one is a list of such, a set the words that may stand there."""
    found = _schema({"text": str, "note": str, **gives})
    found["required"] = [name for name in gives if not name.startswith("next_")]
    return found


_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _schema(kind: Any) -> dict[str, Any]:
    if isinstance(kind, dict):
        properties = {name: _schema(each) for name, each in kind.items()}
        return {"type": "object", "properties": properties, "required": list(kind)}
    if isinstance(kind, list):
        return {"type": "array", "items": _schema(kind[0])}
    if isinstance(kind, set):
        return {"type": "string", "enum": sorted(kind)}
    return {"type": _KINDS[kind]} if kind in _KINDS else {"type": "object"}
