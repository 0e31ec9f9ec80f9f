"""Tasks on machines with other versions are refused, with the versions of both, before they read or write."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import InvalidInputError, open_catalog, process_versions
from storage_lib.catalog.table_cache import key_of


def test_a_key_is_the_same_in_a_process_with_the_same_versions(tmp_path: Path) -> None:
    key = key_of(open_catalog(str(tmp_path)).create_table("db.t", pa.schema([("id", pa.int64())])))

    assert pickle.loads(pickle.dumps(key)) == key  # noqa: S301


@pytest.mark.parametrize(
    ("where", "name", "value", "says"),
    [
        (pa, "__version__", "1.0.0", r"pyarrow 1\.0\.0, not \d+\."),
        (sys, "version_info", (3, 99, 0), r"Python 3\.99\.0, not 3\."),
        (process_versions, "VERSION", "0.0.9", r"spark-dynamic-tables 0\.0\.9, not 0\."),
    ],
)
def test_a_process_with_another_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, name: str, value: object, says: str
) -> None:
    sent = pickle.dumps(key_of(open_catalog(str(tmp_path)).create_table("db.t", pa.schema([("id", pa.int64())]))))
    monkeypatch.setattr(where, name, value)

    with pytest.raises(InvalidInputError, match=rf"table db\.t: a process in .* has {says}.*driver"):
        pickle.loads(sent)  # noqa: S301


def test_releases_of_one_version_of_python_and_arrow_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = pickle.dumps(key_of(open_catalog(str(tmp_path)).create_table("db.t", pa.schema([("id", pa.int64())]))))
    monkeypatch.setattr(pa, "__version__", f"{pa.__version__.partition('.')[0]}.99.0")
    monkeypatch.setattr(sys, "version_info", (*sys.version_info[:2], 99))

    assert pickle.loads(sent).name == "db.t"  # noqa: S301
