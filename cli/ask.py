"""ctx ask, search: a question in; cited context out, or ranked pages with a snippet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.call import Call, offers
from cli.options import AnswerOption, ExplainOption, ModelOption, QuestionArgument
from cli.output import (
    check_legs,
    end,
    nothing_found,
    on_terminal,
    paint,
    screen_size,
    terminal_name,
    write,
    write_document,
)
from research.context import answer_view, coverage_notes, documents_note, page_name
from research.errors import UsageError
from research.text import block, phrase

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text

    from cli.answer import Screen
    from research.answer import AnswerWriter, CheckedAnswer
    from research.index import Index
    from research.markdown import Marker
    from research.models import ResearchContext, SearchResults
    from research.settings import Settings


_INDENT = 5
_LINES = 2  # of the sentence that fits


@offers(door="ctx ask", acting=True)
def ask(
    call: Call,
    question: QuestionArgument = None,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Whole pages, until the budget is full; on a terminal through a pager.")
    ] = False,
    explain: ExplainOption = False,
    batch: Annotated[
        str | None,
        typer.Option("--batch", metavar="FILE|-", help="Answer a question a line, with a JSON document a line."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write the answer as one HTML page with pictures; - is stdout."),
    ] = None,
    answer: AnswerOption = None,
    model: ModelOption = None,
    show_prompt: Annotated[
        bool, typer.Option("--show-prompt", help="Print what the model would get, and send nothing.")
    ] = False,
) -> int:
    """Answers with sentences of your documents, word for word, and the pages they stand on; it writes none of its own.
    On a terminal they fit one screen: quotes, sources, what else to type (ctx open 1 shows the page itself). In a pipe
    stdout is the context alone, ready for a model; with --json it is one document with sources, scores, what was left
    out and why.

    Where nothing that was found seems to answer the question, it says so, shows the nearest pages and exits with 3;
    --min-confidence draws the line elsewhere.

    Where the pages found do not all fit into the budget, each gives the passage that fits the question first, then more
    of its page while there is room; […] stands for what is left out.

    With a model of your own (--answer, or `model` in your config) it also writes an answer from the sources, and checks
    each sentence beside what it cites: ✓ carried, ? doubtful, ✗ not found there or uncited. The model gets the question
    and the sources, nothing else (--show-prompt); where it is says CTX_MODEL_URL, its key is CTX_MODEL_KEY's. If it
    fails, the quotes are shown all the same.

    With --types other sources are cited beside documents, or instead of them: code, commits, memories, experiences,
    values; whatever fits best, each under a number and a header of its kind. --doc and the like restrict documents
    alone.

    With --session the question is kept in the index, and may lean on those before it in the session ("what are its
    limitations?"): it is then searched with their words, and says so. ctx chat asks one after the other; ctx session
    lists and removes them.

    Examples:
      ctx ask "What caused the 2008 crisis?"
      ctx ask "How is the index locked?" --doc manual.pdf --max-tokens 4000
      ctx ask "What is new?" --under ./reports --since 2026-05 --not-doc 'draft*'
      ctx ask "Which deductions apply?" --tag tax --tag 2025
      ctx ask "How is the index locked?" --html answer.html
      ctx ask "Why are uploads retried?" --types documents,code,commits,memories
      ctx ask "Is asbestos mentioned?" --min-confidence medium --quiet && echo yes
      ctx ask "Wer haftet?" | llm "Answer from these sources, with citations"
      ctx ask "What is new?" --json | jq -r '.sources[] | "\\(.filename):\\(.page)"'
      ctx ask "How is the index locked?" --answer --model llama3.2
      ctx ask --session thesis "How long is the guarantee?" && ctx ask --session thesis "And for the wind vane?"
      echo "a question from a file" | ctx ask -
      ctx ask --batch questions.jsonl | jq -c .quotes
    """
    _check_options(call, question, batch=batch, html=html, answer=answer, model=model, show_prompt=show_prompt)
    request = call.request("ctx ask", "" if batch is not None else call.question(question))
    request = replace(request, extent="pages" if full else "fit", highlights=call.as_json or html is not None)
    settings = call.settings(model=model)
    written_wanted = bool(settings.model) if answer is None else answer
    asks_model = written_wanted and not show_prompt and batch is None and html is None
    with call.opened(settings) as index, _writer(index) if asks_model else nullcontext() as writer:
        if batch is not None:
            from cli.batch import answer_batch

            return answer_batch(call, index, batch, request)
        call.prepare(index, request.types)
        context = index.ask(request)
        best = context.sources[0] if context.sources else context.dropped[0] if context.dropped else None
        nothing = nothing_found(index, request, context.confidence, best)
        if best is None or request.types is None:  # else another source has answered
            check_legs(context.coverage)
        if show_prompt:
            return _show_prompt(call, index, context)
        drawn = on_terminal() and not call.as_json and html is None and best is not None
        written = None
        if writer is not None:
            written = _written(writer, context, shown=not call.as_json)
            if context.turn:
                index.keep_answer(context, written)
        keep_numbers(index.root, [source.ref for source in context.sources])
        asked = context.searched if context.follows else context.query
        if call.as_json:
            write_document("ctx.ask/2", answer_document(context, written))
        elif html is not None:
            from cli.html import write_page

            write_page(html, context, partial(index.documents.matches, question=asked))
        elif drawn:
            _draw(context, partial(index.documents.matches, question=asked), settings, full=full, answer=written)
        else:
            _write_plain(context, written)
    if explain and not call.as_json and html is None:
        from cli.answer import explain as explain_scores

        explain_scores(context.searched, context.rewrites, context.get_citation_map())
    for note in [] if drawn else answer_view(context).notes:
        call.note(note.text)
    code = end(nothing, told=drawn and not full and bool(context.sources))
    return code if written is None else _ended(call, written, code, drawn=drawn)


def _check_options(
    call: Call,
    question: Sequence[str] | None,
    *,
    batch: str | None,
    html: str | None,
    answer: bool | None,
    model: str | None,
    show_prompt: bool,
) -> None:
    """Raise UsageError for options that exclude each other, before anything is searched."""
    if batch is not None and question:
        raise UsageError("--batch reads the questions from its file", hint="leave the question out, or --batch")
    if batch is not None and call.typed.get("session") is not None:
        raise UsageError("--session and --batch exclude each other", hint="leave one of them out")
    alone = "--batch" if batch is not None else "--html" if html is not None else ""
    if html is not None and (call.as_json or batch is not None):
        other = "--json" if call.as_json else "--batch"
        raise UsageError(f"--html and {other} are two answers", hint="ask twice, or use --html alone")
    asked = "--show-prompt" if show_prompt else "--answer" if answer else "--model" if model and answer is None else ""
    if alone and asked:
        raise UsageError(f"{alone} has no written answers, and {asked} asks for one", hint="leave one of them out")
    if answer is False and show_prompt:
        raise UsageError("--no-answer and --show-prompt exclude each other", hint="leave one of them out")
    if html is not None:
        from cli.html import check_place

        check_place(html)


def _writer(index: Index) -> AbstractContextManager[AnswerWriter]:
    """Nothing of it is loaded where no model is asked."""
    from cli.answer import writer_for

    return writer_for(index)


def keep_numbers(index: Path, refs: Sequence[str]) -> None:
    """Let `ctx open 2` know what 2 is, at a terminal."""
    if terminal_name():
        from cli.session import keep_sources

        keep_sources(index, refs)


def answer_document(context: ResearchContext, answer: CheckedAnswer | None = None) -> dict[str, Any]:
    """The fields of `ctx.ask/2`. A page's text is in them once, in `formatted_text`."""
    document = {**context.to_dict(), "answer": None if answer is None else answer.to_dict()}
    for source in document["sources"]:
        del source["markdown_content"]
    return document


def _show_prompt(call: Call, index: Index, context: ResearchContext) -> int:
    """Exactly what would be sent; nobody is contacted."""
    prompt = index.prompt(context, with_pictures=index.settings.model_images)
    if call.as_json:
        facts = {name: getattr(prompt, name) for name in ("tokens", "sources", "shortened", "dropped")}
        write_document("ctx.prompt/1", {"messages": [each.to_dict() for each in prompt.messages], **facts})
    else:
        for message in prompt.messages:
            pictures = f"\n[{len(message.pictures)} pictures of pages]\n" if message.pictures else ""
            write(f"--- {message.role} ---\n{block(message.text)}\n{pictures}\n")
    if prompt.note:
        call.note(prompt.note)
    return 0


def _written(writer: AnswerWriter, context: ResearchContext, *, shown: bool) -> CheckedAnswer:
    from cli.answer import streamed

    return streamed(writer, context, screen_size()[0] if on_terminal() else 0) if shown else writer.write(context)


def _draw(
    context: ResearchContext, mark: Marker, settings: Settings, *, full: bool, answer: CheckedAnswer | None
) -> None:
    """On a terminal: one screen, or with `full` the pages in a pager. A written answer stands above it already, and
    keeps its place as far as the half of the screen."""
    from cli.answer import Screen, answer_lines, full_answer, paint_check, rows, screen_view
    from cli.layout import has_links
    from cli.output import page, painted

    screen, view = Screen(*screen_size()), screen_view(context)
    if answer is not None:
        above = rows(answer, screen.width) + paint_check(answer, screen.width)
        screen = replace(screen, height=max(screen.height - above, screen.height // 2))
    if full:
        page(painted(full_answer(view, screen, mark)))
        return
    lines = answer_lines(view, screen, mark)
    if len(lines) < screen.height and has_links(settings.links):  # in a pager, an older less shows their escapes
        lines = answer_lines(view, replace(screen, links=True), mark)
    page(painted(lines))


def _write_plain(context: ResearchContext, answer: CheckedAnswer | None) -> None:
    """In a pipe: the context, ready for a model; or what a model wrote of it, and what its numbers stand for."""
    if answer is None:
        write(block(context.formatted_text) + "\n" if context.formatted_text else "")
        return
    from cli.answer import screen_view, write_quotes, write_sources

    view = screen_view(context)
    write("\n" if answer.written.text else "")
    if not answer.written.finished:
        write_quotes(view)
        write("\n")
    write("Sources:\n" if context.sources else "")
    write_sources(view)


def _ended(call: Call, answer: CheckedAnswer, code: int, *, drawn: bool) -> int:
    """What is left to say of a written answer, and the exit code: a model that fails costs nothing but its answer."""
    from cli.answer import INTERRUPTED, tell_check, tell_trouble

    if not (call.as_json or drawn or call.quiet):
        tell_check(answer)
    if code == 0 or answer.written.text:  # else it is told already that nothing was found
        tell_trouble(answer, quiet=call.quiet)
    return INTERRUPTED if answer.written.interrupted else code


@offers(door="ctx search", acting=True)
def search(call: Call, question: QuestionArgument = None, *, explain: ExplainOption = False) -> int:
    """Shows of each page the sentence that fits best, with the words that fit in bold; ctx open 1 shows the page
    itself. Where nothing seems to answer, it says so, and exits with 3. In a pipe each result is one line of
    tab-separated fields: rank, score, file:page, snippet.

    Examples:
      ctx search "interest rate risk"
      ctx search "interest rate risk" --mode lexical --num-results 3
      ctx search "interest rate risk" --doc 'papers/*' --not-doc survey.pdf --pages 1-10
      ctx search "interest rate risk" --json | jq '.results[0]'
    """
    asked = call.question(question)
    request = call.request("ctx search", asked)
    settings = call.settings()
    with call.opened(settings) as index:
        call.prepare(index)
        found = index.search(request, highlights=call.as_json)
        nothing = nothing_found(index, request, found.confidence, next(iter(found.results), None))
        check_legs(found.coverage)
        keep_numbers(index.root, [result.ref for result in found.results])
        if on_terminal() and not call.as_json:
            from cli.answer import Screen
            from cli.layout import has_links

            screen = Screen(*screen_size(), has_links(settings.links))
            paint(_search_lines(found, partial(index.documents.matches, question=asked), screen))
        else:
            lines = (
                (each.citation, f"{each.relevance_score:.3f}", f"{each.filename}:{each.page}", phrase(each.snippet))
                for each in found.results
            )
            call.show("ctx.search/2", found.to_dict() if call.as_json else {}, lines)
    if explain and not call.as_json:
        from cli.answer import explain as explain_scores

        explain_scores(found.searched, found.rewrites, {each.citation: each for each in found.results})
    if found.answered_by == "documents":
        call.note(documents_note(len(found.results)))
    for note in coverage_notes(found.coverage):
        call.note(note)
    return end(nothing)


def _search_lines(found: SearchResults, mark: Marker, screen: Screen) -> Iterator[Text]:
    """Two lines of each sentence where the screen has them."""
    from cli.answer import page_line
    from cli.layout import excerpt, passage_lines
    from research.markdown import Block

    count = _LINES if len(found.results) * (1 + _LINES) <= screen.room else 1
    width = screen.width - _INDENT
    for each in found.results:
        yield page_line(
            screen,
            f"[{each.citation}]".rjust(_INDENT - 1),
            each.filename,
            page_name(each.page, each.page_label),
            section=each.section_path or "",
            uri=each.link,
            score=f"  {each.relevance_score:.3f}",
        )
        sentence = passage_lines([Block("text", " ".join(block(each.snippet).split()))], width, mark)
        yield from excerpt(sentence, count, width, indent=_INDENT)
