"""What context and premortem share: their options, and how a context of several sources is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.options import Common
    from research.sources.records import FormattedContext


def show(kind: str, asked: dict[str, object], found: FormattedContext, given: Common) -> int:
    """The context on stdout, what there is to say about it on stderr; the exit code."""
    from cli.output import on_terminal, write, write_document
    from research.visible_text import block

    if found.failed:
        raise _failure(found)
    if given.as_json:
        write_document(f"ctx.{kind}/1", {**asked, **found.to_dict()})
    elif found.markdown:
        write(f"{block(found.markdown) if on_terminal() else found.markdown}\n")
    if not given.quiet:
        _tell(found)
    return _end(kind, found)


def _tell(found: FormattedContext) -> None:
    from cli.output import say
    from research.visible_text import one_line

    for source in found.coverage.sources:
        if source.status == "down":
            say(f"ctx: note: {source.name} could not be asked ({one_line(source.reason)}); the others answer")
    for note in found.coverage.notes:
        say(f"ctx: note: {one_line(note)}")


def _end(kind: str, found: FormattedContext) -> int:
    from cli.nothing_found import end
    from research.errors import NothingFoundError

    if found.items:
        return 0
    if found.left_out:
        more = sum(found.left_out.values())
        return end(
            NothingFoundError(f"none of {more} items fits into {found.max_tokens} tokens", hint="raise --max-tokens")
        )
    hints = {"premortem": "tell what is tried, and what comes of it, with: ctx experience start"}
    return end(NothingFoundError("nothing found", hint=hints.get(kind, "see what there is with: ctx status")))


def _failure(found: FormattedContext) -> Exception:
    from research.errors import CtxError

    reasons = "; ".join(f"{each.name}: {each.reason}" for each in found.coverage.sources)
    return CtxError(f"no source could be asked: {reasons}", hint="check the index with: ctx doctor")
