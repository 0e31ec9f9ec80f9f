"""Concurrent jobs, counted by the thread that waits for them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage_lib.progress.side_by_side import run_side_by_side


def test_results_are_in_the_order_of_the_jobs_however_they_end() -> None:
    second_is_done = threading.Event()
    done: list[tuple[int, threading.Thread]] = []

    def run(job: int) -> int:
        if job == 1:
            assert second_is_done.wait(60)
        return job * job

    def note(job: int) -> None:
        done.append((job, threading.current_thread()))
        if job == 2:
            second_is_done.set()

    assert run_side_by_side(run, [1, 2, 3], threads_max=3, done=note) == [1, 4, 9]

    assert {job for job, _ in done} == {1, 2, 3}
    assert {thread for _, thread in done} == {threading.current_thread()}


@pytest.mark.parametrize(("jobs", "threads_max"), [([1, 2], 1), ([1], 8)])
def test_without_a_second_job_or_thread_no_thread_is_started(jobs: list[int], threads_max: int) -> None:
    events: list[tuple[str, int, threading.Thread]] = []

    def run(job: int) -> int:
        events.append(("run", job, threading.current_thread()))
        return -job

    found = run_side_by_side(
        run, jobs, threads_max=threads_max, done=lambda job: events.append(("done", job, threading.current_thread()))
    )

    assert found == [-job for job in jobs]
    assert events == [(what, job, threading.current_thread()) for job in jobs for what in ("run", "done")]


@pytest.mark.parametrize("fails", ["job", "done"])
def test_after_a_failure_no_other_job_begins_and_the_running_one_is_waited_for(
    fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    ended: list[int] = []
    is_stopping = threading.Event()
    shutdown = ThreadPoolExecutor.shutdown

    def noted_shutdown(self: ThreadPoolExecutor, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002  as in Python
        shutdown(self, wait=False, cancel_futures=cancel_futures)
        is_stopping.set()
        shutdown(self, wait=wait)

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", noted_shutdown)

    def run(job: int) -> None:
        begun.append(job)
        if job > 0:
            assert is_stopping.wait(60)
        elif fails == "job":
            raise ZeroDivisionError
        ended.append(job)

    def done(_job: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_side_by_side(run, range(9), threads_max=1, done=done)

    assert begun in ([0], [0, 1])
    assert ended == begun[fails == "job" :], "the files of a job that ran are known when they are deleted"
