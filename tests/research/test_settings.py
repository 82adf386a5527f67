"""Settings come in layers, and nothing unknown or ill-typed slips through."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from research.context import TokenCounter
from research.errors import CtxError, UsageError
from research.files import index_folder, user_config, user_data
from research.models import CONFIDENCE_LEVELS
from research.settings import Settings, confidence_value, given_settings, load_settings, misspelt_variables


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder two levels inside a project."""
    folder = tmp_path / "project" / "a" / "b"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def config() -> Path:
    path = user_config()
    path.parent.mkdir(parents=True, exist_ok=True)
    yield path  # type: ignore[misc]
    path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def test_defaults(project: Path) -> None:
    assert load_settings(folder=project, environment={}) == Settings()


def test_each_layer_outdoes_the_one_below(project: Path, config: Path) -> None:
    def tokens(flags: dict[str, object], environment: dict[str, str]) -> int:
        return load_settings(flags, folder=project, environment=environment).max_tokens

    assert tokens({}, {}) == 10_000
    _write(config, "max_tokens = 1\nmax_sources = 1\n")
    assert tokens({}, {}) == 1
    _write(project.parent.parent / "ctx.toml", "max_tokens = 2")
    assert tokens({}, {}) == 2
    _write(project.parent / "ctx.toml", "max_tokens = 3")
    assert tokens({}, {}) == 3, "the nearest one upward"
    assert tokens({}, {"CTX_MAX_TOKENS": "4"}) == 4
    assert tokens({"max_tokens": 5}, {"CTX_MAX_TOKENS": "4"}) == 5
    assert tokens({"max_tokens": None}, {"CTX_MAX_TOKENS": "4"}) == 4, "a flag not given says nothing"
    with pytest.raises(UsageError, match="--max-tokens: 0 is too small"):  # zero is a value, not a flag left out
        tokens({"max_tokens": 0}, {})
    assert load_settings(folder=project, environment={}).max_sources == 1, "the layers add up"


def test_an_empty_variable_is_none_and_a_foreign_one_is_not_ours(project: Path) -> None:
    assert load_settings(folder=project, environment={"CTX_MODE": "", "CTX_OTHER": "x", "MODE": "y"}) == Settings()


def test_the_process_s_own_environment_is_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_MODE", "text")
    monkeypatch.chdir(project)
    assert load_settings().mode == "text"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_token = 5", "unknown setting 'max_token'"),
        ("[search]\nmode = 'text'", "unknown setting 'search'"),
        ("max_tokens = 'many'", "max_tokens must be a whole number"),
        ("max_tokens = 1.5", "max_tokens must be a whole number"),
        ("max_tokens = inf", "max_tokens must be a whole number"),
        ("max_tokens = true", "max_tokens must be a whole number"),
        ("max_tokens = [1]", "max_tokens must be a whole number"),
        ("max_tokens = 0", "0 is too small; the least is 1"),
        ("max_tokens = 1000000001", "1000000001 is too large; the most is 1000000000"),
        ("mode = 5", "mode cannot be 5"),
        ("mode = 'psychic'", "mode cannot be 'psychic'"),
        ("ocr = true", "ocr cannot be true"),
        ("images = 2", "images cannot be 2"),
        ("index = ['x']", "index must be text"),
        ('index = "a\\u0000b"', "index must be text"),
        ("max_tokens = ", "cannot read"),
    ],
)
def test_a_wrong_file_is_told_by_name(project: Path, text: str, message: str) -> None:
    _write(project / "ctx.toml", text)
    with pytest.raises(UsageError, match=message) as caught:
        load_settings(folder=project, environment={})
    assert str(project / "ctx.toml") in str(caught.value)
    assert caught.value.hint


def test_a_wrong_file_is_told_by_line(project: Path, config: Path) -> None:
    lines = ["# mode = 'wrong'", "max_tokens = 5", "mode_of_old = 1", " 'mode' = 'wrong'"]
    for number, name in ((3, "unknown setting 'mode_of_old'"), (4, "mode cannot be 'wrong'")):
        for path in (config, project.parent / "ctx.toml"):
            _write(path, "\n".join(lines[:number] if number == 3 else [*lines[:2], "", lines[3]]))
            with pytest.raises(UsageError) as caught:
                load_settings(folder=project, environment={})
            assert caught.value.message == f"{path}, line {number}: {name}"
            path.unlink()
    _write(project / "ctx.toml", "mode.a = 1")
    with pytest.raises(UsageError, match=r"line 1: mode cannot be \{'a': 1\}"):
        load_settings(folder=project, environment={})


