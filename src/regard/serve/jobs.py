"""What the models are asked to do: texts to answer together, or one thing alone."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from regard.core.errors import UserError
from regard.search.callbacks import Outputs, PartialHypothesis, SearchCancelled
from regard.serve.api_errors import later
from regard.serve.served_models import Served
from regard.tasks.batches import Work, rows_together
from regard.tasks.values import Constraints, Prediction

TOO_LONG = "the answer took too long; ask for less: a shorter text, a narrower beam"


@dataclass(eq=False)
class Job:
    """A text of a request, or a request. duty: what is to be done; jobs with equal duties are done
    together. future: done also when nobody waits for it any more. number: the place of the text in
    its request; several: whether it has others; ahead: characters of those before it. grow: is
    told the output so far. outcome: a result, or what went wrong.
    """

    duty: "Asking | Errand"
    future: "asyncio.Future[Any]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    text: str = ""
    constraints: Constraints | None = None
    number: int = 0
    several: bool = False
    ahead: int = 0
    grow: Callable[[PartialHypothesis], None] | None = None
    arrived: float = field(default_factory=time.monotonic)
    outcome: Any = None


@dataclass(frozen=True)
class Asking:
    """Texts for a model."""

    model: Served
    search: Any
    nbest: int = 1
    align: bool = False

    def run(self, jobs: Sequence[Job], until: float) -> None:
        """Answer all together; where that fails in halves, so that who is to blame fails alone."""
        jobs = [job for job in jobs if not job.future.done() and job.outcome is None]
        if not jobs:
            return
        task, threads = self.model.task, torch.get_num_threads()
        rows = rows_together(len(jobs), threads) if task.spreads else len(jobs)
        work = Work(
            numbers=[job.number for job in jobs],
            step_callback=partial(_follow, jobs, until),
            done=lambda count: _stop_when_gone(jobs, until),
            answered=partial(_keep, jobs),
        )
        try:
            sources = [task.parse(job.text) for job in jobs]
            wished = any(job.constraints is not None for job in jobs)
            constraints = [job.constraints or Constraints() for job in jobs] if wished else None
            predict = self.model.predictor.predict
            found = predict(sources, self.search, self.nbest, constraints, self.align, rows, work)
            _keep(jobs, range(len(jobs)), found)
        except SearchCancelled:
            for job in jobs:
                if job.outcome is None:  # others were answered before the time was over
                    job.outcome = later(TOO_LONG)
        except Exception as error:
            if len(jobs) == 1:
                named = jobs[0].several and isinstance(error, UserError)
                jobs[0].outcome = UserError(f"texts.{jobs[0].number}: {error}") if named else error
                return
            self.run(jobs[: len(jobs) // 2], until)
            self.run(jobs[len(jobs) // 2 :], until)


@dataclass(frozen=True, eq=False)
class Errand:
    """Something that is done alone. call: is given what it calls between its steps, which may
    cancel it."""

    call: Callable[[Callable[[], None]], Any]

    def run(self, jobs: Sequence[Job], until: float) -> None:
        """Do it, unless nobody waits for it."""
        (job,) = jobs
        try:
            job.outcome = self.call(lambda: _stop_when_gone(jobs, until))
        except SearchCancelled:
            job.outcome = later(TOO_LONG)
        except Exception as error:
            job.outcome = error


def _stop_when_gone(jobs: Sequence[Job], until: float) -> None:
    """End a search that nobody waits for, or that takes too long."""
    if time.monotonic() > until or all(job.future.done() for job in jobs):
        raise SearchCancelled


def _follow(jobs: Sequence[Job], until: float, places: Sequence[int], outputs: Outputs) -> None:
    """Tell those who look on how far their answers are."""
    _stop_when_gone(jobs, until)
    if any(job.grow for job in jobs):
        for place, so_far in zip(places, outputs(), strict=True):
            job = jobs[place]
            if job.grow is not None and not job.future.done():
                job.grow(so_far)


def _keep(jobs: Sequence[Job], places: Sequence[int], answers: Sequence[Prediction]) -> None:
    for place, answer in zip(places, answers, strict=True):
        jobs[place].outcome = answer
