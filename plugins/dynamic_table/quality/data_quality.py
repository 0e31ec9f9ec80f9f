"""Runs Great Expectations on Arrow or Spark rows; reports unmet expectations as readable lines.

Great Expectations is imported inside functions, because the import takes seconds and DAG files import this package.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from dynamic_table.quality.docs_index import STYLE
from dynamic_table.quality.docs_views import use_escaped_views
from dynamic_table.quality.linear_regex import PYTHON, RE2, REGEX_SYNTAX, evaluated_by_re2

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from dynamic_table.quality.data_docs import DataDocs

__all__ = ["REJECT", "QualityReport", "check_expectations", "checked_expectations", "unmet_rows"]

SEVERITIES = ("critical", "warning", "info")
REJECT = "reject"
"""A severity that also refuses rows before they are written (``row_expectations``); critical in a stored table."""
KEYS = ("type", "kwargs", "severity", REGEX_SYNTAX)
# Further keys that Great Expectations writes into an exported suite; they have no effect here.
REMARKS = ("description", "id", "meta", "notes", "rendered_content")
EXAMPLES_MAX = 5
# Names of the data sources in Great Expectations; the engine of a source can't be changed.
ARROW_SOURCE, SPARK_SOURCE, ASSET = "table", "spark", "rows"
# Great Expectations includes this style sheet in every page.
CUSTOM_STYLE = Path("gx", "plugins", "custom_data_docs", "styles", "data_docs_custom_styles.css")


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityReport:
    """Number of expectations checked, number of failures by severity, and one line per failure."""

    checked: int
    failed: Mapping[str, int]
    lines: tuple[str, ...]


def check_expectations(
    rows: pa.Table | DataFrame, expectations: object, *, docs: DataDocs | None = None, run_name: str = "check"
) -> QualityReport:
    """Check ``[{"type", "kwargs", "severity"}, ...]``; raises InvalidInputError for one that can't be checked.

    With ``docs``, the result is stored there under ``run_name`` and rendered as a page.
    """
    specs = [_of_stored_rows(spec) for spec in checked_expectations(expectations)]
    if not _is_arrow(rows):
        _refuse_re2(specs)
    with evaluated_by_re2(specs):
        failures = [result for result in _results(rows, specs, docs, run_name) if not result["success"]]
    _refuse_exceptions(failures)
    failed = {severity: sum(result["severity"] == severity for result in failures) for severity in SEVERITIES}
    return QualityReport(checked=len(specs), failed=failed, lines=tuple(_line(result) for result in failures))


def checked_expectations(expectations: object) -> list[dict[str, Any]]:
    """Return the expectations with their severities; raises InvalidInputError if one is malformed."""
    return [_checked(one) for one in _listed(expectations)]


def unmet_rows(rows: pa.Table, specs: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return for each expectation the positions of the rows that do not meet it."""
    # Whole numbers stay exact in columns with nulls.
    parameters = {"dataframe": rows.to_pandas(integer_object_nulls=True)}
    suite = _suite("table", [_of_stored_rows(spec) for spec in specs])
    with evaluated_by_re2(specs):
        results = _validated(suite, rows, parameters, result_format="COMPLETE")
    _refuse_exceptions([each for each in results if not each["success"]])
    return [sorted(map(int, each["result"].get("unexpected_index_list") or ())) for each in results]


def _refuse_re2(specs: Sequence[Mapping[str, Any]]) -> None:
    from storage_lib.errors import InvalidInputError

    for spec in specs:
        if spec.get(REGEX_SYNTAX) == RE2:
            message = (
                f"{spec['type']} can't be checked by Spark with {REGEX_SYNTAX} {RE2}, as in a form: "
                "write it into a file next to the DAG, such as expectations/database.table.yaml, or validate fewer "
                "rows, which need no Spark"
            )
            raise InvalidInputError(message)