# A value of each kind that is out of its bounds or choices, and what is allowed instead.
WRONG = [
    ("num_results", "99999999999999999999", "is too large; the most is 10000", "from 1 to 10,000"),
    ("num_results", "0", "0 is too small; the least is 1", "from 1 to 10,000"),
    ("max_sources", "0", "0 is too small; the least is 1", "from 1 to 10,000"),
    ("max_sources", "9" * 5000, "must be a whole number", "from 1 to 10,000"),
    ("max_tokens", "0", "0 is too small; the least is 1", "from 1 to 1,000,000,000"),
    ("device", "toaster", "device cannot be 'toaster'", "choose one of: auto, cpu, cuda, mps, cuda:N"),
    ("device", "cuda:", "device cannot be 'cuda:'", "cuda:N"),
    ("device", "cpu:1", "device cannot be 'cpu:1'", "cuda:N"),
    ("mode", "psychic", "mode cannot be 'psychic'", "choose one of: hybrid, text, visual, lexical, dense"),
    ("ocr", "true", "ocr cannot be 'true'", "choose one of: auto, off, force"),
    ("ocr_engine", "best", "ocr_engine cannot be 'best'", "choose one of: auto, tesseract, rapidocr"),
    ("token_encoding", "p50k", "token_encoding cannot be 'p50k'", "choose one of: o200k_base, cl100k_base"),
    ("min_score", "1.5", "min_score cannot be '1.5'", "a number from 0 to 1"),
    ("min_score", "nan", "min_score cannot be 'nan'", "a number from 0 to 1"),
    ("min_confidence", "sure", "min_confidence cannot be 'sure'", "none, low, medium, high, or a number from 0 to 1"),
    ("min_confidence", "-1", "min_confidence cannot be '-1'", "none, low, medium, high, or a number from 0 to 1"),
    ("images", "maybe", "images cannot be 'maybe'", "choose one of: true, false"),
]


@pytest.mark.parametrize(("name", "value", "problem", "allowed"), WRONG)
def test_bounds_are_the_same_wherever_it_is_said(
    project: Path, config: Path, *, name: str, value: str, problem: str, allowed: str
) -> None:
    def caught(where: str, flags: dict[str, Any], environment: dict[str, str]) -> None:
        with pytest.raises(UsageError) as error:
            load_settings(flags, folder=project, environment=environment)
        assert error.value.exit_code == 2
        assert error.value.message.startswith(f"{where}: ")
        assert len(error.value.message) < len(where) + 150
        assert problem in error.value.message
        assert allowed in error.value.hint

    caught(f"CTX_{name.upper()}", {}, {f"CTX_{name.upper()}": value})
    caught(f"--{name.replace('_', '-')}", {name: value}, {})
    _write(config, f"{name} = {value!r}")
    caught(f"{config}, line 1", {}, {})
    config.unlink()
    with pytest.raises(UsageError, match="^" + name):
        Settings(**{name: value})


def test_a_least_confidence_is_a_level_or_a_number(config: Path) -> None:
    assert confidence_value(Settings().min_confidence) == 0
    assert confidence_value(Settings(min_confidence="high").min_confidence) == CONFIDENCE_LEVELS["high"]
    _write(config, "min_confidence = 0.4\nmin_score = 1")
    read = load_settings(environment={})
    assert (confidence_value(read.min_confidence), read.min_score) == (0.4, 1.0)
    assert load_settings({"min_confidence": "low"}, environment={"CTX_MIN_SCORE": ".25"}).min_score == 0.25


@pytest.mark.parametrize("value", ["auto", "cpu", "mps", "cuda", "cuda:1"])
def test_devices(project: Path, value: str) -> None:
    assert load_settings(folder=project, environment={"CTX_DEVICE": value}).device == value


def test_every_number_has_a_most_and_every_choice_holds_its_default() -> None:
    for setting in dataclasses.fields(Settings):
        rule = setting.metadata["rule"]
        if type(setting.default) is int:
            assert rule.maximum is not None, setting.name
        if rule.choices:
            default = setting.default if isinstance(setting.default, tuple) else (setting.default,)
            assert set(default) <= set(rule.choices)


