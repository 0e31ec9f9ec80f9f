"""Airflow on this machine without Docker: SQLite, LocalExecutor, loopback only, everything below one folder.

    python docker/local/local_airflow.py up        # prints the address of the UI, user and password
    python docker/local/local_airflow.py status
    python docker/local/local_airflow.py down

The four components are started one by one rather than by ``airflow standalone``: that opens two log servers on all
interfaces, which is fixed. The pids are kept in ``<home>/local_airflow.json``, so that ``down`` stops exactly
what ``up`` started; streaming sinks that tasks launched are sessions of their own and are not touched.

Log in as ``admin``; the generated password is in ``<home>/passwords.json``. Other users of the machine can't enter the
folder.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_rest import AirflowError, AirflowRest
from airflow_users import ADMIN, ROLES, TASKS, closed_folder, passwords
from quick_spark import quick_spark

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LocalAirflow"]

CHECKOUT = Path(__file__).resolve().parents[2]
COMPONENTS = {
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    "api-server": ("api-server",),
    "triggerer": ("triggerer", "--skip-serve-logs"),
}

DEAD = "ZX"
"""States of processes that have ended, including zombies."""


@dataclass(frozen=True, kw_only=True)
class LocalAirflow:
    """An Airflow whose files are in ``home``; `start` returns its REST client.

    ``connection_extra`` is the extra of the connection ``dynamic_table_default`` (warehouse, bootstrap_servers,
    options). ``port`` 0 takes a free one. ``environment`` adds variables to Airflow's.
    """

    home: Path = CHECKOUT / ".local" / "airflow"
    connection_extra: Mapping[str, Any] = field(default_factory=dict)
    dag_folders: tuple[Path, ...] = (CHECKOUT / "dags",)
    port: int = 0
    parallelism: int = 4
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, *, timeout: float = 180) -> AirflowRest:
        """Start Airflow unless it runs, wait until it is healthy, and return its REST client."""
        if self.is_running():
            return self.rest
        self.stop()  # remaining processes of an Airflow that has partly crashed
        closed_folder(self.home)
        port = self.port or _free_port()
        _refuse_taken(port)
        settings = self._environment(port)
        self._migrate(settings)
        state: dict[str, Any] = {"port": port, "pids": {}, "started": {}}
        for name in COMPONENTS:
            self._start_component(name, state, settings)
        self._wait_until_healthy(timeout)
        return self.rest

    def stop(self, *, timeout: float = 60) -> None:
        """Stop all processes that `start` started, and wait until they have ended."""
        if not self._state_path.exists():
            return
        sessions = self._sessions()
        # The components end their own children; processes that outlive the time limit are killed by session.
        for pid in sessions:
            _send(pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout
        while _members(sessions) and time.monotonic() < deadline:
            # A process whose parent has crashed would wait for it forever.
            for pid in _members({pid for pid in sessions if not _start_ticks(pid)}):
                _send(pid, signal.SIGKILL)
            time.sleep(0.1)
        for pid in _members(sessions):
            _send(pid, signal.SIGKILL)
        while _members(sessions):
            time.sleep(0.05)
        self._state_path.unlink(missing_ok=True)

    def kill(self, name: str) -> None:
        """Kill a component (``scheduler``, ``triggerer``, ...), but not its children."""
        _send(self._state()["pids"][name], signal.SIGKILL)

    def restart(self, name: str) -> None:
        """Start a crashed component, as a process supervisor would; the API still reports it as healthy."""
        state = self._state()
        # Processes that the crashed component left running still have to be stopped.
        left = f"{name} {state['pids'][name]}"
        state["pids"][left], state["started"][left] = state["pids"][name], state["started"][name]
        self._start_component(name, state, self._environment(state["port"]))

    @property
    def rest(self) -> AirflowRest:
        """REST client of the Airflow that runs in ``home``, logged in as its administrator."""
        return _administrator(f"http://127.0.0.1:{self._state()['port']}", self.password)

    @property
    def password(self) -> str:
        """The password of the user ``admin``."""
        return passwords(self._passwords_path)[ADMIN]

    def is_running(self) -> bool:
        """Return whether all components run and are healthy."""
        return self._state_path.exists() and self.rest.is_healthy()

    def process_ids(self) -> set[int]:
        """Return the pids of all processes of this Airflow: components, executor workers, running tasks."""
        return _members(self._sessions()) if self._state_path.exists() else set()

    def settings(self) -> dict[str, str]:
        """Return the environment for commands that address the Airflow in ``home``."""
        return self._environment(self._state()["port"])

    @property
    def _passwords_path(self) -> Path:
        return self.home / "passwords.json"

    @property
    def _state_path(self) -> Path:
        return self.home / "local_airflow.json"

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self._state_path.read_text())
        return state

    def _sessions(self) -> set[int]:
        """Return our components' pids, without those that other processes have taken over (after a reboot)."""
        state = self._state()
        return {pid for name, pid in state["pids"].items() if _start_ticks(pid) in (0, state["started"][name])}

    def _migrate(self, settings: Mapping[str, str]) -> None:
        """Create or migrate the metadata database."""
        log = self.home / "migrate.log"
        with log.open("w") as output:
            migrated = subprocess.run(
                [*_airflow(), "db", "migrate"], env=settings, check=False, stdout=output, stderr=subprocess.STDOUT
            )
        if migrated.returncode != 0:
            end = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            message = f"Airflow's database could not be created; the end of {log}:\n{end}"
            raise AirflowError(message)

    def _start_component(self, name: str, state: dict[str, Any], settings: Mapping[str, str]) -> None:
        """Start a component and record it in the state file; kill it if that fails, as `stop` would not find it."""
        pid = self._launch(name, COMPONENTS[name], settings)
        try:
            state["pids"][name], state["started"][name] = pid, _start_ticks(pid)
            new = self._state_path.with_suffix(".new")
            new.write_text(json.dumps(state))
            new.replace(self._state_path)
        except BaseException:
            _send(pid, signal.SIGKILL)
            raise

    def _launch(self, name: str, arguments: tuple[str, ...], settings: Mapping[str, str]) -> int:
        """Start a component as the leader of its own session, so that all its processes can be found again."""
        with (self.home / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                # Background processes of a shell ignore SIGINT, with which the triggerer stops its child.
                ["env", "--default-signal=INT", *_airflow(), *arguments],
                env=settings,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # `stop` may run in another process; without this, Python warns that the component is still running.
        process.returncode = 0
        return process.pid

    def _wait_until_healthy(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not self.rest.is_healthy():
            missing = [name for name, pid in self._state()["pids"].items() if not _members({pid})]
            if missing or time.monotonic() > deadline:
                self.stop()
                message = f"Airflow did not become healthy ({', '.join(missing) or 'time out'}); see {self.home}/*.log"
                raise AirflowError(message)
            time.sleep(0.25)

    def _environment(self, port: int) -> dict[str, str]:
        """Return the environment of every component, without variables of an outer Airflow."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        bundles = [
            {
                "name": f"folder-{index}-{folder.name}",
                "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
                "kwargs": {"path": str(folder), "refresh_interval": 5},
            }
            for index, folder in enumerate(self.dag_folders)
        ]
        connection = {"conn_type": "dynamic_table", "extra": {"publish_pages": True, **self.connection_extra}}
        own_api = {"conn_type": "http", "host": "127.0.0.1", "port": port, "login": TASKS}
        own_api["password"] = passwords(self._passwords_path)[TASKS]
        return inherited | {
            **quick_spark(),
            "AIRFLOW_CONN_AIRFLOW_API": json.dumps(own_api),
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT": json.dumps(connection),
            "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dag_folders[0]),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": str(self.parallelism),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.home / "plugins"),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self._passwords_path),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in ROLES.items()),
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
            # On a disk that syncs slowly, the write lock may be held longer than SQLite's default timeout of 5 s.
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home}/airflow.db?timeout=60",
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(self.home / "logs"),
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            **self.environment,
        }


@cache
def _administrator(base_url: str, password: str) -> AirflowRest:
    """Return a cached client per server, so that each logs in once."""
    return AirflowRest(base_url, ADMIN, password)


def _airflow() -> list[str]:
    """Return the command of the Airflow installed with this Python, independent of PATH."""
    return [sys.executable, "-m", "airflow"]


def _refuse_taken(port: int) -> None:
    """Raise an error for a port in use: its answers would be taken for our Airflow's."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            message = (
                f"Port {port} on 127.0.0.1 is not available ({error.strerror}). `lsof -i :{port}` shows the process; "
                "end that, or choose another port."
            )
            raise AirflowError(message) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start_ticks(pid: int) -> int:
    """Return the process's start time in ticks since boot; 0 if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in DEAD else int(fields[19])


def _members(sessions: set[int]) -> set[int]:
    """Return the living processes (not zombies) of these sessions."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # pid (name, may hold spaces) state ppid pgrp session ...
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(session) in sessions and state not in DEAD:
            found.add(int(entry.name))
    return found


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def main() -> None:
    """Run ``up``, ``down`` or ``status``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=("up", "down", "status"))
    parser.add_argument("--home", type=Path, default=LocalAirflow.home)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--warehouse", default=str(CHECKOUT / ".local" / "warehouse"))
    parser.add_argument("--bootstrap-servers", default="127.0.0.1:9092")
    chosen = parser.parse_args()
    extra = {"warehouse": chosen.warehouse, "bootstrap_servers": chosen.bootstrap_servers}
    airflow = LocalAirflow(home=chosen.home, port=chosen.port, connection_extra=extra)
    try:
        if chosen.act == "up":
            airflow.start()
        if chosen.act == "down":
            airflow.stop()
    except AirflowError as error:
        sys.exit(f"local_airflow: {error}")
    if airflow.is_running():
        print(f"{airflow.rest.base_url}   user {ADMIN}, password {airflow.password}")
    else:
        print("not running")


if __name__ == "__main__":
    main()
