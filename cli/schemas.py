"""What `--json` prints, as JSON schemas (draft 2020-12): a document a command, made of the records that it prints."""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any, Literal

import typer

from cli.call import Call, offers
from cli.output import write, write_line
from ingest import CodeCounts, CommitsSummary, FileOutcome, IngestSummary, PageOutcome
from research.answer import CheckedSentence, Prompt, WrittenAnswer
from research.errors import NothingFoundError
from research.evaluation import Failure, Latency, Row
from research.experiences import AxisValues, Experience, LineProblem, Value
from research.governance import MemoryAccessAudit, Proposal, Verification
from research.graph import Edge, ShownGraph
from research.memories import AskedTurn, CitedPage, Memory, Session
from research.models import (
    Confidence,
    Coverage,
    OutlineEntry,
    PageBeginning,
    PageResult,
    ResearchContext,
    SearchResults,
    SourceDocument,
)
from research.packages import ContextPackage
from research.records import CodeTree, DocumentInfo, RepositoryInfo
from research.reports import Backup, Check, Restored, Status
from research.schema import json_schema, maybe, several, shape
from research.service import TokenEntry
from research.sources import ContextItem, FormattedContext

Id = str | int | float | None
Text = str | None
Texts = list[str]
Anything = dict[str, Any]
Types = list[Literal["memories", "code", "experiences", "values", "commits", "documents"]]
Kind = Literal["memory", "code", "experience", "value", "commit", "document"]
Level = Literal["Public", "Internal", "Confidential", "Restricted"]
Withheld = Literal["redacted", "reference_only"]
Axis = Literal["full", "strategy", "surprise", "root_cause"]
Effect = Literal["allow", "redact", "deny"]
Kept = Literal["stored", "joined", "known"]
Legs = dict[str, float]


