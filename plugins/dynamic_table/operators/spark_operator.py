"""Base of the operators that may run Spark in the task's process."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from dynamic_table.operators.table_operator import TableOperator
from dynamic_table.policies.spark_settings import checked_master, checked_spark_conf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = ["SPARK_FIELDS", "SparkOperator"]

SPARK_FIELDS = ("master", "spark_conf")


class SparkOperator(TableOperator):
    """Base of the operators with a Spark session of their own.

    Spark's driver runs in the task's process: when the process ends, the job ends. Commits are atomic.

    :param master: Spark's master, such as ``local[2]``; has to be allowed (``spark_settings``). None: the connection's
        master, or else Spark's configuration. (templated)
    :param spark_conf: Spark settings; each has to be allowed (``spark_settings``). (templated)
    """

    template_fields: Sequence[str] = ("table", *SPARK_FIELDS)
    template_fields_renderers: ClassVar[dict[str, str]] = {"spark_conf": "json"}

    def __init__(self, *, master: str | None = None, spark_conf: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.master = master
        self.spark_conf = spark_conf

    def session_arguments(self) -> tuple[str | None, dict[str, str]]:
        """Return master and settings of the task's session, which are allowed."""
        return checked_master(self.master, self.hook), checked_spark_conf(self.spark_conf)

    @contextmanager
    def spark(self) -> Iterator[SparkSession]:
        """Yield a Spark session for the task, and stop it at the end."""
        from storage_lib.spark import session

        master, conf = self.session_arguments()
        spark = session(f"{self.dag_id}.{self.task_id} {self.table}", master=master, conf=conf)
        try:
            yield spark
        finally:
            spark.stop()