def _of_stored_rows(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {**spec, "severity": SEVERITIES[0]} if spec["severity"] == REJECT else dict(spec)


def _refuse_exceptions(failures: Sequence[Mapping[str, Any]]) -> None:
    from storage_lib.errors import InvalidInputError

    for result in failures:
        if (reason := result["exception"]) is not None:
            message = f"{_title(result)} can't be checked: {reason}"
            raise InvalidInputError(message)


def _validated(
    suite: Any, rows: pa.Table | DataFrame, parameters: Mapping[str, Any], *, result_format: str
) -> list[dict[str, Any]]:
    """Validate without a project."""
    import great_expectations as gx

    context = _quiet(gx.get_context(mode="ephemeral"))
    batch = _definition_of(context, rows).get_batch(dict(parameters))
    return [_plain(result) for result in batch.validate(suite, result_format=result_format).results]


def _suite(name: str, specs: Sequence[Mapping[str, Any]]) -> Any:
    """Return the expectations as a suite, after silencing Great Expectations."""
    from storage_lib.distribution import importing_for
    from storage_lib.errors import InvalidInputError

    logging.getLogger("great_expectations").setLevel(logging.WARNING)
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    with importing_for("a check of rows", InvalidInputError):
        import great_expectations as gx

    return gx.ExpectationSuite(name=name, expectations=[_built(spec) for spec in specs])


def _results(
    rows: pa.Table | DataFrame, specs: Sequence[Mapping[str, Any]], docs: DataDocs | None, run_name: str
) -> list[dict[str, Any]]:
    """Run Great Expectations without its output; return results as plain data, in the order of the expectations."""
    suite = _suite(docs.table if docs else "table", specs)
    if docs is None:
        return _validated(suite, rows, _parameters_of(rows), result_format="SUMMARY")
    with docs.lock():
        return [_plain(result) for result in _kept_validation(docs, suite, rows, run_name).results]


def _kept_validation(docs: DataDocs, suite: Any, rows: pa.Table | DataFrame, run_name: str) -> Any:
    """Validate in the table's project, which stores the result and renders its page and the index."""
    import great_expectations as gx
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    context = _quiet(gx.get_context(mode="file", project_root_dir=str(docs.project)))
    shutil.copyfile(STYLE, docs.project / CUSTOM_STYLE)
    is_of_older_version = use_escaped_views(context)
    stored_suite = context.suites.add_or_update(suite)
    definition = gx.ValidationDefinition(name=docs.table, data=_definition_of(context, rows), suite=stored_suite)
    definition = context.validation_definitions.add_or_update(definition)
    run = RunIdentifier(run_name=run_name)
    validation = definition.run(batch_parameters=_parameters_of(rows), result_format="SUMMARY", run_id=run)
    of_suite = ExpectationSuiteIdentifier(name=docs.table)
    of_result = ValidationResultIdentifier(
        expectation_suite_identifier=of_suite,
        run_id=run,
        batch_identifier=f"{ARROW_SOURCE if _is_arrow(rows) else SPARK_SOURCE}-{ASSET}",
    )
    # Render only the new result and the index: earlier results have their pages already.
    context.build_data_docs(resource_identifiers=None if is_of_older_version else [of_suite, of_result])
    return validation


def _quiet(context: Any) -> Any:
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


def _definition_of(context: Any, rows: pa.Table | DataFrame) -> Any:
    sources = context.data_sources
    is_arrow = _is_arrow(rows)
    source = sources.add_or_update_pandas(ARROW_SOURCE) if is_arrow else sources.add_or_update_spark(SPARK_SOURCE)
    return source.add_dataframe_asset(ASSET).add_batch_definition_whole_dataframe("all")


def _parameters_of(rows: pa.Table | DataFrame) -> dict[str, Any]:
    return {"dataframe": rows.to_pandas() if _is_arrow(rows) else rows}


def _is_arrow(rows: pa.Table | DataFrame) -> TypeGuard[pa.Table]:
    import pyarrow as pa

    return isinstance(rows, pa.Table)


def _built(spec: Mapping[str, Any]) -> Any:
    """Return the expectation object: a suite built from plain data only logs invalid expectations."""
    from great_expectations.exceptions.exceptions import ExpectationNotFoundError
    from great_expectations.expectations.registry import get_expectation_impl

    from storage_lib.errors import InvalidInputError

    try:
        return get_expectation_impl(spec["type"])(**spec["kwargs"], severity=spec["severity"])
    except (ExpectationNotFoundError, ValueError) as wrong:
        message = f"{spec['type']} can't be checked with {spec['kwargs']}: {wrong}"
        raise InvalidInputError(message) from wrong


def _plain(result: Any) -> dict[str, Any]:
    config = result.expectation_config
    raised = result.exception_info or {}
    reasons = [raised] if "raised_exception" in raised else list(raised.values())
    reason = next((one["exception_message"] for one in reasons if one.get("raised_exception")), None)
    severity = getattr(config, "severity", None) or "critical"
    return {
        "type": config.type,
        "kwargs": {key: value for key, value in config.kwargs.items() if key != "batch_id"},
        "severity": getattr(severity, "value", str(severity)),
        "success": bool(result.success),
        "result": dict(result.result or {}),
        "exception": reason,
    }


def _title(result: Mapping[str, Any]) -> str:
    arguments = ", ".join(f"{key}={value!r}" for key, value in result["kwargs"].items())
    return f"{result['type']}({arguments})"


def _line(result: Mapping[str, Any]) -> str:
    found = result["result"]
    details = ""
    if found.get("unexpected_count") is not None:
        examples = ", ".join(str(value) for value in found.get("partial_unexpected_list", [])[:EXAMPLES_MAX])
        details = f"{found['unexpected_count']} of {found.get('element_count')} rows"
        details += f", for example {examples}" if examples else ""
    elif "observed_value" in found:
        details = f"found {found['observed_value']}"
    return f"[{result['severity']}] {_title(result)}: {details}"


def _listed(expectations: object) -> list[Any]:
    from storage_lib.errors import InvalidInputError

    if not isinstance(expectations, list | tuple) or not expectations:
        message = f"Expectations are a list of {{'type', 'kwargs', 'severity'}}, not {expectations!r}."
        raise InvalidInputError(message)
    return list(expectations)


def _checked(spec: object) -> dict[str, Any]:
    """Return the expectation with its severity; raises InvalidInputError if it is malformed."""
    from storage_lib.errors import InvalidInputError

    if not isinstance(spec, Mapping) or not isinstance(spec.get("type"), str):
        message = f"An expectation is {{'type': 'expect_...', 'kwargs': {{...}}, 'severity': ...}}, not {spec!r}."
        raise InvalidInputError(message)
    if unknown := sorted(str(key) for key in spec if key not in (*KEYS, *REMARKS)):
        message = f"{spec['type']} has the unknown key {unknown[0]!r}; known are {', '.join(KEYS)}."
        raise InvalidInputError(message)
    if not isinstance(kwargs := spec.get("kwargs") or {}, Mapping):
        message = f"The kwargs of {spec['type']} are {kwargs!r}; they have to be a mapping like {{'column': 'id'}}."
        raise InvalidInputError(message)
    if (severity := spec.get("severity", SEVERITIES[0])) not in (*SEVERITIES, REJECT):
        message = f"Severity {severity!r} of {spec['type']} is invalid; use one of {', '.join((*SEVERITIES, REJECT))}."
        raise InvalidInputError(message)
    if (syntax := spec.get(REGEX_SYNTAX, PYTHON)) not in (PYTHON, RE2):
        message = f"{REGEX_SYNTAX} {syntax!r} of {spec['type']} is invalid; use {PYTHON} or {RE2}."
        raise InvalidInputError(message)
    marked = {REGEX_SYNTAX: RE2} if syntax == RE2 else {}
    return {"type": spec["type"], "kwargs": dict(kwargs), "severity": severity, **marked}
