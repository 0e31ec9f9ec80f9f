"""Reads the file that declares tables, for mapped tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from dynamic_table.arguments.rendered_argument import checked_text
from dynamic_table.arguments.text_templates import TextTemplates
from dynamic_table.declarations.table_declarations import read_declarations
from dynamic_table.versions.policed_retries import PolicedRetries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

__all__ = ["ReadTableDeclarationsOperator"]


class ReadTableDeclarationsOperator(TextTemplates, PolicedRetries, BaseOperator):
    """Returns the arguments of one ``ProvisionTableOperator`` per table; an invalid file fails this task.

    :param source: path of a YAML file, absolute or relative to the DAG file's folder, or a function
        ``package.module:function`` that returns the same mapping. (templated)
    """

    template_fields: Sequence[str] = ("source",)

    def __init__(self, *, source: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source = source

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return the tables' arguments, in the order declared."""
        declared = read_declarations(checked_text(self.source, "source"), Path(context["dag"].folder))
        self.log.info(
            "%s declares %d table(s): %s", self.source, len(declared), ", ".join(d["table"] for d in declared)
        )
        return declared