def test_the_encodings_are_those_that_can_be_counted() -> None:
    [rule] = [each.metadata["rule"] for each in dataclasses.fields(Settings) if each.name == "token_encoding"]
    for encoding in rule.choices:
        assert TokenCounter(encoding).count("two words") == 2
    with pytest.raises(CtxError) as caught:
        TokenCounter("other")
    assert caught.value.hint == "choose one of: " + ", ".join(rule.choices)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CTX_MAX_TOKEN", "CTX_MAX_TOKENS"),
        ("CTX_NUMRESULTS", "CTX_NUM_RESULTS"),
        ("CTX_OCR_ENGIN", "CTX_OCR_ENGINE"),
        ("CTX_SAFE_FOLDER", "CTX_SAFE_FOLDERS"),
        ("CTX_LOGLEVEL", "CTX_LOG_LEVEL"),
        ("CTX_LOG_FILE", "CTX_LOG"),
        ("CTX_MODELKEY", "CTX_MODEL_KEY"),
    ],
)
def test_a_misspelt_variable_is_known_by_its_likeness(name: str, meant: str) -> None:
    known = {"CTX_MODEL_KEY": "x", "CTX_LOG": "x", "CTX_LOG_LEVEL": "x", "CTX_INDEX": "x", "CTX_SAFE_FOLDERS": "x"}
    foreign = {"CTX_NODE": "x", "CTX_VERSION": "x", "MAX_TOKEN": "x", "_CTX_COMPLETE": "x"}
    assert misspelt_variables({**known, **foreign, name: "x"}) == {name: meant}


def test_a_misspelt_key_is_an_error_that_knows_better(project: Path) -> None:
    _write(project / "ctx.toml", "max_token = 5")
    with pytest.raises(UsageError) as caught:
        load_settings(folder=project, environment={})
    assert caught.value.hint == "did you mean max_tokens?"
    _write(project / "ctx.toml", "colour = 'red'")
    with pytest.raises(UsageError) as caught:
        load_settings(folder=project, environment={})
    assert caught.value.hint.startswith("known settings: index, max_tokens")


def test_who_said_it(project: Path, config: Path) -> None:
    def where(flags: dict[str, Any], environment: dict[str, str]) -> str:
        given = given_settings(flags, folder=project, environment=environment)
        assert given["index"].value == load_settings(flags, folder=project, environment=environment).index
        return given["index"].where

    assert given_settings(folder=project, environment={}) == {}
    _write(config, "mode = 'text'\nindex = 'here'")
    assert where({}, {}) == f"{config}, line 2"
    _write(project.parent / "ctx.toml", "index = 'there'")
    assert where({}, {}) == f"{project.parent / 'ctx.toml'}, line 1"
    assert where({}, {"CTX_INDEX": "y"}) == "CTX_INDEX"
    assert where({"index": "x"}, {"CTX_INDEX": "y"}) == "--index"


def test_a_file_that_is_no_text_is_told(project: Path) -> None:
    (project / "ctx.toml").write_bytes(b"mode = '\xff'")
    with pytest.raises(UsageError, match="cannot read"):
        load_settings(folder=project, environment={})


def test_a_relative_index_in_a_file_belongs_to_the_file(project: Path, config: Path, tmp_path: Path) -> None:
    _write(project.parent / "ctx.toml", "index = 'here/index'")
    settings = load_settings(folder=project, environment={})
    assert index_folder(settings, project) == project.parent / "here" / "index"
    _write(project.parent / "ctx.toml", f"index = '{project.parent / 'absolute'}'")
    assert index_folder(load_settings(folder=project, environment={}), project) == project.parent / "absolute"
    (project.parent / "ctx.toml").unlink()
    for own, place in ((f"{tmp_path}", tmp_path), ("~/index", Path.home() / "index"), ("x", config.parent / "x")):
        _write(config, f"index = '{own}'")
        assert index_folder(load_settings(folder=project, environment={}), project) == place


@pytest.mark.parametrize("index", ["/elsewhere", "..", "../other", "a/../../x", "~/index", "out/index", "out", "loop"])
def test_an_index_outside_the_folder_is_not_taken_from_a_file_found_there(project: Path, index: str) -> None:
    (project.parent / "out").symlink_to(project.parent.parent)
    (project.parent / "loop").symlink_to("../loop/..")
    _write(project.parent / "ctx.toml", f"index = '{index}'")
    with pytest.raises(UsageError, match="index leads out of that folder") as caught:
        load_settings(folder=project, environment={})
    assert str(project.parent / "ctx.toml") in caught.value.message
    for remedy in ("--index", "CTX_INDEX=", str(user_config())):
        assert remedy in caught.value.hint


