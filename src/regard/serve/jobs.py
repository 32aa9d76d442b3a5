"""Jobs in the queue, and the handlers that run them: batched predictions or a single call."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from regard.core.errors import UserError
from regard.search.callbacks import Outputs, PartialHypothesis, SearchCancelled
from regard.serve.api_errors import unavailable
from regard.serve.request_sources import RequestSource, TextSource
from regard.serve.served_models import ServedModel
from regard.tasks.batches import PredictWork
from regard.tasks.values import Constraints, Prediction

NO_TEXT = TextSource("")
TIMED_OUT = "prediction timed out; use shorter texts or a smaller beam"


class JobHandler(Protocol):
    """The code that runs jobs. Queued jobs with equal handlers run in one batch."""

    def run(self, jobs: Sequence["Job"], check: "Check") -> None:
        """Set the result of each job. check: see Check."""


@dataclass(eq=False)
class Job:
    """One source of a request to predict, or one call of a model.

    future: done if the job has finished or the client stopped waiting. index: index of the source
    in its request. cost: estimated work (see `cost`). cost_ahead: total cost of the sources before
    this one in the request. client: address of the client. on_partial: called with partial
    hypotheses. parsed: the source for the model. result: a value or an exception.
    """

    handler: JobHandler
    future: "asyncio.Future[Any]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    source: RequestSource = NO_TEXT
    constraints: Constraints | None = None
    index: int = 0
    cost: int = 1
    cost_ahead: int = 0
    client: str = ""
    on_partial: Callable[[PartialHypothesis], None] | None = None
    arrived: float = field(default_factory=time.monotonic)
    parsed: Any = None
    result: Any = None


# Called between the steps of a batch with the jobs that these steps serve; raises SearchCancelled
# if nothing waits for them any more, or after the timeout.
Check = Callable[[Sequence[Job]], None]


@dataclass(frozen=True)
class PredictHandler:
    """A handler that predicts a batch of texts with one model and one search."""

    model: ServedModel
    search: Any
    nbest: int = 1
    return_alignment: bool = False

    def run(self, jobs: Sequence[Job], check: Check) -> None:
        """Read all sources and predict them in one batch.

        A source that cannot be read fails alone.
        """
        for job in jobs:
            if job.future.done() or job.result is not None:
                continue
            try:
                job.parsed = job.source.read(self.model.task)
            except Exception as error:
                job.result = _located(error, job)
        self._predict(jobs, check)

    def _predict(self, jobs: Sequence[Job], check: Check) -> None:
        """Predict these sources in one batch.

        On an error, predict each half separately, so that only the source that causes it fails.
        """
        jobs = [job for job in jobs if not job.future.done() and job.result is None]
        if not jobs:
            return
        work = PredictWork(
            indices=[job.index for job in jobs],
            step_callback=partial(_notify, jobs, check),
            on_progress=lambda count: check(jobs),
            on_predictions=partial(_set_results, jobs),
        )
        try:
            constraints = (
                [job.constraints or Constraints() for job in jobs]
                if any(job.constraints is not None for job in jobs)
                else None
            )
            predictions = self.model.predictor.predict(
                [job.parsed for job in jobs],
                self.search,
                self.nbest,
                constraints,
                self.return_alignment,
                len(jobs),
                work,
            )
            _set_results(jobs, range(len(jobs)), predictions)
        except SearchCancelled:
            for job in jobs:
                if job.result is None:  # others may have finished before the deadline
                    job.result = unavailable(TIMED_OUT)
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].result = _located(error, jobs[0])
                return
            self._predict(jobs[: len(jobs) // 2], check)
            self._predict(jobs[len(jobs) // 2 :], check)


@dataclass(frozen=True, eq=False)
class CallHandler:
    """A handler that runs a single call.

    call: gets a function to call between its steps, which raises SearchCancelled if the call is
    cancelled.
    """

    call: Callable[[Callable[[], None]], Any]

    def run(self, jobs: Sequence[Job], check: Check) -> None:
        """Run the call and set the result of its job."""
        (job,) = jobs
        try:
            job.result = self.call(lambda: check(jobs))
        except SearchCancelled:
            job.result = unavailable(TIMED_OUT)
        except Exception as error:
            job.result = error


def _located(error: Exception, job: Job) -> Exception:
    """Return an error with the path of the source in the request, if it has several."""
    where = job.source.where
    if isinstance(error, UserError) and where and not error.message.startswith(where):
        return error.at(where)
    return error


def _notify(jobs: Sequence[Job], check: Check, indices: Sequence[int], outputs: Outputs) -> None:
    """Pass partial hypotheses to the jobs that stream them; raise SearchCancelled if cancelled."""
    check(jobs)
    if any(job.on_partial for job in jobs):
        for index, partial_output in zip(indices, outputs(), strict=True):
            job = jobs[index]
            if job.on_partial is not None and not job.future.done():
                job.on_partial(partial_output)


def _set_results(
    jobs: Sequence[Job], indices: Sequence[int], predictions: Sequence[Prediction]
) -> None:
    for index, prediction in zip(indices, predictions, strict=True):
        jobs[index].result = prediction
