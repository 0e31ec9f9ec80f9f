"""Reads the syncs of databases that a file declares, for mapped tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from dynamic_table.arguments.rendered_argument import checked_text
from dynamic_table.arguments.text_templates import TextTemplates
from dynamic_table.declarations.sync_declarations import read_syncs
from dynamic_table.versions.policed_retries import PolicedRetries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["ReadSyncsOperator"]


class ReadSyncsOperator(TextTemplates, PolicedRetries, BaseOperator):
    """Returns the arguments of one ``SyncDatabaseOperator`` per entry of ``syncs``; an invalid file fails this task.

    :param source: path of a YAML file, absolute or relative to the DAG file's folder, or a function
        ``package.module:function`` that returns the same mapping. (templated)
    """

    template_fields: Sequence[str] = ("source",)

    def __init__(self, *, source: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = source

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return the arguments, in the order declared."""
        declared = read_syncs(checked_text(self.source, "source"), Path(context["dag"].folder))
        self.log.info("%s declares %d sync(s)", self.source, len(declared))
        return declared
