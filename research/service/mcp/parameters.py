"""What a tool takes: each parameter with its kind, its bounds and the words an agent chooses it by.

The schema a client sees and the check of what comes are made of the same. Models write numbers as texts, one text where
a list belongs, and null for what they leave out; what can only mean one thing is taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from research.errors import UsageError

Kind = Literal["text", "integer", "boolean", "texts"]

_MOST_TEXTS = 100
_NUMBER = re.compile(r"-?[0-9]{1,15}")
_SHOWN = 60  # characters of a wrong value
_WORDS = {"text": "a text", "integer": "a whole number", "boolean": "true or false", "texts": "a list of texts"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One of them; None as its default means that it is left out."""

    name: str
    kind: Kind
    words: str
    default: Any = None
    required: bool = False
    least: int | None = None
    most: int | None = None  # of a number; of a text, its characters
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """JSON Schema of its value."""
        found: dict[str, Any] = {"description": self.words}
        if self.kind == "texts":
            items = {"type": "string", "minLength": 1, "maxLength": self.most}
            found |= {"type": "array", "items": items, "maxItems": _MOST_TEXTS}
        elif self.kind == "text":
            found |= {"type": "string"}
            if self.choices:
                found["enum"] = list(self.choices)
            elif self.most is not None:
                found |= {"minLength": 1, "maxLength": self.most}
        else:
            found["type"] = self.kind
            bounds = {"minimum": self.least, "maximum": self.most}
            found |= {name: bound for name, bound in bounds.items() if bound is not None}
        if self.default is not None:
            found["default"] = self.default
        return found

    def read(self, value: Any) -> Any:
        """What was given, as what it should be. Raises UsageError with what would be right."""
        if self.kind == "texts":
            texts = [value] if isinstance(value, str) else value
            if not isinstance(texts, list) or len(texts) > _MOST_TEXTS:
                raise self._wrong(value)
            return tuple(self._text(text) for text in texts)
        if self.kind == "text":
            return self._text(value)
        if self.kind == "boolean":
            known = {True: True, False: False, "true": True, "false": False}
            if not isinstance(value, bool | str) or value not in known:
                raise self._wrong(value)
            return known[value]
        return self._integer(value)

    def _integer(self, value: Any) -> int:
        spelt = isinstance(value, str) and _NUMBER.fullmatch(value.strip())
        if spelt or (isinstance(value, float) and value.is_integer()):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(value)
        if self.least is not None and value < self.least:
            raise UsageError(f"{self.name}={shown(value)} is too small", hint=f"the least is {self.least}")
        if self.most is not None and value > self.most:
            raise UsageError(f"{self.name}={shown(value)} is too large", hint=f"the most is {self.most}")
        return value

    def _text(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self._wrong(value)
        # Halves of characters, which JSON can spell and nothing can store.
        text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if self.choices and text not in self.choices:
            raise UsageError(f"{self.name} cannot be {shown(text)}", hint=f"one of: {', '.join(self.choices)}")
        if not text.strip():
            raise UsageError(f"{self.name} is empty", hint=_sure(self.words))
        if self.most is not None and len(text) > self.most:
            raise UsageError(f"{self.name} has {len(text)} characters", hint=f"the most is {self.most}")
        return text.strip()

    def _wrong(self, value: Any) -> UsageError:
        return UsageError(f"{self.name} is {_WORDS[self.kind]}, not {shown(value)}", hint=_sure(self.words))


def input_schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Of a tool's arguments as a whole."""
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema() for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }


def read_arguments(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each parameter, its default where none was given."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            raise UsageError(f"there is no parameter {shown(name)}", hint=f"it takes: {', '.join(known)}")
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        value = given.get(name)
        if value is None and parameter.required:
            raise UsageError(f"{name} is missing", hint=_sure(parameter.words))
        values[name] = parameter.default if value is None else parameter.read(value)
    return values


def shown(value: object) -> str:
    """A value somebody sent, in a message."""
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _sure(words: str) -> str:
    """The first sentence of what a parameter is."""
    return words.partition(". ")[0].rstrip(".")
