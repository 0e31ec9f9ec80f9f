"""Fails if topics of a sync stopped, after the tables of the others were announced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from dynamic_table.arguments.text_templates import TextTemplates
from dynamic_table.policies.stopped_topics import TopicsStoppedError, stopped_topics
from dynamic_table.versions.policed_retries import PolicedRetries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["CheckSyncOperator"]


class CheckSyncOperator(TextTemplates, PolicedRetries, BaseOperator):
    """Fails, and names the topics, if some stopped in a ``SyncDatabaseOperator`` with ``on_stopped="report"``.

    The task before it succeeds, so that its asset events are emitted, and this one fails the run.

    :param result: the result of that task, its ``output``. (templated)
    """

    template_fields: Sequence[str] = ("result",)
    ui_color = "#dceaf2"

    def __init__(self, *, result: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.result: Any = result

    def execute(self, context: Context) -> None:  # noqa: ARG002  the base class's signature
        """Fail if a table has errors."""
        from storage_lib.errors import InvalidInputError

        if not isinstance(self.result, list) or not all(_is_of_sync(each) for each in self.result):
            message = f"result is {self.result!r}; give the output of a SyncDatabaseOperator"
            raise InvalidInputError(message)
        errors = {topic: error for each in self.result for topic, error in each["errors"].items()}
        if errors:
            raise TopicsStoppedError(stopped_topics(errors))
        self.log.info("no topic of %d tables stopped", len(self.result))


def _is_of_sync(table: object) -> bool:
    return isinstance(table, Mapping) and isinstance(table.get("errors"), Mapping)
