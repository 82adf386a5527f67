"""Settings: flags, then CTX_* variables, then ctx.toml, then the user's config, then defaults.

What a setting may be stands with its field and is checked in one place, wherever it comes from: `check` alone knows
bounds and choices, and its message names the flag, the variable or the line of the file.

A ctx.toml is found, not chosen: it may have come with a folder from anywhere. What loads code, opens a connection or
writes outside that folder is therefore the user's own to set, and refused by name in a found file. Each setting says so
itself, where it is declared.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from research.errors import UsageError
from research.files import check_owner, is_inside, project_files, user_config
from research.models import CONFIDENCE_LEVELS

_PREFIX = "CTX_"
# Variables that are no settings, because they are needed before there are any; and what is easily said instead.
# Keys are none because a file would keep them.
_OTHER_VARIABLES = (
    "CTX_LOG", "CTX_LOG_LEVEL", "CTX_MODEL_KEY", "CTX_API_KEY", "CTX_TEXT_ENCODER_KEY", "CTX_RERANKER_KEY",
)  # fmt: skip
_MEANT = {"CTX_LOG_FILE": "CTX_LOG"}
_KEYS = ("key", "model_key", "api_key")  # a file is no place for one
_ALIKE = 0.8  # less, and names of other programs would be taken for mistakes

_SHOWN = 60  # characters of a wrong value

FLOOR = 0.15
"""What is less likely to answer is shown by no door that shows several sources, or memories (RETRIEVAL.md, Scores)."""

SOURCE_SECONDS = 10.0
REWRITERS = ("answer-form", "collection", "names", "finance")
BOOSTERS = ("page-references", "document-parts", "collection", "newer-versions")
_NONE = ["off"]  # the empty list, which a variable cannot say

# SQLite and Chroma count in 64 and 32 bits; nobody means more than this.
_MOST_RESULTS = 10_000
MOST_TOKENS = 1_000_000_000
_MOST_SECONDS = 86_400


class Mode(StrEnum):
    """Which legs answer; the words the search engine knows."""

    hybrid = "hybrid"
    text = "text"
    visual = "visual"
    lexical = "lexical"
    dense = "dense"


class Ocr(StrEnum):
    auto = "auto"
    off = "off"
    force = "force"


class OcrEngine(StrEnum):
    auto = "auto"
    tesseract = "tesseract"
    rapidocr = "rapidocr"


class Rule(NamedTuple):
    """What a setting may be, and who may give it."""

    minimum: float = 0
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    share: bool = False  # a number from 0 to 1 may stand in place of a choice
    numbered: str = ""  # a choice that may be followed by a colon and a number, `cuda:1`
    separator: str = ""  # between the entries of a list in a CTX_* variable
    flag: bool = False  # whether an option of its name sets it
    users_own: str = ""  # why a found ctx.toml may not set it
    inside: str = ""  # why a found ctx.toml may name only folders inside its own
    address: str = ""  # which kind of model it may name by address: "encoder" or "reranker"; "model": it is one alone


def _setting(default: Any, **rule: Any) -> Any:
    return field(default=default, metadata={"rule": Rule(**rule)})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a user can set. Names are the same in ctx.toml; CTX_MAX_TOKENS sets max_tokens."""

    # A folder; empty: the nearest .ctx upward, else the user's data folder.
    index: str = _setting("", flag=True, inside="it says where files are written")
    max_tokens: int = _setting(10_000, flag=True, minimum=1, maximum=MOST_TOKENS)
    max_sources: int = _setting(10, flag=True, minimum=1, maximum=_MOST_RESULTS)
    num_results: int = _setting(10, flag=True, minimum=1, maximum=_MOST_RESULTS)
    mode: str = _setting("hybrid", flag=True, choices=tuple(Mode))
    # sources that are left out: below this score, and all of them where confidence is below this level or number
    min_score: float = _setting(0.0, flag=True)
    min_confidence: str = _setting("none", flag=True, choices=tuple(CONFIDENCE_LEVELS), share=True)
    token_encoding: str = _setting("o200k_base", choices=("o200k_base", "cl100k_base"))
    # a model's folder, hub name or openai:MODEL@URL; empty: the one inside the package
    text_encoder: str = _setting("", users_own="it names a model to load", address="encoder")
    images: bool = _setting(True)  # draw page images and thumbnails
    ocr: str = _setting("auto", flag=True, choices=tuple(Ocr))
    ocr_engine: str = _setting("auto", flag=True, choices=tuple(OcrEngine))
    # tesseract's names, joined by +: deu, deu+eng; empty: English, else what is installed
    ocr_language: str = _setting("", flag=True)
    # auto, regions, off, or a model: hub name or folder
    visual: str = _setting("auto", flag=True, users_own="it names a model to load")
    # where a visual model runs
    device: str = _setting(
        "auto",
        flag=True,
        choices=("auto", "cpu", "cuda", "mps"),
        numbered="cuda",
        users_own="it chooses what a model runs on",
    )
    # models an index may ask for, by name or folder, though nobody named them on this machine
    allowed_encoders: tuple[str, ...] = _setting(
        (), separator=",", users_own="it permits models to be loaded", address="encoder"
    )
    # a cross-encoder's folder or hub name, or the URL of one that is served, which orders the first pages found
    reranker: str = _setting("", flag=True, users_own="it names a model to load", address="reranker")
    # seconds that a source may take, of several that are asked side by side; it is then named, and the others answer
    source_seconds: float = _setting(SOURCE_SECONDS, minimum=0.1, maximum=_MOST_SECONDS)
    # seconds that a model at an address may take for an answer
    request_timeout: int = _setting(30, minimum=1, maximum=3600)
    # what may change the text that is searched, and the order of what was found; `off` alone is none of them
    rewriters: tuple[str, ...] = _setting(REWRITERS, separator=",", choices=REWRITERS)
    boosters: tuple[str, ...] = _setting(BOOSTERS, separator=",", choices=BOOSTERS)
    # tables of your own for the rewriter `finance`
    vocabulary: tuple[str, ...] = _setting((), separator=os.pathsep, inside="it says which files are read")
    # links on a terminal: auto is wherever it has them
    links: str = _setting("auto", choices=("auto", "on", "off"))
    # what opens a PDF at a page, as a command with {path}, {page} and {link}; empty: what is installed
    viewer: str = _setting("", users_own="it names a program to run")
    # the model that writes an answer from the sources, by the name its server knows; `local` is the one of the extra of
    # that name; empty: none, and nothing is sent anywhere
    model: str = _setting("", flag=True, users_own="it says to whom questions and passages are sent")
    # any OpenAI-compatible server; the key, if it wants one, is CTX_MODEL_KEY's or the keyring's
    model_url: str = _setting("", flag=True, address="model", users_own="it says where questions and passages are sent")
    # how much of prompt and answer together the model takes; 0: not known, and found out when it is too much
    model_context: int = _setting(0, maximum=MOST_TOKENS, users_own="it says how much is sent to a model")
    # seconds in which the model has to begin; it may pause half as long, and take five times as long in all
    model_timeout: int = _setting(120, minimum=1, maximum=_MOST_SECONDS, users_own="it says how long a model may take")
    max_answer_tokens: int = _setting(
        600, flag=True, minimum=1, maximum=1_000_000, users_own="it says how much a model may write"
    )
    # whether the model also gets pictures of the first pages
    model_images: bool = _setting(False, users_own="it says what is sent to a model")
    # what is taken out of texts before they leave in the context of a turn: keys and tokens; with pii also mail, cards,
    # accounts, telephone and identity numbers, names and addresses (extra `redact`)
    redact: str = _setting("secrets", choices=("off", "secrets", "pii"), users_own="it says what may leave")
    # of the texts, joined by +: en, en+de; each needs a model of its own
    redact_language: str = _setting("en", users_own="it says what may leave")
    # words that stay, `*` for anything: *@example.com
    redact_allow: tuple[str, ...] = _setting((), separator=",", users_own="it says what may leave")
    # variables (or keyring:NAME, file:PATH) whose values are masked as §§secret(NAME) wherever they would leave
    secrets: tuple[str, ...] = _setting((), separator=",", users_own="it says which of your secrets are read")
    # a policy in Cedar that says who may see what: a file, or a folder of *.cedar; empty: policy.cedar and
    # policies/*.cedar beside the user's config.toml, and where there are none everything is the owner's
    policy: str = _setting("", users_own="it says who may see what")
    # what is classified by nobody
    default_classification: str = _setting(
        "Internal",
        choices=("Public", "Internal", "Confidential", "Restricted"),
        users_own="it says who may see what",
    )
    # domains and strategies of experiences besides our own
    experience_domains: tuple[str, ...] = _setting((), separator=",")
    experience_strategies: tuple[str, ...] = _setting((), separator=",")
    # experiences that come or go until values are looked for anew; 0: only when asked to
    values_after: int = _setting(20, maximum=1_000_000)
    # what each part of a package's score counts: how well it fits, how near it is in the graph, how current, how sound,
    # how often it was chosen and useful
    weight_semantic: float = _setting(1.0)
    weight_graph: float = _setting(0.5)
    weight_recency: float = _setting(0.05)
    weight_quality: float = _setting(0.1)
    weight_reuse: float = _setting(0.1)
    # days that requests for packages, and what was built of them, are kept
    package_days: int = _setting(90, minimum=1, maximum=36_500)
    # how long entries of the audit are kept
    audit_days: int = _setting(90, minimum=1, maximum=36_500, users_own="it says how long it is known who saw what")
    # a file to which a line of JSON is added for each package that is asked for, built or expired, and each denial
    events_file: str = _setting("", users_own="it says where files are written")
    # a Redis server that keeps packages beside the catalog and hears of events: redis://HOST:PORT/0, unix:///PATH
    redis_url: str = _setting("", users_own="it opens a connection")
    # folders whose .ctx and ctx.toml are used though somebody else owns or may write them
    safe_folders: tuple[str, ...] = _setting((), separator=os.pathsep, users_own="it says whom to trust")

    def __post_init__(self) -> None:
        for each in fields(self):
            check(each.name, getattr(self, each.name), each.name)

    @property
    def named_encoders(self) -> tuple[str, ...]:
        """Every encoder the user names here, which is the permission to load it."""
        return tuple(name for name in (self.text_encoder, self.visual, *self.allowed_encoders) if name)


