"""ctx ask: a question in, cited context out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import (
    AnswerOption,
    AnswerTokensOption,
    BatchOption,
    ExplainOption,
    FullOption,
    ImageOption,
    MaybeQuestionArgument,
    ModelOption,
    ModelUrlOption,
    PassagesOption,
    RerankerOption,
    ShowPromptOption,
    Wanted,
    common,
    settings_for,
)
from research.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cli.options import Common
    from cli.views import Scored
    from research.answer import AnswerWriter, CheckedAnswer
    from research.index import Index
    from research.markdown import Marker
    from research.models import Extent, ResearchContext
    from research.settings import Settings

DETAILS = """
Answers with sentences of your documents, word for word, and the pages they stand on; it writes none of its own. On a
terminal they fit one screen: quotes, sources, what else to type (ctx open 1 shows the page itself). In a pipe stdout is
the context alone, ready for a model; with --json it is one document with sources, scores, what was left out and why.

Where nothing that was found seems to answer the question, it says so, shows the nearest pages and exits with 3;
--min-confidence and --min-score draw the line elsewhere.

Where the pages found do not all fit into the budget, each gives the passage that fits the question first, then more
of its page while there is room; […] stands for what is left out.

With a model of your own (--answer, or `model` in your config) it also writes an answer from the sources, and checks
each sentence beside what it cites: ✓ carried, ? doubtful, ✗ not found there or uncited. The model gets the question and
the sources, nothing else (--show-prompt); its key is CTX_MODEL_KEY's. If it fails, the quotes are shown all the same.

With --types other sources are cited beside documents, or instead of them: code, commits, memories, experiences, values;
whatever fits best, each under a number and a header of its kind. Any of them is quoted, and how sure the answer is
tells of the first quote. --doc and the like restrict documents alone.

