"""SQL session whose Spark session must not be used, for statements that are refused or done before Spark plans."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, NoReturn, cast

import storage_lib.sql.session as session_module
from storage_lib.sql import Session

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog


class UntouchedSpark:
    """Stands for a Spark session and fails when it is used."""

    def __getattr__(self, name: str) -> NoReturn:
        message = f"Spark's {name} is used; move the case to a file of tests/sql/cases itself"
        raise AssertionError(message)


def session_without_spark(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Return a session over a catalog, without what a session does to Spark when it begins and with each statement."""
    for name in ("refuse_connect", "register", "leave_out_unsafe_rule"):
        monkeypatch.setattr(session_module, name, lambda *_, **__: None)
    monkeypatch.setattr(session_module, "active_session", lambda _: nullcontext())
    return Session(cast("SparkSession", UntouchedSpark()), catalog)