_FIELDS = {each.name: each for each in fields(Settings)}


class Given(NamedTuple):
    """A checked value, and the flag, variable or file that gave it."""

    value: Any
    where: str


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Merge all layers. Flags that are None were not given. Raises `UsageError` for what is unknown or not allowed."""
    given = given_settings(flags, folder=folder, environment=environment)
    return Settings(**{name: each.value for name, each in given.items()})


def given_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Given]:
    """The same layers, with who said what; a setting that nobody gave is not in it."""
    folder = folder or Path.cwd()
    own = _from_environment(os.environ if environment is None else environment) | _from_flags(flags or {})
    users = _from_file(user_config())
    safe = (users | own).get("safe_folders", Given((), "")).value
    found: dict[str, Given] = {}
    for path in project_files(folder):
        check_owner(path, safe)
        found = _from_file(path)
        _check_found(found, path)
    if "index" in found and "index" not in own and found["index"].value and Path(found["index"].value).exists():
        check_owner(Path(found["index"].value), safe)
    return users | found | own


def misspelt_variables(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables that are no setting but look like one, each with what was probably meant.

    Any other CTX_* variable may belong to another program.
    """
    known = [*map(_variable, _FIELDS), *_OTHER_VARIABLES]
    names = os.environ if environment is None else environment
    unknown = [name for name in names if name.startswith(_PREFIX) and name not in known]
    meant = {name: _MEANT.get(name) or closest(name, known) for name in unknown}
    return {name: close for name, close in meant.items() if close}


