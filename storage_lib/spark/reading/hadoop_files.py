"""Paths of data files for Spark's own readers, and whether its JVM reaches their store."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from storage_lib.io.file_io_factory import absolute_place, store_family

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger(__name__)
_SCHEMES = {"s3": "s3a", "az": "abfs", "azure": "abfs"}
_S3_OPTIONS = {
    "s3.access-key": "fs.s3a.access.key",
    "s3.secret-key": "fs.s3a.secret.key",
    "s3.session-token": "fs.s3a.session.token",
    "s3.endpoint": "fs.s3a.endpoint",
    "s3.region": "fs.s3a.endpoint.region",
}
_reached: dict[tuple[object, ...], bool] = {}


def hadoop_path(path: str) -> str:
    """Return the path with the scheme that Hadoop uses for the store."""
    scheme, separator, rest = absolute_place(path).partition("://")
    if not separator:
        return f"file:{scheme}"
    return f"{_SCHEMES.get(scheme, scheme)}://{rest}"


def store_of(path: str) -> str:
    """Return the store of a path: its scheme and server or bucket."""
    place = hadoop_path(path)
    return "file:" if place.startswith("file:") else "/".join(place.split("/", maxsplit=3)[:3])


def hadoop_options(path: str, catalog: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings for the store of a path, from the options of a catalog."""
    if store_family(path) != "object store":
        return {}
    settings = {theirs: catalog[ours] for ours, theirs in _S3_OPTIONS.items() if ours in catalog}
    if "s3.endpoint" in catalog:
        settings["fs.s3a.path.style.access"] = "true"
    return settings


def is_reached(spark: SparkSession, path: str, options: Mapping[str, str]) -> bool:
    """Return whether Spark's JVM finds this file; asked once for each store, and logged if it does not."""
    place = hadoop_path(path)
    if place.startswith("file:"):
        return True
    store = store_of(path)
    key = (spark.sparkContext.applicationId, store, *sorted(options.items()))
    if key not in _reached:
        problem = _problem(spark, place, options)
        _reached[key] = problem is None
        if problem is not None:
            _logger.warning(
                "Spark's own readers don't reach %s (%s), so its tables are read by Python tasks, which is slower. "
                "Add the packages and settings that Spark needs for this store",
                store,
                problem,
            )
    return _reached[key]


def _problem(spark: SparkSession, place: str, options: Mapping[str, str]) -> str | None:
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  pyspark has no public way to the JVM
    settings = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(options))
    try:
        conf = spark._jsparkSession.sessionState().newHadoopConfWithOptions(settings)  # noqa: SLF001
        path = jvm.org.apache.hadoop.fs.Path(place)
        path.getFileSystem(conf).getFileStatus(path)
    except Py4JError as error:
        java = getattr(error, "java_exception", None)
        return str(error) if java is None else str(java.toString())
    return None
