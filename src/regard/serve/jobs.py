"""What the runner is asked to do: texts to answer together, or one thing alone."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from regard.core.errors import UserError
from regard.inference.engine import FEW
from regard.search.callbacks import Begun, Outputs, Unwanted
from regard.serve.api_errors import later
from regard.serve.served_models import Served
from regard.tasks.batches import Work
from regard.tasks.task import Prediction
from regard.tasks.values import Request

PATIENCE = 0.001  # seconds that a text stands back for each character of it and of those before it
LONGEST = 5.0  # seconds that it stands back, at most


class Duty(Protocol):
    """What is to be done. Jobs with equal duties are done together."""

    def run(self, jobs: Sequence["Job"], until: float) -> None:
        """Gives each job its outcome; stops soon after `until`, or when all are gone."""


@dataclass(eq=False)
class Job:
    """A text of a request, or a request. number: the place of the text in its request; at: how
    that place is named, where there are several; ahead: characters of the texts before it there.

    grow: is told the output so far. outcome: a result, or what went wrong.
    """

    duty: Duty
    future: "asyncio.Future[Any]"
    text: str = ""
    request: Request | None = None
    number: int = 0
    at: str = ""
    ahead: int = 0
    grow: Callable[[Begun], None] | None = None
    arrived: float = field(default_factory=time.monotonic)
    outcome: Any = None

    @property
    def gone(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.future.done()

    @property
    def turn(self) -> float:
        """Who has the least is next: long texts, and those far down a list, let others pass."""
        return self.arrived + min(LONGEST, PATIENCE * (self.ahead + len(self.text)))


def stop_when_gone(jobs: Sequence[Job], until: float) -> None:
    """Ends a search that nobody waits for, or that takes too long."""
    if time.monotonic() > until or all(job.gone for job in jobs):
        raise Unwanted


@dataclass(frozen=True)
class Asking:
    """Texts for a model."""

    model: Served
    search: Any
    nbest: int = 1
    align: bool = False

    def run(self, jobs: Sequence[Job], until: float) -> None:
        """Answers all together; where that fails in halves, so that who is to blame fails alone."""
        jobs = [job for job in jobs if not job.gone and job.outcome is None]
        if not jobs:
            return
        try:
            for job, found in zip(jobs, self._predict(jobs, until), strict=True):
                job.outcome = found
        except Unwanted:
            for job in jobs:
                if job.outcome is None:  # others were answered before the time was over
                    job.outcome = _too_long()
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].outcome = _blamed(error, jobs[0].at)
                return
            self.run(jobs[: len(jobs) // 2], until)
            self.run(jobs[len(jobs) // 2 :], until)

    def _predict(self, jobs: Sequence[Job], until: float) -> list[Prediction]:
        task, predictor = self.model.task, self.model.predictor
        sources = [task.parse(job.text) for job in jobs]
        growing = any(job.grow for job in jobs)

        def follow(places: Sequence[int], outputs: Outputs) -> None:
            stop_when_gone(jobs, until)
            if growing:
                _grow(jobs, places, outputs)

        def done(count: int) -> None:
            stop_when_gone(jobs, until)

        def answered(places: Sequence[int], answers: Sequence[Prediction]) -> None:
            for place, answer in zip(places, answers, strict=True):
                jobs[place].outcome = answer

        numbers = [job.number for job in jobs]
        work = Work(numbers=numbers, follower=follow, done=done, answered=answered)
        share = max(FEW, -(-len(jobs) // torch.get_num_threads()))  # each thread has its own
        rows = share if task.spreads else len(jobs)
        wished = any(job.request is not None for job in jobs)
        requests = [job.request or Request() for job in jobs] if wished else None
        return predictor.predict(sources, self.search, self.nbest, requests, self.align, rows, work)


def _too_long() -> Exception:
    return later("the answer took too long; ask for less: a shorter text, a narrower beam")


def _grow(jobs: Sequence[Job], places: Sequence[int], outputs: Outputs) -> None:
    """Tells those who look on how far their answers are."""
    for place, so_far in zip(places, outputs(), strict=True):
        job = jobs[place]
        if job.grow is not None and not job.gone:
            job.grow(so_far)


@dataclass(frozen=True, eq=False)
class Errand:
    """Something that is done alone. call: is given what it calls between its steps, which may
    cancel it."""

    call: Callable[[Callable[[], None]], Any]

    def run(self, jobs: Sequence[Job], until: float) -> None:
        """Does it, unless nobody waits for it."""
        (job,) = jobs
        try:
            job.outcome = self.call(lambda: stop_when_gone(jobs, until))
        except Unwanted:
            job.outcome = _too_long()
        except Exception as error:
            job.outcome = error


def _blamed(error: Exception, at: str) -> Exception:
    """The error with the place of the text that is to blame."""
    return UserError(f"{at}: {error}") if at and isinstance(error, UserError) else error