def check(name: str, value: Any, where: str) -> Any:
    """The value as the setting has it. Raises `UsageError` that says where it was given and what is allowed."""
    setting = _FIELDS.get(name)
    if setting is None:
        if name in _KEYS:
            raise UsageError(f"{where}: a key stands in no file", hint="take it out; export CTX_MODEL_KEY=… instead")
        close = closest(name, _FIELDS)
        hint = f"did you mean {close}?" if close else "known settings: " + ", ".join(_FIELDS)
        raise UsageError(f"{where}: unknown setting {name!r}", hint=hint)
    default: Any = setting.default
    rule = _rule(setting)
    if isinstance(default, bool):
        return _switch(name, value, where)
    if isinstance(default, int):
        return read_number(name, value, where, rule)
    if isinstance(default, float):
        return read_share(name, value, where, rule=rule)
    if isinstance(default, str):
        return _text(name, value, where, rule)
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str) and entry for entry in value):
        raise UsageError(f"{where}: {name} must be a list of texts, not {_shown(value)}", hint=f'{name} = ["…", "…"]')
    if rule.choices and list(value) == _NONE:
        return ()
    return tuple(_text(name, entry, where, rule) for entry in dict.fromkeys(value))


def confidence_value(wanted: str) -> float:
    """What `min_confidence` means: the least value of a level, or the number that it is."""
    return CONFIDENCE_LEVELS[wanted] if wanted in CONFIDENCE_LEVELS else float(wanted)