@cache
def documents() -> dict[str, Any]:
    """Each by its name and version, without its field `schema`."""
    # fmt: off
    sure = shape(Confidence, level=Literal["high", "medium", "low", "none"]) | None
    seen = shape(Coverage, complete=bool)
    page = shape(
        SourceDocument, called="Page", without="markdown_content", citation=int, withheld=maybe(Withheld),
        kind=maybe(Literal["page"]), name=maybe(str),
    )
    thing = shape(
        SourceDocument, called="Thing", only="ref title relevance_score timestamp link cut suspicious legs raw_score",
        citation=int, kind=Literal["code", "commit", "memory", "experience", "value"], name=str, metadata=Anything,
        withheld=maybe(Withheld),
    )
    shown = shape(
        SourceDocument, called="ShownPage",
        only="doc_id filename page page_label extension timestamp source_path image_path section_path parent_heading"
        " ocr ocr_engine thumbnail_path title ref link file_id suspicious markdown_content regions",
        num_headings=int, num_tables=int, num_pictures=int, num_pages=int, error=str,
    )
    document = shape(DocumentInfo, called="Removed", only="doc_id filename num_pages")
    named = shape(DocumentInfo, called="Named", only="doc_id filename")
    whose = "doc_id filename title num_pages source_path"
    items = several(shape(ContextItem, source=Kind))
    context: Anything = {"items": items, "coverage": shape(Coverage, called="Asked", only="sources notes")}
    given_up = several(shape(PageOutcome, without="path", source_path=str))
    governed: Anything = {"classification": Level, "status": Text, "module": Text, "project": Text}
    labels = maybe(several(shape(
        called="Label", target=str, filename=Text, tenant=str, value=str, given_at=str,
        name=Literal["classification", "status", "module", "project"], origin=Literal["user", "mark"],
    )))
    audited = shape(
        MemoryAccessAudit, kind=Literal["access", "restart", "accepted"],
        refs=several(shape(called="Told", ref=str, effect=Effect)),
    )
    token = shape(TokenEntry, only="id principal tenant created_at", expires_at=Text, expired=bool)
    memory = shape(
        Memory, without="outcome", score=float | None, raw_score=float | None, salience=float | None, parts=Legs,
        newer=str,
    )
    return {
        "ask/2": shape(
            ResearchContext, without="session turn follows types", id=maybe(Id), line=maybe(int), confidence=sure,
            answer=shape(WrittenAnswer, sentences=list[CheckedSentence]) | None, sources=several(page | thing),
            coverage=seen, types=maybe(Types), session=maybe(shape(called="Kept", name=str, turn=int)),
        ),
        "audit/1": shape(entries=maybe(several(audited)), entry=maybe(audited), verification=maybe(Verification)),
        "backup/1": shape(Backup, index=str),
        "context/1": shape(FormattedContext, query=str, types=Types, **context),
        "doctor/1": shape(
            summary=shape(called="Summary", ok=int, warn=int, fail=int),
            repairs=maybe(several(shape(Check, called="Repair", only="name message remedy", fixed=bool))),
            checks=several(shape(Check, severity=Literal["ok", "warn", "fail"])),
        ),
        "error/1": shape(id=maybe(Id), line=maybe(int), error=str, hint=str, exit_code=int, trace_id=maybe(str)),
        "eval/2": shape(
            file=str, mode=str, per_doc=bool, questions=int, rankings=list[Row], slice=Text, slices=list[Row],
            latency_seconds=Latency, left_out=Texts, missing_documents=dict[str, int], pages_beyond_end=Texts,
            coverage=seen, failed=several(shape(
                Failure, only="rank leg_ranks right_document", qid=str, query=str, gold=list[list[str | int]],
                returned=several(shape(called="ReturnedPage", filename=str, page=int, raw_score=float)
                                 | shape(called="ReturnedMemory", id=str, raw_score=float)),
            )) | None,
        ),
        "experience/1": shape(
            experience=maybe(Experience), experiences=maybe(list[Experience]), query=maybe(str), notes=maybe(Texts),
            results=maybe(several(shape(
                called="Found", ref=str, axis=Axis, relevance_score=float, raw_score=float, parts=Legs,
                experience=Experience,
            ))),
            removed=maybe(Texts), removed_values=maybe(Texts), problems=maybe(list[LineProblem]),
            imported=maybe(shape(called="Imported", added=int, changed=int, known=int, failed=int, still_open=int)),
            values=maybe(several(shape(Value, axis=Axis))), rebuilt=maybe(
                shape(called="Rebuilt", axes=several(shape(AxisValues, axis=Axis)), without_vectors=int) | None
            ),
        ),
        "forget/1": shape(
            forgotten=Texts, summaries=Texts, would_forget=maybe(several(shape(called="Forgotten", id=str, text=str)))
        ),
        "graph/1": shape(ShownGraph, edges=several(shape(Edge, only="source kind target"))),
        "ingest/2": shape(
            IngestSummary, index=str, added=int, replaced=int, renamed=int, unchanged=int, copy=int, failed=int,
            failed_pages=given_up, waiting_pages=given_up, removed=several(named), code=maybe(CodeCounts),
            files=several(shape(FileOutcome, without="path pages", source_path=str, filename=str, num_pages=int)),
            commits=maybe(CommitsSummary),
        ),
        "init/1": shape(index=str, created=bool),
        "label/1": shape(
            labels=labels, accepted=maybe(bool), proposals=maybe(several(shape(Proposal, classification=Level))),
            things=maybe(several(shape(
                called="Labelled", ref=str, kind=str, filename=Text, source_path=Text, tags=Texts, **governed
            ))),
        ),
        "list/1": shape(
            documents=list[DocumentInfo], repositories=maybe(list[RepositoryInfo]), code=maybe(list[CodeTree])
        ),
        "open/1": shape(SourceDocument, only="doc_id filename page ref source_path link", opened=bool),
        "outline/1": shape(
            DocumentInfo, only=whose, entries=several(shape(OutlineEntry, ref=str, link=str)),
            pages=several(shape(PageBeginning, ref=str, link=str)),
        ),
        "package/1": shape(
            package=maybe(ContextPackage), packages=maybe(list[ContextPackage]),
            told=maybe(shape(called="Feedback", useful=bool, refs=Texts)),
        ),
        "pages/1": shape(DocumentInfo, only=whose, pages=several(shown)),
        "policy/1": shape(
            files=maybe(Texts), policies=maybe(Texts), revision=maybe(Text), example=maybe(str), decision=maybe(shape(
                called="Decision", principal=str, tenant=str, owner=bool, action=Literal["read", "send"], revision=str,
                problem=Text, rulings=several(shape(
                    called="Ruled", ref=str, effect=Effect, text=bool, policies=Texts, kind=str, source_path=Text,
                    tags=Texts, **governed,
                )),
            )),
        ),
        "premortem/1": shape(FormattedContext, domain=str, strategy=Text, **context),
        "prompt/1": shape(Prompt, without="estimate", messages=several(shape(
            called="Message", role=Literal["system", "user"], content=str | several(shape(
                called="Part", type=Literal["text", "image_url"], text=maybe(str),
                image_url=maybe(shape(called="Picture", url=str)),
            )),
        ))),
        "recall/1": shape(query=Text, memories=several(memory), searched=int, notes=Texts),
        "remember/1": shape(
            memories=several(shape(Memory, only="id joined_to", outcome=Kept)), stored=maybe(int), joined=maybe(int),
            known=maybe(int), failed=several(shape(called="FailedLine", line=int, error=str)),
        ),
        "remove/2": shape(
            removed=several(document), would_remove=maybe(several(document)),
            removed_commits=maybe(list[RepositoryInfo]),
            removed_code=maybe(several(shape(called="RemovedCode", path=str, files=int, units=int))),
        ),
        "restore/1": shape(Restored, index=str),
        "search/2": shape(SearchResults, results=list[PageResult], confidence=sure, coverage=seen),
        "serve/1": shape(url=str, login_url=str, token_file=str, index=str, pid=int),
        "sessions/1": shape(
            sessions=maybe(list[Session]), session=maybe(str), turns=maybe(several(shape(
                AskedTurn, without="number", turn=int, sources=several(shape(CitedPage, ref=str))
            ))),
            removed=maybe(shape(called="RemovedSession", name=str, turns=int, memories=int)),
        ),
        "show/2": shown,
        "status/2": shape(Status, chosen_by=str, given_up=several(
            shape(PageOutcome, called="GivenUp", without="path", source_path=str, waits=bool)
        )),
        "tag/1": shape(
            tags=maybe(several(shape(called="Tag", tag=str, documents=several(named)))),
            documents=maybe(several(shape(DocumentInfo, called="Tagged", only="doc_id filename", tags=Texts))),
        ),
        "token/1": shape(
            tokens=maybe(several(token)), token=maybe(str), created=maybe(token), revoked=maybe(several(token))
        ),
        "turn/1": shape(
            system_prompt=str, token_counts=dict[str, int], prompt_tokens=int, debug=Anything,
            messages=several(shape(
                called="Message", role=str, content=str, name=maybe(str), tool_calls=maybe(list[Anything]),
                tool_call_id=maybe(str),
            )),
            snippets=several(shape(
                called="Snippet", id=str, text=str, score=float, base_score=float, recency=float, metadata=Anything
            )),
            documents=several(shape(
                SourceDocument, called="Quoted", only="ref filename page relevance_score", citation=int
            )),
        ),
    }
    # fmt: on


def names() -> list[str]:
    """The documents: one for each command that prints any, and `error`."""
    return [name.partition("/")[0] for name in documents()]


def load(name: str) -> dict[str, Any]:
    """A document's schema, whole."""
    title = next(each for each in documents() if each.partition("/")[0] == name)
    return json_schema(documents()[title], f"ctx.{title}", f"What `ctx … --json` prints as ctx.{title}.")


@offers(without=("index", "as_json"))
def schema(
    call: Call,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A document, or error.", show_default=False)
    ] = None,
) -> int:
    """A JSON schema (draft 2020-12) of the document that `ctx NAME --json` prints. Without a name: the names there are.
    Documents name their own in the field `schema`.

    Examples:
      ctx schema
      ctx schema ask | jq '.["$defs"].source.properties | keys'
    """
    if name is None:
        for each in names():
            write_line(each)
    elif name not in names():
        raise NothingFoundError(f"there is no schema {name!r}", hint=f"there are: {', '.join(names())}")
    else:
        write(json.dumps(load(name), indent=2) + "\n")
    return 0