With --session the question is kept in the index, and may lean on those before it in the session ("what are its
limitations?"): it is then searched with their words, and says so. ctx chat asks one after the other; ctx sessions lists
and removes them.
"""

EPILOG = """
\b
Examples:
  ctx ask "What caused the 2008 crisis?"
  ctx ask "How is the index locked?" --doc manual.pdf --max-tokens 4000
  ctx ask "What is new?" --under ./reports --since 2026-05 --not-doc 'draft*'
  ctx ask "What is the method?" --doc RAPTOR --pages 3-5,8
  ctx ask "Which deductions apply?" --tag tax --tag 2025
  ctx ask "How is the index locked?" --html answer.html
  ctx ask "Why are uploads retried?" --types documents,code,commits,memories
  ctx ask "Is asbestos mentioned?" --min-confidence medium --quiet && echo yes
  ctx ask "Wer haftet?" | llm "Answer from these sources, with citations"
  ctx ask "What is new?" --json | jq -r '.sources[] | "\\(.filename):\\(.page)"'
  ctx ask "How is the index locked?" --answer --model llama3.2 --model-url http://127.0.0.1:11434
  ctx ask --session thesis "How long is the guarantee?" && ctx ask --session thesis "And for the wind vane?"
  echo "a question from a file" | ctx ask -
  ctx ask --batch questions.jsonl | jq -c .quotes
"""

DOOR = "ctx ask"

HtmlOption = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write the answer as one HTML page with pictures; - is stdout."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="With --html: replace FILE if it exists.")]


def command(
    ctx: typer.Context,
    *,
    question: MaybeQuestionArgument = None,
    reranker: RerankerOption = None,
    passages: PassagesOption = False,
    full: FullOption = False,
    explain: ExplainOption = False,
    batch: BatchOption = None,
    html: HtmlOption = None,
    force: ForceOption = False,
    answer: AnswerOption = None,
    model: ModelOption = None,
    model_url: ModelUrlOption = None,
    max_answer_tokens: AnswerTokensOption = None,
    show_prompt: ShowPromptOption = False,
    image: ImageOption = False,
) -> int:
    from cli.kept import remember
    from cli.options import asked_for, check_legs, make_ready, opened, read_question
    from cli.output import on_terminal, write_document
    from cli.views import end, nearest, nothing_found

    given = common(ctx)
    _check_html(html, force=force, other="--json" if given.as_json else "--batch" if batch is not None else "")
    wanted = Wanted(answer, show_prompt, image, alone="--batch" if batch is not None else "--html" if html else "")
    wanted.check(model)
    asked = read_question(question or (), quiet=given.quiet) if batch is None else _no_question(question)
    request = asked_for(ctx, DOOR, asked)
    request = replace(request, extent=_extent(passages, full), highlights=given.as_json or html is not None)
    if request.session is not None and batch is not None:
        raise UsageError("--session and --batch exclude each other", hint="leave one of them out")
    settings = settings_for(
        given, reranker=reranker, model=model, model_url=model_url, max_answer_tokens=max_answer_tokens
    )
    with opened(settings) as found, _writer(found, wanted) as writer:
        if batch is not None:
            from cli.batch import answer_batch

            return answer_batch(found, batch, given, request)
        make_ready(found, given, request.types)
        context = found.ask(request)
        best = nearest(context)
        nothing = nothing_found(found, request, context.confidence, best)
        if best is None or request.types is None:  # else another source has answered
            check_legs(context.coverage)
        if show_prompt:
            from cli.written_answer import show_prompt as print_prompt

            return print_prompt(found, wanted, context, given)
        drawn = on_terminal() and not given.as_json and html is None and bool(context.sources or context.dropped)
        written = None if writer is None else _written(writer, context, shown=not given.as_json)
        if written is not None and context.turn:
            found.keep_answer(context, written)
    remember(found.root, [source.ref for source in context.sources])
    if given.as_json:
        from cli.batch import answer_document

        write_document("ctx.ask/2", answer_document(context, written))
    elif html is not None:
        from cli.html_page import write_page
        from cli.views import screen_notes

        notes = [note.text for note in screen_notes(context)]
        write_page(html, context, partial(found.documents.matches, question=_looked_for(context)), notes)
    elif drawn:
        mark = partial(found.documents.matches, question=_looked_for(context))
        _show(context, mark, settings, explain=explain, full=full, answer=written)
    else:
        _write_plain(context, explain=explain, answer=written)
    if not drawn and not given.quiet:
        _talk(context)
    code = end(nothing, told=drawn and not full and bool(context.sources))
    return code if written is None else _ended(written, code, drawn=drawn, given=given)


def _looked_for(context: ResearchContext) -> str:
    """What is marked: the question's words, and those it leans on."""
    return context.searched if context.follows else context.query


def _writer(index: Index, wanted: Wanted) -> AbstractContextManager[AnswerWriter | None]:
    """Nothing of it is loaded where no model is asked."""
    if not wanted.written(index.settings):
        return nullcontext()
    from cli.written_answer import writer_for

    return writer_for(index, wanted)


def _written(writer: AnswerWriter, context: ResearchContext, *, shown: bool) -> CheckedAnswer:
    from cli.output import on_terminal, screen_size
    from cli.written_answer import streamed

    if not shown:
        return writer.write(context)
    return streamed(writer, context, screen_size()[0] if on_terminal() else 0)


def _ended(answer: CheckedAnswer, code: int, *, drawn: bool, given: Common) -> int:
    """What is left to say of a written answer, and the exit code: a model that fails costs nothing but its answer."""
    from cli.written_answer import INTERRUPTED, tell_marks, tell_trouble

    if not (given.as_json or drawn or given.quiet):
        tell_marks(answer)
    if code == 0 or answer.written.text:  # else it is told already that nothing was found
        tell_trouble(answer, quiet=given.quiet)
    return INTERRUPTED if answer.written.interrupted else code


def _check_html(html: str | None, *, force: bool, other: str) -> None:
    """Raise before anything is searched if the page could not be written."""
    if html is None:
        return
    if other:
        raise UsageError(f"--html and {other} are two answers", hint="ask twice, or use --html alone")
    from cli.html_page import check_place

    check_place(html, force=force)


def _no_question(words: list[str] | None) -> str:
    if words:
        raise UsageError("--batch reads the questions from its file", hint="leave the question out, or --batch")
    return ""


def _extent(passages: bool, full: bool) -> Extent:
    if passages and full:
        raise UsageError("--passages and --full exclude each other", hint="leave one of them out")
    return "passages" if passages else "pages" if full else "fit"


def _write_plain(context: ResearchContext, *, explain: bool, answer: CheckedAnswer | None) -> None:
    from cli.output import say, write
    from research.text import block

    if answer is not None:
        from cli.written_answer import write_sources

        write_sources(context, answer)
    elif context.formatted_text:
        write(block(context.formatted_text) + "\n")
    if explain:
        from cli.views import explain_lines, rewrite_lines

        for line in (*rewrite_lines(context.searched, context.rewrites), *explain_lines(_scored(context))):
            say(line)


def _talk(context: ResearchContext) -> None:
    """Notes for a reader who does not see the rendering."""
    from cli.options import notes_on
    from cli.output import say

    notes = [*_documents_notes(context), *notes_on(context.coverage)]
    if context.follows:
        from cli.views import follow_note

        notes.insert(0, follow_note(context))
    if context.truncated:
        from cli.views import budget_notes

        notes += budget_notes(context)
    for note in notes:
        say(f"ctx: note: {note}")


def _documents_notes(context: ResearchContext) -> list[str]:
    if context.answered_by != "documents":
        return []
    from cli.views import documents_note

    return [documents_note(sum(bool(source.page) for source in context.sources))]


def _show(
    context: ResearchContext,
    mark: Marker,
    settings: Settings,
    *,
    explain: bool,
    full: bool,
    answer: CheckedAnswer | None,
) -> None:
    """On a terminal: one screen, or with `full` the pages in a pager. A written answer stands above it already, and
    keeps its place as far as the half of the screen."""
    from cli.answer_view import Screen, answer_lines
    from cli.layout import has_links
    from cli.output import paint, painted, screen_size
    from cli.programs import page
    from cli.views import screen_notes

    screen, notes = Screen(*screen_size()), screen_notes(context)
    if answer is not None:
        from cli.written_answer import paint_marks, rows

        above = rows(answer, screen.width) + paint_marks(answer)
        screen = replace(screen, height=max(screen.height - above, screen.height // 2))
    if full:
        from cli.answer_view import full_rendering

        page(painted(full_rendering(context, screen, mark, notes)))
    else:
        lines = answer_lines(context, screen, mark, notes)
        if len(lines) < screen.height and has_links(settings.links):  # in a pager, an older less shows their escapes
            lines = answer_lines(context, replace(screen, links=True), mark, notes)
        page(painted(lines))
    if explain:
        paint(_explanation(context))


def _explanation(context: ResearchContext) -> Iterator[RenderableType]:
    from cli.views import explain_table, plain, rewrite_lines

    yield from (plain(line, "dim") for line in rewrite_lines(context.searched, context.rewrites))
    yield explain_table(_scored(context))


def _scored(context: ResearchContext) -> list[Scored]:
    from cli.views import Scored

    return [
        Scored(number, s.filename, s.page, s.page_label, s.section_path or "", s.relevance_score, s.legs)
        for number, s in context.get_citation_map().items()
    ]
