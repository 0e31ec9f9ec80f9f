"""A mixin for jobs that a retry finds again, as Airflow 3.3 has it, for the versions before it."""

from __future__ import annotations

from typing import Any

from airflow.sdk.bases.operator import BaseOperatorMeta

from dynamic_table.versions.kept_state import task_state_store

__all__ = ["ResumableJobMixin"]


class ResumableJobMixin:
    """Mixin for operators: submits a job once, and finds it again at the next try.

    The subclass has the methods of Airflow's mixin, which call the external system.
    """

    external_id_key = "remote_job_id"

    @BaseOperatorMeta._apply_defaults  # type: ignore[type-var]  # noqa: SLF001  as in Airflow's mixin, for default_args
    def __init__(self, *, durable: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.durable = durable

    def execute_resumable(self, context: Any) -> Any:
        """Wait for the job of an earlier try, or submit one and wait; its result if this try submitted it."""
        job: Any = self
        store = task_state_store(context)
        external_id = store.get(self.external_id_key) if self.durable else None
        if external_id:
            status = job.get_job_status(external_id, context)
            if job.is_job_active(status):
                job.log.info("Reconnecting to the job %s, which is %s", external_id, status)
                return job.poll_until_complete(external_id, context)
            if job.is_job_succeeded(status):
                job.log.info("The job %s has succeeded already", external_id)
                return job.get_job_result(external_id, context)
            job.log.warning("The job %s is %s; submitting another one", external_id, status)
        external_id = job.submit_job(context)
        store.set(self.external_id_key, external_id)
        job.poll_until_complete(external_id, context)
        return job.get_job_result(external_id, context)
