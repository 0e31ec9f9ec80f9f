"""Spark masters and Spark settings that a form or a template may use.

A Spark setting can load any class into the driver, and an untrusted master receives the job with the connection's
secrets. So a task accepts only masters and settings that cannot do this, and those that an administrator has added:

    [dynamic_table] spark_masters      masters, such as spark://host:7077; `local` stands for every local master. The
                                       connection's spark_master is always allowed.
    [dynamic_table] spark_conf_keys    settings beyond `SAFE_KEYS`; one that ends with * is a prefix.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dynamic_table.arguments.rendered_argument import checked_text, is_nothing
from dynamic_table.sinks.sink_settings import checked_open_options
from dynamic_table.versions.sdk_conf import conf

if TYPE_CHECKING:
    from dynamic_table.hook import DynamicTableHook

__all__ = ["SAFE_KEYS", "checked_master", "checked_spark_conf"]

LOCAL = "local"
SAFE_KEYS = frozenset(
    f"spark.{name}"
    for name in (
        "cores.max",
        "default.parallelism",
        "driver.cores",
        "driver.maxResultSize",
        "driver.memory",
        "driver.memoryOverhead",
        "dynamicAllocation.enabled",
        "dynamicAllocation.executorIdleTimeout",
        "dynamicAllocation.initialExecutors",
        "dynamicAllocation.maxExecutors",
        "dynamicAllocation.minExecutors",
        "executor.cores",
        "executor.heartbeatInterval",
        "executor.instances",
        "executor.memory",
        "executor.memoryOverhead",
        "memory.fraction",
        "memory.storageFraction",
        "network.timeout",
        "scheduler.mode",
        "speculation",
        "sql.adaptive.advisoryPartitionSizeInBytes",
        "sql.adaptive.coalescePartitions.enabled",
        "sql.adaptive.enabled",
        "sql.adaptive.skewJoin.enabled",
        "sql.ansi.enabled",
        "sql.autoBroadcastJoinThreshold",
        "sql.broadcastTimeout",
        "sql.execution.arrow.maxRecordsPerBatch",
        "sql.files.maxPartitionBytes",
        "sql.session.timeZone",
        "sql.shuffle.partitions",
        "task.cpus",
        "task.maxFailures",
    )
)
"""Numbers, sizes, durations and switches that control a job's resources and plan."""

_LOCAL_MASTER = re.compile(r"local(\[(\*|\d+)(, *\d+)?\])?")
# Sizes become part of the JVM's command line.
_SAFE_VALUE = re.compile(r"[\w.+:/%-]{1,100}", re.ASCII)


def checked_master(value: object, hook: DynamicTableHook) -> str | None:
    """Return the given master, or else the connection's; raises InvalidInputError for one that is not allowed."""
    from storage_lib.errors import InvalidInputError

    of_connection = hook.spark_master
    if is_nothing(value):
        return of_connection
    master = checked_text(value, "master")
    allowed = _entries("spark_masters", LOCAL)
    if master == of_connection or master in allowed - {LOCAL}:
        return master
    if LOCAL in allowed and _LOCAL_MASTER.fullmatch(master):
        return master
    message = (
        f"master {master!r} is not allowed; allowed are the connection's ({of_connection or 'none'}) and those of the "
        f"setting [dynamic_table] spark_masters ({', '.join(sorted(allowed)) or 'none'}), which an administrator sets."
    )
    raise InvalidInputError(message)


def checked_spark_conf(value: object) -> dict[str, str]:
    """Return the checked Spark settings; raises InvalidInputError for secrets and settings that are not allowed."""
    from storage_lib.errors import InvalidInputError

    settings = checked_open_options(value, "spark_conf")
    added = _entries("spark_conf_keys", "")
    for key, text in settings.items():
        if _is_added(key, added):
            continue
        if key not in SAFE_KEYS:
            message = (
                f"spark_conf names {key}, which may load code or open a port and is not allowed. Allowed are "
                f"{', '.join(sorted(SAFE_KEYS))}, and those of the setting [dynamic_table] spark_conf_keys, which an "
                "administrator sets."
            )
            raise InvalidInputError(message)
        if not _SAFE_VALUE.fullmatch(text):
            message = f"spark_conf sets {key} to {text!r}; it has to be a number, a size, a duration or one word"
            raise InvalidInputError(message)
    return settings


def _is_added(key: str, added: frozenset[str]) -> bool:
    return key in added or any(key.startswith(entry[:-1]) for entry in added if entry.endswith("*"))


def _entries(setting: str, default: str) -> frozenset[str]:
    text = conf.get("dynamic_table", setting, fallback=default) or ""
    # Split at commas outside brackets: local[2,4] is one entry.
    return frozenset(re.sub(r",(?![^\[]*\])", " ", text).split())