@pytest.mark.parametrize(
    ("line", "remedies"),
    [
        ("text_encoder = './model'", ["CTX_TEXT_ENCODER="]),
        ("visual = 'some/model'", ["--visual", "CTX_VISUAL="]),
        ("visual = 'regions'", ["--visual", "CTX_VISUAL="]),
        ("device = 'cuda'", ["--device", "CTX_DEVICE="]),
        ("allowed_encoders = ['some/model']", ["CTX_ALLOWED_ENCODERS="]),
        ("model = 'local'", ["--model", "CTX_MODEL="]),
        ("model_url = 'http://127.0.0.1:1'", ["--model-url", "CTX_MODEL_URL="]),
        ("model_context = 9", ["CTX_MODEL_CONTEXT="]),
        ("model_timeout = 9", ["CTX_MODEL_TIMEOUT="]),
        ("max_answer_tokens = 9", ["--max-answer-tokens", "CTX_MAX_ANSWER_TOKENS="]),
        ("redact = 'off'", ["CTX_REDACT="]),
        ("redact_language = 'de'", ["CTX_REDACT_LANGUAGE="]),
        ("redact_allow = ['*']", ["CTX_REDACT_ALLOW="]),
        ("secrets = ['HOME']", ["CTX_SECRETS="]),
    ],
)
def test_what_loads_code_is_not_taken_from_a_file_found_in_a_folder(
    project: Path, config: Path, line: str, remedies: list[str]
) -> None:
    key = line.partition(" ")[0]
    _write(config, line)
    mine = load_settings(folder=project, environment={})
    assert getattr(mine, key) != getattr(Settings(), key), "the user's own file may"
    config.unlink()
    _write(project.parent / "ctx.toml", line)
    with pytest.raises(UsageError, match=f"{key} is the user's own to set") as caught:
        load_settings(folder=project, environment={})
    assert caught.value.exit_code == 2
    assert str(project.parent / "ctx.toml") in caught.value.message
    for remedy in (*remedies, str(user_config())):
        assert remedy in caught.value.hint
    variable = f"CTX_{key.upper()}"
    with pytest.raises(UsageError):  # said elsewhere too, the file is still wrong
        load_settings(folder=project, environment={variable: "x"})


@pytest.mark.parametrize("value", ["localhost:11434", "http://user:hunter2@host/v1", "https://host/?key=hunter2"])
def test_a_wrong_address_is_told_and_not_repeated(project: Path, config: Path, value: str) -> None:
    _write(config, f"model_url = '{value}'")
    ways: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({}, {}),
        ({"model_url": value}, {}),
        ({}, {"CTX_MODEL_URL": value}),
    ]
    for flags, environment in ways:
        with pytest.raises(UsageError, match="model_url is no address: it ") as caught:
            load_settings(flags, folder=project, environment=environment)
        assert "hunter2" not in caught.value.message + caught.value.hint
    _write(config, f"model_url = ['{value}']")
    with pytest.raises(UsageError, match="model_url is no address") as caught:
        load_settings(folder=project, environment={})
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("name", ["model_key", "api_key", "key"])
def test_a_key_in_a_file_is_refused_and_not_repeated(project: Path, config: Path, name: str) -> None:
    for path in (config, project / "ctx.toml"):
        _write(path, f"{name} = 'hunter2'")
        with pytest.raises(UsageError, match="a key stands in no file") as caught:
            load_settings(folder=project, environment={})
        assert "CTX_MODEL_KEY" in caught.value.hint
        assert "hunter2" not in caught.value.message + caught.value.hint
        path.unlink()


def test_lists(project: Path, config: Path) -> None:
    given = {"CTX_ALLOWED_ENCODERS": " one/model, ,/a/folder "}
    assert load_settings(folder=project, environment=given).allowed_encoders == ("one/model", "/a/folder")
    _write(config, "allowed_encoders = ['one/model', '/with, comma']")
    assert load_settings(folder=project, environment={}).allowed_encoders == ("one/model", "/with, comma")
    for wrong in ("'one/model'", "[1]", "['']", "true"):
        _write(config, f"allowed_encoders = {wrong}")
        with pytest.raises(UsageError, match="allowed_encoders must be a list of texts"):
            load_settings(folder=project, environment={})


def test_a_relative_index_elsewhere_belongs_to_the_folder_one_stands_in(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    settings = load_settings(folder=project, environment={"CTX_INDEX": "mine"})
    assert index_folder(settings) == project / "mine"


def test_the_nearest_project_folder_holds_the_index(project: Path) -> None:
    assert index_folder(Settings(), project) == user_data()
    (project.parent.parent / ".ctx").mkdir()
    assert index_folder(Settings(), project) == project.parent.parent / ".ctx"
    (project / ".ctx").write_text("a file is no folder")
    assert index_folder(Settings(), project) == project.parent.parent / ".ctx"
    assert not user_data().exists(), "asking makes nothing"


def test_a_choice_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ocr cannot be 'sometimes'") as caught:
        load_settings(folder=tmp_path, environment={"CTX_OCR": "sometimes"})
    assert caught.value.hint == "choose one of: auto, off, force"