def _switch(name: str, value: Any, where: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if str(value).lower() not in known:
        raise UsageError(f"{where}: {name} cannot be {_shown(value)}", hint="choose one of: true, false")
    return known[str(value).lower()]


def read_number(name: str, value: Any, where: str, rule: Rule) -> int:
    """The value as a whole number within the rule's bounds."""
    most = rule.maximum
    hint = f"{name} is a whole number from {rule.minimum:,}" + ("" if most is None else f" to {most:,}")
    whole = isinstance(value, float) and value.is_integer()  # JSON makes no difference between 5 and 5.0
    try:
        number = int(value if whole else str(value))  # of the text, because int() takes true for 1 and cuts 1.5 to 1
    except ValueError:
        raise UsageError(f"{where}: {name} must be a whole number, not {_shown(value)}", hint=hint) from None
    if number < rule.minimum:
        raise UsageError(f"{where}: {_shown(number)} is too small; the least is {rule.minimum}", hint=hint)
    if most is not None and number > most:
        raise UsageError(f"{where}: {_shown(number)} is too large; the most is {most}", hint=hint)
    return number


def read_share(name: str, value: Any, where: str, hint: str = "", rule: Rule | None = None) -> float:
    """The value as a number within the rule's bounds, from 0 to 1 where there is none."""
    least, most = (rule.minimum, rule.maximum or 1) if rule else (0, 1)
    try:
        number = float(str(value))  # of the text, because float() takes true for 1
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise UsageError(
            f"{where}: {name} cannot be {_shown(value)}", hint=hint or f"{name} is a number from {least:g} to {most:,}"
        ) from None
    return number


def _text(name: str, value: Any, where: str, rule: Rule) -> str:
    if rule.share and value not in rule.choices:
        return str(read_share(name, value, where, f"choose one of: {', '.join(rule.choices)}, or a number from 0 to 1"))
    if rule.choices:
        kind, colon, number = str(value).partition(":")
        numbered = bool(colon) and kind == rule.numbered and number.isdecimal()
        if not isinstance(value, str) or not (value in rule.choices or numbered):
            choices = [*rule.choices, *([f"{rule.numbered}:N"] if rule.numbered else [])]
            raise UsageError(f"{where}: {name} cannot be {_shown(value)}", hint="choose one of: " + ", ".join(choices))
    if rule.address == "model" and value:
        return _address(name, value, where)
    if not isinstance(value, str) or "\0" in value:
        raise UsageError(f"{where}: {name} must be text, not {_shown(value)}", hint=f'{name} = "…"')
    if rule.address and ("://" in value or value.startswith("openai:")):
        _check_address(name, value, where, rule.address)
    return str(value)


def _address(name: str, value: Any, where: str) -> str:
    """Whatever is wrong with it, it is not shown: it may hold a password."""
    from research.addresses import EXAMPLE, parse_address

    try:
        parse_address(value if isinstance(value, str) else "")
    except ValueError as error:
        raise UsageError(f"{where}: {name} is no address: {error}", hint=f'{name} = "{EXAMPLE}"') from None
    return str(value)


def _check_address(name: str, value: str, where: str, kind: str) -> None:
    from research.addresses import BadAddress, encoder_address, reranker_address

    try:
        (encoder_address if kind == "encoder" else reranker_address)(value)
    except BadAddress as problem:  # whose words hold nothing of the address
        raise UsageError(f"{where}: {name} {problem}", hint=problem.hint) from None


def _shown(value: Any) -> str:
    """A value as a settings file has it, short enough for a line."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that was probably meant; empty if none is like it."""
    from difflib import get_close_matches

    plain = {each.removeprefix(_PREFIX): each for each in known}  # the prefix would make all of them alike
    close = get_close_matches(name.removeprefix(_PREFIX), plain, n=1, cutoff=_ALIKE)
    return plain[close[0]] if close else ""


def _rule(setting: Field[Any]) -> Rule:
    rule: Rule = setting.metadata["rule"]
    return rule


def _variable(name: str) -> str:
    return f"{_PREFIX}{name.upper()}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _from_flags(flags: Mapping[str, Any]) -> dict[str, Given]:
    return {
        name: Given(check(name, value, _flag(name)), _flag(name)) for name, value in flags.items() if value is not None
    }


def _from_environment(environment: Mapping[str, str]) -> dict[str, Given]:
    found = {}
    for name, setting in _FIELDS.items():
        variable = _variable(name)
        value: Any = environment.get(variable)
        if value:
            separator = _rule(setting).separator
            if separator:
                value = [entry.strip() for entry in value.split(separator) if entry.strip()]
            found[name] = Given(check(name, value, variable), variable)
    return found


def _from_file(path: Path) -> dict[str, Given]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        text = path.read_text(encoding="utf-8")
        read = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", hint="mend the file or move it away") from error
    found = {}
    for name, value in read.items():
        where = f"{path}{_line(name, text)}"
        checked = check(name, value, where)
        if _rule(_FIELDS[name]).inside:
            # A relative path in a file means relative to that file, wherever the command runs.
            places = [str(path.parent / Path(place).expanduser()) for place in _places(checked)]
            checked = tuple(places) if isinstance(checked, tuple) else "".join(places)
        found[name] = Given(checked, where)
    return found


def _line(name: str, text: str) -> str:
    """Where a file gives a setting; tomllib does not tell."""
    import re

    begins = re.compile(rf"\s*\[*\s*[\"']?{re.escape(name)}[\"']?\s*[=.\]]")
    number = next((number for number, line in enumerate(text.splitlines(), 1) if begins.match(line)), 0)
    return f", line {number}" if number else ""


def _check_found(found: Mapping[str, Given], path: Path) -> None:
    """Refuse what a file may not decide that lies in a folder and was not named by anybody."""
    for name, given in found.items():
        rule = _rule(_FIELDS[name])
        if rule.users_own:
            raise UsageError(
                f"{given.where}: {name} is the user's own to set, because {rule.users_own}; a file found in a folder"
                " may not",
                hint=_elsewhere(name, rule),
            )
        for place in _places(given.value) if rule.inside else ():
            if not is_inside(Path(place), path.parent):
                raise UsageError(
                    f"{given.where}: {name} leads out of that folder, to {place}; because {rule.inside}, a file"
                    " found in a folder may name only places inside it",
                    hint=_elsewhere(name, rule),
                )


def _places(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """The paths that a setting names."""
    return value if isinstance(value, tuple) else (value,) if value else ()


def _elsewhere(name: str, rule: Rule) -> str:
    """Where the user may say it instead."""
    flag = f"{_flag(name)} …, " if rule.flag else ""
    return f"take it out; say it yourself with {flag}{_variable(name)}=…, or in {user_config()}"
