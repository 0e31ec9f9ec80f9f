"""Parts of Airflow that not every supported version has; everything else asks for them by these names.

The other modules of this folder replace a part in the versions that lack it.
"""

from __future__ import annotations

from enum import Enum

from dynamic_table.versions.fitting_airflow import installed_version

__all__ = ["AirflowFeature"]


class AirflowFeature(Enum):
    """A part of Airflow: the first version that has it, what it is, and what takes its place before."""

    NAMES_OF_THE_SDK = (3, 2), "`airflow.sdk` with all public names", "the names elsewhere; nothing is lost"
    CONNECTION_FORMS = (
        (3, 2),
        "a form for the connection in the UI",
        "its extra is typed as JSON",
    )
    REQUESTS_OF_THREADS = (
        (3, 2),
        "requests that several threads of a triggerer send at a time",
        "the triggers send theirs in the triggerer's event loop; nothing is lost",
    )
    LABELS_OF_DEFERRED = (
        (3, 2),
        "the label of a mapped task while it is deferred, such as the table of a sink",
        "its number until it ends",
    )
    # Airflow 3.2 has them, but there a backfill names the days on which the runs are due, each for the day before.
    PARTITIONED_RUNS = (
        (3, 3),
        "backfills of partitioned runs by their partitions",
        "`reprocess` is scheduled by data intervals of a day; a backfill names days, and templates `ds`",
    )
    RETRY_POLICIES = (
        (3, 3),
        "retry policies",
        "the operators ask the policy; it can fail a task, but the delay is `retry_delay`, from 10 s, doubled",
    )
    TASK_STATE = (
        (3, 3),
        "the state stores of tasks and assets, and resumable jobs",
        "files in `[dynamic_table] state_directory`, and commit identities that need none",
    )
    FUNCTIONS_OF_METRICS = (3, 3), "functions that report metrics", "methods; nothing is lost"
    RUNS_IN_POLICIES = (
        (3, 3),
        "the run of a new task in cluster policies",
        "tasks are not put into their table's pool; give them the argument `pool`",
    )
    KILLED_TRIGGERS = (
        (3, 3),
        "`on_kill` of triggers",
        "the sink of a cleared task stops when the task runs again",
    )

    @property
    def since(self) -> str:
        """The first version that has the part."""
        return ".".join(map(str, self.value[0]))

    @property
    def part(self) -> str:
        """The part, for the documentation."""
        return self.value[1]

    @property
    def fallback(self) -> str:
        """What takes the place of the part in versions that lack it, for the documentation."""
        return self.value[2]

    @property
    def is_here(self) -> bool:
        """Whether the installed version has the part."""
        return installed_version() >= self.value[0]
