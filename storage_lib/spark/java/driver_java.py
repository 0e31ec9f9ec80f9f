"""Java classes of this folder in the driver's JVM: one call to them replaces hundreds of calls through py4j.

Each call through py4j takes about 0.2 ms, however little it does, and releasing an object is another call. The classes
run in the driver only, so executors need no jar. Janino, by which Spark compiles its queries, compiles them.
"""

from __future__ import annotations

import threading
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "dynamic_table"
_instances: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""The objects by gateway: a process may replace its JVM, and with it the gateway."""
_COMPILING = threading.Lock()


def driver_object(spark: SparkSession, name: str) -> Any:
    """Return the object of the class in ``<name>.java``, compiled at the first call for a JVM.

    Raises ``RuntimeError`` if the file can't be compiled with this version of Spark. Thread-safe.
    """
    # py4j keeps methods by the name of their class, and calls none of a class that was compiled a second time.
    with _COMPILING:
        known = _instances.setdefault(spark.sparkContext._gateway, {})  # noqa: SLF001  pyspark has no public way
        found = known.get(name)
        if found is None:
            found = known[name] = _compiled(spark, name)
    return found


def _compiled(spark: SparkSession, name: str) -> Any:
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    source = files("storage_lib.spark.java").joinpath(f"{name}.java").read_text(encoding="utf-8")
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getSparkClassLoader())
    try:
        compiler.cook(source)
    except Py4JJavaError as error:
        problem = error.java_exception.getMessage()
        message = (
            f"{name}.java can't be compiled with Spark {spark.version}; its internal classes differ from those of "
            f"Apache Spark's own build: {problem}"
        )
        raise RuntimeError(message) from error
    return compiler.getClassLoader().loadClass(f"{_PACKAGE}.{name}").newInstance()
