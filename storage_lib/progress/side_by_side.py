"""Run jobs in threads and report each completed one from the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def run_side_by_side(
    run: Callable[[_Job], _Result], jobs: Sequence[_Job], *, threads_max: int, done: Callable[[_Job], None]
) -> list[_Result]:
    """Run all jobs in parallel; return their results in the order of the jobs.

    After a failure no further job starts; the first error is raised when the running jobs have ended. Without a second
    thread or job, they run in the calling thread: to start one for small jobs costs more than they do.
    """
    if threads_max == 1 or len(jobs) == 1:
        results = []
        for job in jobs:
            results.append(run(job))
            done(job)
        return results
    with ThreadPoolExecutor(threads_max) as threads:
        running = {threads.submit(run, job): job for job in jobs}
        try:
            for each in as_completed(running):
                each.result()
                done(running[each])
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    return [each.result() for each in running]
