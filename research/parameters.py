"""What a caller may say: each thing with its kind, its bounds and a sentence, and the one check that all doors share.

Options of the command line, lines of a batch, bodies of HTTP and the arguments of tools are read by `read_values`, and
the JSON schemas that HTTP and MCP show are made of the same records. Callers write numbers as texts, one text where a
list belongs, and null for what they leave out; what can only mean one thing is taken for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from research.errors import UsageError
from research.models import CONFIDENCE_LEVELS
from research.settings import Rule, Settings, check, closest, read_number

Kind = Literal["text", "integer", "share", "confidence", "boolean", "texts", "pages", "messages", "object"]

_MOST_TEXTS = 1000
_MOST_MESSAGES = 10_000
_SHOWN = 60  # characters of a wrong value
_WORDS = {
    "text": "a text",
    "boolean": "true or false",
    "texts": "a list of texts",
    "pages": "a text, a number or a list of these",
    "messages": "a list of messages",
    "object": "an object",
}
_SETTINGS = {each.name: each for each in fields(Settings)}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that may be said; None as its default means that it is left out."""

    name: str
    kind: Kind
    words: str
    default: Any = None
    required: bool = False
    least: int | None = None
    most: int | None = None  # of a number; of a text, its characters
    choices: tuple[str, ...] = ()
    parts: tuple[Parameter, ...] = ()  # of an object
    setting: str = ""  # the setting it stands for, in this call
    option: str = ""  # on the command line, if not --name
    metavar: str = ""
    separator: str = ""  # between several in one text
    field: str = ""  # of the request, if it is not called so here

    @property
    def spelling(self) -> str:
        """Of its option on the command line."""
        return self.option or f"--{self.name.replace('_', '-')}"

    @property
    def hint(self) -> str:
        """What would be right: one of these, or the first sentence of what it is."""
        return f"choose from: {', '.join(self.choices)}" if self.choices else self.words.partition(". ")[0].rstrip(".")

    def schema(self, *, brief: bool = False) -> dict[str, Any]:
        """JSON Schema of its value; a brief one does not say how much there may be at most."""
        text: dict[str, Any] = {"type": "string"}
        if self.choices:
            text["enum"] = list(self.choices)
        elif self.most is not None and not brief:
            text |= {"minLength": 1, "maxLength": self.most}
        found: dict[str, Any] = {"description": self.words}
        if self.kind == "texts":
            found |= {"type": "array", "items": text} | ({} if brief else {"maxItems": _MOST_TEXTS})
            found |= {} if self.least is None else {"minItems": self.least}
        elif self.kind == "messages":
            found |= {"type": "array", "items": {"type": "object"}}
        elif self.kind == "object":
            found |= input_schema(self.parts)
        elif self.kind == "share":
            found |= {"type": "number", "minimum": 0, "maximum": 1}
        elif self.kind == "confidence":
            found["anyOf"] = [text, {"type": "number", "minimum": 0, "maximum": 1}]
        elif self.kind in ("integer", "boolean"):
            found["type"] = self.kind
            bounds = {"minimum": self.least, "maximum": None if brief else self.most}
            found |= {name: bound for name, bound in bounds.items() if bound is not None}
        else:
            found |= text
        if self.default not in (None, ()):
            found["default"] = self.default
        return found

    def read(self, value: Any, where: str) -> Any:
        """What was given, as what it should be. Raises UsageError with what would be right."""
        if self.setting:
            return check(self.setting, value, where)
        if self.kind == "integer":
            return read_number(self.name, value, where, Rule(self.least or 0, self.most))
        if self.kind in ("text", "texts", "pages"):
            return self._texts(value, where)
        known = {True: True, False: False, "true": True, "false": False}
        if self.kind == "boolean" and isinstance(value, bool | str) and value in known:
            return known[value]
        if self.kind == "messages" and isinstance(value, list) and len(value) <= _MOST_MESSAGES:
            return tuple(value)  # what is in them is looked at where they are used
        if self.kind == "object" and isinstance(value, Mapping):
            return read_values(self.parts, value)
        raise self._wrong(value, where)

    def _texts(self, value: Any, where: str) -> Any:
        if self.kind == "text":
            return self._text(value, where)
        if self.kind == "pages":
            pages = value if isinstance(value, list | tuple) else [value]
            return ",".join(self._text(str(each) if type(each) is int else each, where) for each in pages)
        texts = self._several(value) if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or len(texts) > _MOST_TEXTS:
            raise self._wrong(value, where)
        if len(texts) < (self.least or 0):
            raise UsageError(f"{where} is empty", hint=self.hint)
        return tuple(self._text(text, where) for text in texts)

    def _several(self, text: str) -> list[str]:
        if not self.separator:
            return [text]
        return [each for each in map(str.strip, text.split(self.separator)) if each]

    def _text(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise self._wrong(value, where)
        # Halves of characters, which JSON can spell and nothing can store.
        text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").strip()
        if self.choices and text not in self.choices:
            raise UsageError(f"{where} cannot be {shown(text)}", hint=self.hint)
        if not text or "\0" in text:
            raise UsageError(f"{where} {'has a NUL' if text else 'is empty'}", hint=self.hint)
        if self.most is not None and len(text) > self.most:
            raise UsageError(f"{where} has {len(text):,} characters", hint=f"the most is {self.most:,}")
        return text

    def _wrong(self, value: Any, where: str) -> UsageError:
        return UsageError(f"{where} must be {_WORDS[self.kind]}, not {shown(value)}", hint=self.hint)


def setting_parameter(setting: str, words: str, **more: Any) -> Parameter:
    """What stands for a setting in one call: its kind and its bounds are the setting's."""
    default, rule = _SETTINGS[setting].default, _SETTINGS[setting].metadata["rule"]
    number = isinstance(default, int)
    kind: Kind = "integer" if number else "share" if isinstance(default, float) else "text"
    if rule.share:
        kind = "confidence"
    least, most = (rule.minimum, rule.maximum) if number else (None, None)
    choices = tuple(CONFIDENCE_LEVELS) if rule.share else tuple(map(str, rule.choices))
    return Parameter(setting, kind, words, least=least, most=most, choices=choices, setting=setting, **more)


def input_schema(parameters: Iterable[Parameter], *, brief: bool = False) -> dict[str, Any]:
    """JSON Schema of all of them, as an object."""
    known = tuple(parameters)
    required = [parameter.name for parameter in known if parameter.required]
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema(brief=brief) for parameter in known},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def read_values(parameters: Sequence[Parameter], given: Mapping[str, Any], *, options: bool = False) -> dict[str, Any]:
    """A value for each parameter, its default where none was given. `options`: errors name those of the command line.
    Raises UsageError for what is wrong, missing or unknown, with the nearest name that there is."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            close = closest(str(name), known)
            hint = f"did you mean {close}?" if close else f"it takes: {', '.join(known)}"
            raise UsageError(f"there is no {shown(name)} here", hint=hint)
    values: dict[str, Any] = {}
    for name, parameter in known.items():
        value = given.get(name)
        if value is None and parameter.required:
            raise UsageError(f"{name} is missing", hint=parameter.hint)
        where = parameter.spelling if options else name
        values[name] = parameter.default if value is None else parameter.read(value, where)
    return values


def shown(value: object) -> str:
    """A value somebody sent, in a message."""
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
