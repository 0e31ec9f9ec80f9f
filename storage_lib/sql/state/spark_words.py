"""Convert Spark's errors about a statement to errors of this library, with the position in the user's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.logger import PySparkLogger

from storage_lib.errors import InvalidInputError, SqlSyntaxError, StorageError
from storage_lib.spark.types.spark_errors import storage_error_in
from storage_lib.sql.text.mapped_text import MappedText
from storage_lib.sql.text.source_text import SourceText

_PLACE = re.compile(r"\(line (\d+), pos (\d+)\)")
_ERROR_CLASS = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_NOT_THE_STATEMENTS = "[INTERNAL_ERROR"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def errors_in_words(source: SourceText | None = None, rewritten: MappedText | None = None) -> Iterator[None]:
    """Unwrap errors of this library that Spark raises in the body, and convert Spark's errors about the statement.

    ``source`` is the user's text, ``rewritten`` the text that Spark received; None: errors have no position.
    """
    with without_pages_of_json():
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            ours = storage_error_in(str(error))
            if ours is None and isinstance(error, ParseException | AnalysisException):
                ours = _in_words(error, source, rewritten)
            if ours is None and isinstance(error, PySparkException) and error.getCondition() is not None:
                ours = InvalidInputError(_problem(str(error)))
            if ours is None and isinstance(error, Py4JJavaError):
                ours = _in_words_of_java(error)
            if ours is None:
                raise
            raise ours from error


@contextmanager
def without_pages_of_json() -> Iterator[None]:
    """Disable the loggers by which PySpark also writes each error about a query to standard error, as JSON."""
    with ExitStack() as stack:
        for name in _LOGGERS:
            # Use PySparkLogger: a plain logger under these names would break Spark's own error handling.
            logger = PySparkLogger.getLogger(name)
            stack.callback(setattr, logger, "disabled", logger.disabled)
            logger.disabled = True
        yield


def _in_words_of_java(error: Py4JJavaError) -> StorageError | None:
    """Convert a Java error about the statement for which PySpark has no class; None for any other error."""
    cause = error.java_exception
    while cause is not None:
        text = cause.getMessage() or ""
        if _ERROR_CLASS.match(text) and not text.startswith(_NOT_THE_STATEMENTS):
            return InvalidInputError(_problem(text))
        cause = cause.getCause()
    return None


def _in_words(error: PySparkException, source: SourceText | None, rewritten: MappedText | None) -> StorageError | None:
    kind: Callable[[str], StorageError] = SqlSyntaxError if isinstance(error, ParseException) else InvalidInputError
    problem = _problem(str(error))
    place = _origin(error, rewritten)
    if source is None or place is None:
        return kind(problem)
    return kind(source.marked(place, problem))


def _problem(text: str) -> str:
    """Return the first paragraph of Spark's message, without error class, SQLSTATE and its copy of the statement."""
    first = re.split(r"\n\n|\n== (?:SQL|DataFrame)|; line \d|;\n", text.strip(), maxsplit=1)[0]
    return _PLACE.sub("", _STATE.sub("", _ERROR_CLASS.sub("", first))).strip().rstrip(".;").strip()


def _origin(error: PySparkException, rewritten: MappedText | None) -> int | None:
    if rewritten is None:
        return None
    for context in error.getQueryContext() or ():
        offset = context.startIndex()
        if offset >= 0:
            return rewritten.origin_of(offset)
    found = _PLACE.search(str(error))
    if found is None:
        return None
    lines = rewritten.text.splitlines(keepends=True)
    return rewritten.origin_of(sum(len(each) for each in lines[: int(found[1]) - 1]) + int(found[2]))
