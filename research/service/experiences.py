"""Experiences over HTTP: told in one request, or in two, before something is tried and after. For the owner alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from research.experiences.intake import LONGEST_TEXT, MOST_ITERATIONS
from research.experiences.records import Experience
from research.service.answers import json_response
from research.service.problems import Problem
from research.service.schemas import Body, answer

if TYPE_CHECKING:
    from research.index import Index
    from research.service.service import Service

_Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
_Name = Annotated[str, Field(max_length=100)]


class ExperienceBody(Body):
    """A new experience, open or closed; or, by the id of one that is open, what changed, or its outcome."""

    id: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$")] | None = None
    goal: _Text | None = Field(default=None, description="What is wanted.")
    hypothesis: _Text | None = Field(default=None, description="What is believed.")
    action: _Text | None = Field(default=None, description="What is done about it.")
    prediction: _Text | None = Field(default=None, description="What will happen if that is right.")
    domain: _Name | None = Field(default=None, examples=["debugging"])
    strategy: _Name | None = Field(default=None, examples=["root-cause-analysis"])
    outcome: Literal["confirmed", "falsified", "abandoned"] | None = Field(
        default=None, description="Without one it is open, and found by no question yet."
    )
    outcome_result: _Text | None = Field(default=None, description="What came of it. With an outcome it is needed.")
    surprise: _Text | None = None
    root_cause: _Text | None = None
    lesson: _Text | None = None
    confidence_tier: Literal["gold", "silver", "bronze", "abandoned"] | None = Field(
        default=None, description="By outcome and iterations, if nobody says."
    )
    iteration_count: Annotated[int, Field(ge=1, le=MOST_ITERATIONS)] | None = None


ExperienceDocument = answer("ExperienceDocument", Experience)


def experiences_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["experiences"])

    @router.post(
        "/api/experiences",
        summary="Record what was tried, and what came of it; durable when it is answered",
        response_class=Response,
        responses={
            200: {"model": ExperienceDocument},
            403: {"description": "Only the owner may tell experiences"},
        },
    )
    async def record(body: ExperienceBody, request: Request) -> Response:
        from research.service.app import problem_response

        if not request.state.caller.owner:
            hint = "use the owner's token; it lies in the file that ctx serve names at its start"
            problem = Problem(403, "Only the owner may tell experiences", hint=hint)
            return problem_response(problem, str(getattr(request.state, "request_id", "")))

        def work(index: Index) -> dict[str, Any]:
            experience = index.record_experience(**body.model_dump(exclude_none=True))
            if not experience.is_open:
                index.renew_values()
            return experience.to_dict()

        told = await service.anyway(work, question=False)
        return json_response({"schema": "ctx.research.experience/1", **told})

    return router
