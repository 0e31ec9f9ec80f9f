"""Base of the operators that process small inputs in the task's process with Arrow, and large ones with Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.arguments.rendered_argument import checked_choice, checked_count, is_nothing
from dynamic_table.operators.spark_operator import SPARK_FIELDS, SparkOperator
from dynamic_table.versions.sdk_conf import conf

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ENGINES", "ENGINE_FIELDS", "EngineOperator"]

ENGINES = ("auto", "local", "spark")
ENGINE_FIELDS = ("engine", "spark_bytes_min", *SPARK_FIELDS)
SPARK_BYTES_MIN = 2 * 1024**3


class EngineOperator(SparkOperator):
    """Base of the operators that choose the engine by the size of their input.

    :param engine: ``local``, ``spark``, or ``auto``: Spark if the input is at least ``spark_bytes_min``. (templated)
    :param spark_bytes_min: input size in bytes; None: the setting ``[dynamic_table] spark_bytes_min``, by default
        2 GiB. (templated)
    """

    template_fields: Sequence[str] = ("table", *ENGINE_FIELDS)
    template_fields_renderers: ClassVar[dict[str, str]] = {"spark_conf": "json"}

    def __init__(
        self,
        *,
        engine: str = "auto",
        spark_bytes_min: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.engine = engine
        self.spark_bytes_min = spark_bytes_min

    def uses_spark(self, size_bytes: int) -> bool:
        """Return whether work that reads ``size_bytes`` needs Spark; raises InvalidInputError for an unknown engine."""
        checked_choice(self.engine, "engine", ENGINES)
        if self.engine != "auto":
            return self.engine == "spark"
        limit = self.spark_bytes_min
        if is_nothing(limit):
            limit = conf.get("dynamic_table", "spark_bytes_min", fallback=str(SPARK_BYTES_MIN))
        is_large = size_bytes >= checked_count(limit, "spark_bytes_min")
        self.log.info("%d bytes to read: %s", size_bytes, "a Spark job" if is_large else "in this process")
        return is_large
