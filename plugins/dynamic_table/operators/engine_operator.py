"""Base of the operators that process small inputs in the task's process with Arrow, and large ones with Spark."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import conf

from dynamic_table.arguments.rendered_argument import checked_choice, checked_count, is_nothing
from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.spark_settings import checked_master, checked_spark_conf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = ["ENGINES", "ENGINE_FIELDS", "EngineOperator"]

ENGINES = ("auto", "local", "spark")
ENGINE_FIELDS = ("engine", "spark_bytes_min", "master", "spark_conf")
SPARK_BYTES_MIN = 2 * 1024**3


class EngineOperator(TableOperator):
    """Base of the operators that choose the engine by the size of their input.

    Spark's driver runs in the task's process: when the process ends, the job ends. Commits are atomic.

    :param engine: ``local``, ``spark``, or ``auto``: Spark if the input is at least ``spark_bytes_min``. (templated)
    :param spark_bytes_min: input size in bytes; None: the setting ``[dynamic_table] spark_bytes_min``, by default
        2 GiB. (templated)
    :param master: Spark's master, such as ``local[2]``; has to be allowed (``spark_settings``). None: the connection's
        master, or else Spark's configuration. (templated)
    :param spark_conf: Spark settings; each has to be allowed (``spark_settings``). (templated)
    """

    template_fields: Sequence[str] = ("table", *ENGINE_FIELDS)
    template_fields_renderers: ClassVar[dict[str, str]] = {"spark_conf": "json"}

    def __init__(
        self,
        *,
        engine: str = "auto",
        spark_bytes_min: int | str | None = None,
        master: str | None = None,
        spark_conf: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.engine = engine
        self.spark_bytes_min = spark_bytes_min
        self.master = master
        self.spark_conf = spark_conf

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

    @contextmanager
    def spark(self) -> Iterator[SparkSession]:
        """Yield a Spark session for the task, and stop it at the end."""
        from storage_lib.spark import session

        spark = session(
            f"{self.dag_id}.{self.task_id} {self.table}",
            master=checked_master(self.master, self.hook),
            conf=checked_spark_conf(self.spark_conf),
        )
        try:
            yield spark
        finally:
            spark.stop()
