"""What a tool is, what it says within its tokens, and what an agent is told when a call fails.

An agent has nothing but a tool's docstring, its parameters and what it gives to go by, and pays for every word of them
in each session: `tool` makes all of that from a function on an index.

The budget bounds the whole result as JSON, the way it goes over the wire: text, structured content, field names,
escapes and the server's stamp. An agent that asks for 800 tokens gets no more than 800, however its client shows them.

A result may hold text for models and fields for programs, and clients show a model one of the two: some the text
(Claude Desktop), some nothing but the fields (Claude Code, Codex, VS Code). To send the text of pages twice would halve
what fits, so it stands once: where the client is known to show it, or where the agent asks for it (`text_in`). The
other place says how to get it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeVar, get_args

from research import __version__
from research.context import TokenCounter
from research.errors import (
    BusyError,
    CtxError,
    EncoderUnavailable,
    IndexUnusableError,
    NewerIndexError,
    NothingFoundError,
    UntrustedError,
    UsageError,
)
from research.request import Parameter, input_schema, parameters_of, read_values, request_of

T = TypeVar("T")
TextIn = Literal["content", "structured"]
TEXT_IN: tuple[TextIn, ...] = ("content", "structured")

LEAST_TOKENS = 300  # with less, the frame leaves no room for a passage
MOST_TOKENS = 100_000
SERVER_NAME = "ctx"
# What the SDK adds to every result since the protocol of 2026-07-28. Whoever speaks an older one reads less.
STAMP = {"io.modelcontextprotocol/serverInfo": {"name": SERVER_NAME, "version": __version__}}

IN_CONTENT = "The text is in this result's text content. If you see none, call again with text_in='structured'."
IN_STRUCTURED = "The text is in structuredContent.text. If you see none, call again with text_in='content'."

# Of a result with structured content these show a model nothing else, as their users report (2025, 2026):
# anthropics/claude-code#79944, anomalyco/opencode#32868 (which says the same of Codex), microsoft/vscode#290063,
# modelcontextprotocol#1411 (of Cursor). A name that is missing costs one more call.
_STRUCTURED_ALONE = {
    "claude-code", "codex", "codex-mcp-client", "cursor", "cursor-vscode", "opencode", "visual studio code",
    "visual studio code - insiders",
}  # fmt: skip

_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_TRIES = 12
_SLACK = 24  # tokens that are not worth another try
_PATIENCE = 8  # two guesses too high, and halving is quicker
_ERROR_TOKENS = 150  # so that with its frame an error is no longer than the least budget


def text_in_for(client: str) -> TextIn:
    """Return where this client's model will see the text; it goes by `claude-code` or `claude-code/2.1.280 (cli)`."""
    return "structured" if client.partition("/")[0].strip().lower() in _STRUCTURED_ALONE else "content"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool says: text for whoever reads it, and the facts in fields. Clients that show a model nothing but the
    fields would drop a picture beside them, so a reply with a picture (a JPEG) has none."""

    text: str
    fields: Mapping[str, Any] | None = None
    picture: bytes | None = None

    @property
    def truncated(self) -> bool:
        return bool((self.fields or {}).get("truncated"))

    def shown(self, text_in: TextIn) -> tuple[str, dict[str, Any] | None]:
        """Return the text content and the structured content: the text in one, in the other where it is."""
        text = self.text.rstrip("\n")
        if self.fields is None:
            return text, None
        if text_in == "structured":
            return IN_STRUCTURED, {"text": text, **self.fields}
        return text, {"note": IN_CONTENT, **self.fields}


@dataclass(frozen=True, slots=True)
class Budget:
    """How many tokens a result may have, and where its text stands."""

    max_tokens: int
    text_in: TextIn = "content"

    def cost(self, reply: Reply) -> int:
        """Count the most it can come to: all of it as JSON, with what the SDK adds and fields that are empty; or as a
        client hands on its parts."""
        text, structured = reply.shown(self.text_in)
        result: dict[str, Any] = {
            "_meta": STAMP,
            "content": [{"type": "text", "text": text, "annotations": None, "_meta": None}],
            **({} if structured is None else {"structuredContent": structured}),
            "isError": False,
            "resultType": "complete",
        }
        whole = counter().count(json.dumps(result, ensure_ascii=False, separators=(",", ":")))
        if structured is None:
            return whole
        return max(whole, counter().count(text) + counter().count(json.dumps(structured, ensure_ascii=False)))

    def room(self, reply: Reply) -> int:
        """Count what is left beside a reply; less than nothing if it is too long itself."""
        return self.max_tokens - self.cost(reply)

    def too_small(self, reply: Reply) -> UsageError:
        """The error for a reply that is as short as it can be and does not fit."""
        return UsageError(
            f"max_tokens={self.max_tokens} is too small for this result",
            hint=f"call again with max_tokens={max(self.max_tokens, self.cost(reply)) + LEAST_TOKENS} or more",
        )

    def fit(self, within: Callable[[int], T], reply_of: Callable[[T], Reply], most: int, guess: int | None = None) -> T:
        """Return what `within` gives for the largest number, `most` at most, whose reply fits. The number is one of
        entries or, with a first `guess`, one of tokens: then what is left over says what to try next. `within` never
        searches: it is called often. Raises UsageError if not even nothing fits."""
        best, low, high = None, -1, most + 1  # the largest that fits, the smallest that does not
        tried = most if guess is None else min(guess, most)
        step = 2  # what is cut falls on the next sentence, and a small step may change nothing
        for _ in range(_TRIES):
            found = within(tried)
            reply = reply_of(found)
            room = self.room(reply)
            if room >= 0:
                best, low = found, tried
                if not reply.truncated or (guess is not None and room <= _SLACK + self.max_tokens // 25):
                    break
            else:
                high, step = tried, 2 * step
            following = tried + room - step
            near = guess is not None and low < following < high and step <= _PATIENCE
            tried = following if near else (max(low, 0) + high) // 2
            if not max(low, 0) < tried < high:
                break
        if best is None:
            best = within(0)  # nothing but what there is to say
            if self.room(reply_of(best)) < 0:
                raise self.too_small(reply_of(best))
        return best

    def longest(self, render: Callable[[int], Reply], most: int) -> Reply:
        """Return the reply with as many entries as fit, of `most` at most."""
        return self.fit(render, lambda reply: reply, most)

    def listed(
        self,
        name: str,
        found: Sequence[T],
        entry: Callable[[int, T], tuple[str, dict[str, Any]]],
        notes: Callable[[Sequence[T]], list[str]],
        **fields: Any,
    ) -> Reply:
        """Return a reply with as many entries as fit, below the notes on those that are shown. Each is a text and an
        object, which stands in the field of that name."""

        def render(count: int) -> Reply:
            left = len(found) - count
            entries = [entry(number, each) for number, each in enumerate(found[:count], start=1)]
            more = [f"{left} more did not fit: raise max_tokens, or ask for fewer."] if left else []
            above = "\n".join([*notes(found[:count]), *more])
            texts = "\n\n".join(text for text, _ in entries)
            return Reply(f"{above}\n\n{texts}", {name: [each for _, each in entries], **fields, "truncated": left > 0})

        return self.longest(render, len(found))


class EscapedCounter(TokenCounter):
    """Counts a text about as it stands inside JSON: what is escaped there costs more. Piece by piece, so a little off
    where pieces meet; good enough to fill a budget, which is then counted as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self._extra: dict[str, int] = {}

    def count_pieces(self, pieces: Sequence[str]) -> int:
        return super().count_pieces(pieces) + sum(self._more(piece) for piece in pieces)

    def _more(self, piece: str) -> int:
        if not _ESCAPED.search(piece):
            return 0
        if piece not in self._extra:
            inside = json.dumps(piece, ensure_ascii=False)[1:-1]
            self._extra[piece] = max(0, counter().count(inside) - super().count_pieces([piece]))
        return self._extra[piece]


