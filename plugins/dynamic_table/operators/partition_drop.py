"""Arguments that choose partitions to drop, shared by the approval operator and the drop operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.partition_listing import partitions_to_drop
from dynamic_table.operators.table_operator import TableOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storage_lib import DynamicTable

__all__ = ["NO_APPROVAL_NEEDED", "PartitionDropOperator"]

NO_APPROVAL_NEEDED = "no approval needed"
"""Value of ``approved`` if nobody was to be asked."""


class PartitionDropOperator(TableOperator):
    """Base of ``ApproveDropOperator`` and ``DropPartitionsOperator``.

    :param partitions: the partitions, ``[{column: value}, ...]``; each must exist. (templated)
    :param before: instead, ``{column: value}``: every partition whose value is smaller; may match none. (templated)
    """

    template_fields: Sequence[str] = ("table", "partitions", "before")
    template_fields_renderers: ClassVar[dict[str, str]] = {"partitions": "json", "before": "json"}
    ui_color = "#f4dcdc"

    def __init__(
        self,
        *,
        partitions: Sequence[Mapping[str, Any]] | str | None = None,
        before: Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partitions = partitions
        self.before = before

    def chosen_partitions(self, table: DynamicTable) -> Sequence[Mapping[str, str | None]]:
        """Return the partitions that ``table`` has now; raises InvalidInputError if neither argument is given."""
        return partitions_to_drop(table, self.partitions, self.before)
