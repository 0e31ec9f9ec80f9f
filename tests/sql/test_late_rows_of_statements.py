"""UPDATE and MERGE of a table with ``sequence.field`` change its rows, or fail; INSERT INTO ignores older rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import InvalidInputError, open_catalog

if TYPE_CHECKING:
    from storage_lib.sql.session import Session

pytestmark = pytest.mark.spark


def test_a_statement_whose_row_an_older_sequence_would_hide_is_refused(sql: Session, warehouse: str) -> None:
    sql.execute("CREATE DATABASE shop")
    sql.execute(
        "CREATE TABLE shop.t (id INT, v INT, s INT, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('log.system' = 'none', 'sequence.field' = 's')"
    )
    sql.execute("INSERT INTO shop.t VALUES (1, 1, 10), (2, 1, 10)")
    sql.execute("DELETE FROM shop.t WHERE id = 2")
    merge = "MERGE INTO shop.t AS t USING (SELECT {} AS id, 2 AS v, {} AS s) AS n ON t.id = n.id "
    both = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"

    for statement in [
        "UPDATE shop.t SET s = 5, v = 2 WHERE id = 1",
        merge.format(1, 5) + both,
        merge.format(2, 5) + both,
    ]:
        with pytest.raises(InvalidInputError, match="older than the stored row or deletion"):
            sql.execute(statement)
    sql.execute("INSERT INTO shop.t VALUES (1, 3, 5)")
    sql.execute(merge.format(2, 11) + both)

    rows = open_catalog(warehouse).load_table("shop.t").to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == [(1, 1, 10), (2, 2, 11)]
