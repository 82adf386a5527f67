"""Words of the command line as values, without Typer's help.

Typer builds a pydantic adapter for every parameter it parses, used or not: 0.1 s of CPU before `ctx ask` has done
anything. The handful of types we use need none of that, so `convert_lightly` turns words into values, in words of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import typer


def convert_lightly(command: Any, *functions: Callable[..., Any]) -> None:
    """Give each parameter of a command a converter for its annotated type; other types keep Typer's."""
    hints = {name: hint for function in functions for name, hint in get_type_hints(function).items()}
    all_parameters = command.get_params  # the help option, too, which is made late

    def get_params(ctx: Any) -> Any:
        parameters = all_parameters(ctx)
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = _processor(parameter, _bare(hints.get(parameter.name)))
        return parameters

    command.get_params = get_params


def _bare(hint: Any) -> Any:
    """`str` of `str`, `str | None` and `list[str]`."""
    if get_origin(hint) is list:
        return get_args(hint)[0]
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return _bare(kinds[0]) if len(kinds) == 1 else hint


def _processor(parameter: Any, wanted: Any) -> Callable[[Any, Any], Any]:
    thorough = parameter.process_value
    several = getattr(parameter, "multiple", False) or parameter.nargs != 1
    known = wanted in (str, int, float, Path) or (isinstance(wanted, type) and issubclass(wanted, Enum))

    def process(ctx: Any, value: Any) -> Any:
        absent = value is None or (several and not value)
        if (absent and parameter.required) or not (absent or known):
            return thorough(ctx, value)
        try:
            value = _converted(value, wanted, parameter, several=several, absent=absent)
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx=ctx, param=parameter) from error
        return value if parameter.callback is None else parameter.callback(ctx, parameter, value)

    return process


def _converted(value: Any, wanted: Any, parameter: Any, *, several: bool, absent: bool) -> Any:
    if absent:
        return () if several else None
    if several:
        return tuple(_one(item, wanted, parameter) for item in value)
    return _one(value, wanted, parameter)


def _one(value: Any, wanted: Any, parameter: Any) -> Any:
    if issubclass(wanted, Enum):
        choices = [str(choice.value) for choice in wanted]
        if str(value) not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
        return wanted(str(value))
    if wanted in (int, float):
        return _number(value, wanted, parameter)
    return wanted(value)


def _number(value: Any, wanted: Any, parameter: Any) -> Any:
    try:
        number = wanted(value)
    except ValueError:
        kind = "whole number" if wanted is int else "number"
        raise ValueError(f"{value!r} is not a {kind}") from None
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if least is not None and not number >= least:
        raise ValueError(f"{number} is too small; the least is {least}")
    if most is not None and not number <= most:
        raise ValueError(f"{number} is too large; the most is {most}")
    return number