@cache
def counter() -> TokenCounter:
    """o200k, whatever encoding the settings name: the agent's own is not known."""
    return TokenCounter()


@cache
def escaped_counter() -> EscapedCounter:
    return EscapedCounter()


LOOK = "call list_documents to see what there is"
DOCTOR = "try again; if it stays so, ask the user to run: ctx doctor"

# Errors of ours are written for whoever types commands: their hints are put into the words of the tools.
_IN_TOOLS = (
    (re.compile(r"see (?:them all|the documents) with: ctx list"), "call list_documents to see them all"),
    (re.compile(r"see where they lie with: ctx list\b.*"), LOOK),
    (re.compile(r"see(?: what is there)?: ctx list"), LOOK),
    (re.compile(r"see the tags with: ctx tag"), "list_documents shows which tags there are"),
    (re.compile(r"\bthe filter doc\b"), "documents"),
    (re.compile(r"\b(?:draw it|finish|try again) with: ctx ingest PATH( --retry)?"), "ask the user to ingest it again"),
)
# Absolute paths, but for their last name. An agent has no use for the rest, and it may be somebody's.
_PATH = re.compile(r"(?<![\w.:/])/(?:[^\s/'\"]+/)+(?=[^\s/'\"])")
# What may name a place on the machine or quote an exception is left out; the log has it.
_UNSAID: tuple[tuple[type[CtxError], str, str], ...] = (
    (NewerIndexError, "the index was written by a newer ctx", "ask the user to upgrade ctx"),
    (IndexUnusableError, "the index cannot be used now", DOCTOR),
    (UntrustedError, "the index is not trusted", "ask the user to run: ctx status"),
    (EncoderUnavailable, "a model that the index needs cannot run", "ask the user to run: ctx doctor"),
)


def no_documents(*, can_ingest: bool) -> NothingFoundError:
    """The error of an index without documents. Where it is says nothing to an agent."""
    how = "add documents with the tool ingest" if can_ingest else "ask the user to run: ctx ingest PATH"
    return NothingFoundError("the index holds no documents yet", hint=how)


def error_text(error: BaseException) -> str:
    """Say in one or two sentences what is wrong with a call, and what to call next."""
    if not isinstance(error, CtxError):
        return _cut(
            f"Something went wrong inside ctx ({type(error).__name__}). This is no fault of the call; {DOCTOR}."
        )
    told = ((message, hint) for kind, message, hint in _UNSAID if isinstance(error, kind))
    message, hint = next(told, (error.message, error.hint))
    if isinstance(error, BusyError):
        hint = "it is being written; call again in some seconds"
    for words, instead in _IN_TOOLS:
        hint = words.sub(instead, hint)
    return _cut(_sentence(message) + (f" Next: {_sentence(hint)}" if hint else ""))


def _sentence(text: str) -> str:
    text = _PATH.sub("", text).strip()
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def _cut(text: str) -> str:
    """Shorten an error's words for the least budget."""
    shown = text
    while counter().count(json.dumps(shown, ensure_ascii=False)) > _ERROR_TOKENS:
        shown = f"{shown[: 3 * len(shown) // 4]}…"
    return shown


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
