"""Small client of Airflow's public REST API, for the demo and the tests.

Standard library only. It logs in with name and password and caches the token; without a name it sends no token.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["AirflowError", "AirflowRest"]

FINISHED_STATES = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
POLL_SECONDS = 0.5
UNAUTHORIZED = 401


class AirflowError(Exception):
    """Airflow answered with an error, or a wait timed out."""


@dataclass(frozen=True, slots=True)
class AirflowRest:
    """Airflow's REST API at ``base_url`` (``http://127.0.0.1:<port>``), called as ``user``."""

    base_url: str
    user: str = ""
    password: str = field(default="", repr=False)
    _tokens: list[str] = field(default_factory=list, repr=False, compare=False)

    # -- DAGs and their runs

    def dag_ids(self) -> list[str]:
        """Return the ids of all DAGs that Airflow has parsed so far."""
        return [dag["dag_id"] for dag in self.pages("/dags?exclude_stale=true", "dags")]

    def wait_for_dag(self, dag_id: str, *, timeout: float = 60) -> None:
        """Wait until the DAG processor has seen the DAG, and unpause it."""
        self.wait_until(lambda: dag_id in self.dag_ids(), f"DAG {dag_id} to be parsed", timeout=timeout)
        self.patch(f"/dags/{dag_id}", {"is_paused": False})

    def parse_again(self, dag_id: str) -> None:
        """Ask the DAG processor to parse the DAG's file next, not half a minute after the last time."""
        token = self.get(f"/dags/{dag_id}")["file_token"]
        self._request("PUT", f"/parseDagFile/{token}")

    def trigger(
        self,
        dag_id: str,
        *,
        conf: Mapping[str, Any] | None = None,
        partition_key: str | None = None,
        run_id: str | None = None,
    ) -> str:
        """Start a run as the form in the UI does, and return its id.

        ``conf`` overrides the form's defaults; a value that the form forbids is an `AirflowError`.
        """
        body: dict[str, Any] = {"logical_date": None, "conf": dict(conf or {})}
        body |= {"partition_key": partition_key} if partition_key else {}
        body |= {"dag_run_id": run_id} if run_id else {}
        answer: dict[str, str] = self.post(f"/dags/{dag_id}/dagRuns", body)
        return answer["dag_run_id"]

    def run_state(self, dag_id: str, run_id: str) -> str:
        """Return the state of a run: ``queued``, ``running``, ``success`` or ``failed``."""
        state: str = self.get(f"/dags/{dag_id}/dagRuns/{_quoted(run_id)}")["state"]
        return state

    def wait(self, dag_id: str, run_id: str, *, timeout: float = 300) -> str:
        """Wait until the run has finished and return ``success`` or ``failed``."""
        self.wait_until(
            lambda: self.run_state(dag_id, run_id) in FINISHED_STATES, f"run {run_id} of {dag_id}", timeout=timeout
        )
        return self.run_state(dag_id, run_id)

    def run(
        self,
        dag_id: str,
        *,
        conf: Mapping[str, Any] | None = None,
        partition_key: str | None = None,
        timeout: float = 300,
    ) -> str:
        """Start a run, wait for it, return its id; an `AirflowError` names the failed tasks."""
        run_id = self.trigger(dag_id, conf=conf, partition_key=partition_key)
        self.check_success(dag_id, run_id, self.wait(dag_id, run_id, timeout=timeout))
        return run_id

    def check_success(self, dag_id: str, run_id: str, state: str) -> None:
        """Raise an `AirflowError` with the tasks' states unless ``state`` is ``success``."""
        if state != "success":
            message = f"Run {run_id} of {dag_id} ended as {state}: {self.task_states(dag_id, run_id)}"
            raise AirflowError(message)

    # -- backfills

    def backfill(
        self,
        dag_id: str,
        *,
        first: str,
        last: str,
        conf: Mapping[str, Any] | None = None,
        max_active_runs: int = 2,
        reprocess: str = "none",
    ) -> int:
        """Create one run per partition (or date) from ``first`` to ``last`` (``2013-01-01``, both included).

        ``reprocess`` selects which existing runs are repeated: ``none``, ``failed`` or ``completed``.
        """
        body = {
            "dag_id": dag_id,
            "from_date": f"{first}T00:00:00Z",
            "to_date": f"{last}T00:00:00Z",
            "dag_run_conf": dict(conf or {}),
            "max_active_runs": max_active_runs,
            "reprocess_behavior": reprocess,
            "run_backwards": False,
        }
        backfill_id: int = self.post("/backfills", body)["id"]
        return backfill_id

    def wait_for_backfill(self, dag_id: str, backfill_id: int, *, timeout: float = 600) -> dict[str, str]:
        """Wait until the backfill's runs are done; return the state of each by partition key or date."""
        # Airflow creates all runs at once, but marks the backfill as complete only every half minute.
        self.wait_until(
            lambda: FINISHED_STATES.issuperset(self._backfill_runs(dag_id, backfill_id).values()),
            f"backfill {backfill_id} of {dag_id}",
            timeout=timeout,
        )
        return self._backfill_runs(dag_id, backfill_id)

    def _backfill_runs(self, dag_id: str, backfill_id: int) -> dict[str, str]:
        asked = self.get(f"/backfills/{backfill_id}")
        runs = self.pages(f"/dags/{dag_id}/dagRuns?run_type=backfill", "dag_runs")
        return {
            key: run["state"]
            for run in runs
            if asked["from_date"][:10] <= (key := _partition_of(run))[:10] <= asked["to_date"][:10]
        }

    # -- task instances

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Return the task instances of a run, as the API shows them."""
        return self.pages(f"/dags/{dag_id}/dagRuns/{_quoted(run_id)}/taskInstances", "task_instances")

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """Return the state of each task of a run, mapped ones as ``task[index]``."""
        return {
            instance["task_id"] + (f"[{instance['map_index']}]" if instance["map_index"] >= 0 else ""): instance[
                "state"
            ]
            for instance in self.task_instances(dag_id, run_id)
        }

    def wait_for_task(self, dag_id: str, run_id: str, task_id: str, *states: str, timeout: float = 120) -> str:
        """Wait until an unmapped task is in one of ``states`` and return which."""
        self.wait_until(
            lambda: self.task_states(dag_id, run_id).get(task_id) in states,
            f"task {task_id} of {dag_id} to be {' or '.join(states)}",
            timeout=timeout,
        )
        return str(self.task_states(dag_id, run_id)[task_id])

    def wait_until_watched(self, dag_id: str, run_id: str, task_id: str, *, timeout: float = 120) -> None:
        """Wait until the triggerer runs a deferred task: before that, marking the task does not reach its trigger."""
        self.wait_for_task(dag_id, run_id, task_id, "deferred", timeout=timeout)
        self.wait_until(
            lambda: any(
                one["task_id"] == task_id and one["triggerer_job"] for one in self.task_instances(dag_id, run_id)
            ),
            f"the triggerer to watch {task_id} of {dag_id}",
            timeout=timeout,
        )

    def tries(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1) -> list[dict[str, Any]]:
        """Return every try of a task, oldest first: ``try_number``, ``state``, ``start_date``, ``end_date``, ..."""
        mapped = f"/{map_index}" if map_index >= 0 else ""
        path = f"/dags/{dag_id}/dagRuns/{_quoted(run_id)}/taskInstances/{task_id}{mapped}/tries"
        found: list[dict[str, Any]] = self.get(path)["task_instances"]
        return sorted(found, key=lambda one: int(one["try_number"]))

    def mark(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        """Mark a task as success (or ``failed``) as the UI does, which stops a running task's job."""
        self.patch(f"/dags/{dag_id}/dagRuns/{_quoted(run_id)}/taskInstances/{task_id}", {"new_state": state})

    def clear(self, dag_id: str, run_id: str, *task_ids: str) -> None:
        """Clear tasks of a run (by default all) as the UI does: running tasks are stopped and run again."""
        body: dict[str, Any] = {"dry_run": False, "dag_run_id": run_id, "only_failed": False}
        self.post(f"/dags/{dag_id}/clearTaskInstances", body | ({"task_ids": list(task_ids)} if task_ids else {}))

    def delete_run(self, dag_id: str, run_id: str) -> None:
        """Delete a run, whatever its tasks are doing."""
        self._request("DELETE", f"/dags/{dag_id}/dagRuns/{_quoted(run_id)}")

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Answer a task that waits for a user, as under *Required actions* in the UI."""
        path = f"/dags/{dag_id}/dagRuns/{_quoted(run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        self.patch(path, {"chosen_options": [option], "params_input": {}})

    def result(self, dag_id: str, run_id: str, task_id: str, *, map_index: int = -1) -> Any:
        """Return the result of a task's ``execute`` (its XCom)."""
        path = f"/dags/{dag_id}/dagRuns/{_quoted(run_id)}/taskInstances/{task_id}/xcomEntries/return_value"
        return self.get(f"{path}?map_index={map_index}&deserialize=true")["value"]

    def log(self, dag_id: str, run_id: str, task_id: str, *, try_number: int = 1, map_index: int = -1) -> str:
        """Return one try's log as text, one event per line."""
        path = f"/dags/{dag_id}/dagRuns/{_quoted(run_id)}/taskInstances/{task_id}/logs/{try_number}"
        content = self.get(f"{path}?map_index={map_index}&full_content=true")["content"]
        return "\n".join(line if isinstance(line, str) else json.dumps(line) for line in content)

    def asset_events(self, uri: str) -> list[dict[str, Any]]:
        """Return the events of the asset with this URI, oldest first."""
        events = self.pages("/assets/events?order_by=timestamp", "asset_events")
        return [event for event in events if event["uri"] == uri]

    # -- plumbing

    def is_healthy(self) -> bool:
        """Return whether the API answers and scheduler, DAG processor and triggerer are alive."""
        try:
            health = self._send("GET", f"{self.base_url}/api/v2/monitor/health", None, None)
        except (AirflowError, OSError, ValueError, http.client.HTTPException):
            return False  # no server, or not Airflow
        parts = ("metadatabase", "scheduler", "dag_processor", "triggerer")
        return all((health.get(part) or {}).get("status") == "healthy" for part in parts)

    def wait_until(self, happened: Callable[[], Any], what: str, *, timeout: float) -> None:
        """Poll ``happened`` until it is true; an `AirflowError` names ``what`` if it takes over ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while not happened():
            if time.monotonic() > deadline:
                message = f"Timed out after {timeout:.0f} s waiting for {what}."
                raise AirflowError(message)
            time.sleep(POLL_SECONDS)

    def get(self, path: str) -> Any:
        """GET ``path`` below ``/api/v2``."""
        return self._request("GET", path)

    def pages(self, path: str, key: str) -> list[dict[str, Any]]:
        """GET all entries of a listing, in pages of a hundred, Airflow's limit (``[api] maximum_page_limit``)."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self.get(f"{path}{'&' if '?' in path else '?'}limit=100&offset={len(found)}")
            found += answer[key]
            if not answer[key] or len(found) >= answer["total_entries"]:
                return found

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """POST ``body`` as JSON."""
        return self._request("POST", path, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """PATCH ``body`` as JSON."""
        return self._request("PATCH", path, body)

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        try:
            try:
                return self._send(method, f"{self.base_url}/api/v2{path}", body, self._token())
            except urllib.error.HTTPError as refused:
                if refused.code != UNAUTHORIZED or not self.user:
                    raise
                self._tokens.clear()  # expired, or issued by an earlier server
                return self._send(method, f"{self.base_url}/api/v2{path}", body, self._token())
        except urllib.error.HTTPError as refused:
            message = f"{method} {path} answered {refused.code}: {refused.read().decode(errors='replace')}"
            raise AirflowError(message) from refused
        except urllib.error.URLError as silent:
            message = f"{method} {path}: no answer from {self.base_url} ({silent.reason}). Was Airflow stopped?"
            raise AirflowError(message) from silent

    def _token(self) -> str | None:
        if not self.user:
            return None
        if not self._tokens:
            login = {"username": self.user, "password": self.password}
            self._tokens.append(self._send("POST", f"{self.base_url}/auth/token", login, None)["access_token"])
        return self._tokens[0]

    @staticmethod
    def _send(method: str, url: str, body: Mapping[str, Any] | None, token: str | None) -> Any:
        request = urllib.request.Request(  # noqa: S310  always http to this machine
            url,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json"}
            | ({"Authorization": f"Bearer {token}"} if token else {}),
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  as above
            return json.loads(answer.read() or b"null")


def _partition_of(run: Mapping[str, Any]) -> str:
    """Return a run's partition, which is a date; before Airflow 3.2 no run has one."""
    return str(run.get("partition_key") or run["logical_date"].removesuffix("T00:00:00Z"))


def _quoted(run_id: str) -> str:
    return urllib.parse.quote(run_id, safe="")
