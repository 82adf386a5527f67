"""The options of `ctx ask` for a model of the user's own, and whether it is to be asked at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from research.errors import UsageError

if TYPE_CHECKING:
    from research.settings import Settings

AnswerOption = Annotated[
    bool | None,
    typer.Option(
        "--answer/--no-answer",
        help="Let your model write an answer from the sources, each sentence checked. Default: if one is named.",
        show_default=False,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Your model, as its server calls it; local: the one of the extra."),
]
ModelUrlOption = Annotated[
    str | None,
    typer.Option("--model-url", metavar="URL", help="Where it is: any OpenAI-compatible address."),
]
AnswerTokensOption = Annotated[
    int | None,
    typer.Option("--max-answer-tokens", metavar="N", help="How much it may write. Default: 600."),
]
ShowPromptOption = Annotated[
    bool, typer.Option("--show-prompt", help="Print what the model would get, and send nothing.")
]
ImageOption = Annotated[
    bool, typer.Option("--image", help="Send pictures of the first pages, too, to a model that takes them.")
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a model. `answer` None: what the settings say."""

    answer: bool | None = None
    show_prompt: bool = False
    pictures: bool = False
    alone: str = ""  # an option that has no room for an answer

    def check(self, model: str | None) -> None:
        """Raise UsageError for options that exclude each other; `model` is the one of this call."""
        asked = next(
            (name for name, given in (("--show-prompt", self.show_prompt), ("--answer", self.answer)) if given),
            "--model" if model and self.answer is None else "",
        )
        if self.alone and asked:
            raise UsageError(
                f"{self.alone} has no written answers, and {asked} asks for one", hint="leave one of them out"
            )
        if self.answer is False and self.show_prompt:
            raise UsageError("--no-answer and --show-prompt exclude each other", hint="leave one of them out")

    def written(self, settings: Settings) -> bool:
        """Whether a model is asked: by the flag, or because the user has named one."""
        if self.show_prompt or self.alone:
            return False
        return bool(settings.model) if self.answer is None else self.answer
