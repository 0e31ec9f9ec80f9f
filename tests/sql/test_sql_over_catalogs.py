"""The same statements with a database and a metastore as the catalog; the results do not depend on the catalog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage_lib import AlreadyExistsError, NotFoundError
from tests.support.catalog_homes import SHARED, catalog_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("kind", SHARED)
def test_databases_tables_rows_and_names_by_sql(
    kind: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    from storage_lib.sql import Session

    home = catalog_home(kind, request, tmp_path)
    shop = home.database
    with Session(spark, home.open()) as sql:
        assert sql.execute(f"CREATE DATABASE {shop}").message == f"database {shop} created"
        with pytest.raises(AlreadyExistsError):
            sql.execute(f"CREATE DATABASE {shop}")
        sql.execute(f"USE {shop}")
        sql.execute(
            "CREATE TABLE t (id BIGINT COMMENT 'a key', v STRING, dt STRING, PRIMARY KEY (id, dt) NOT ENFORCED) "
            "PARTITIONED BY (dt) WITH ('bucket' = '2')"
        )
        sql.execute("INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y')")
        sql.execute("ALTER TABLE t ADD COLUMN n INT")
        sql.execute("UPDATE t SET n = 7 WHERE id = 2")
        sql.execute("ALTER TABLE t SET ('bucket' = '3')")
        sql.execute("CREATE TABLE copy AS SELECT id, n FROM t WHERE n = 7")
        sql.execute("ALTER TABLE t RENAME TO u")

        assert sql.execute("SHOW TABLES").to_arrow()["table"].to_pylist() == ["copy", "u"]
        with pytest.raises(NotFoundError, match="did you mean"):
            sql.execute("SELECT * FROM uu")
    with Session(spark, home.open(), database=shop) as another:
        rows = another.execute("SELECT u.id, u.v, copy.n FROM u LEFT JOIN copy ON u.id = copy.id ORDER BY u.id")
        assert rows.to_arrow().to_pylist() == [{"id": 1, "v": "a", "n": None}, {"id": 2, "v": "b", "n": 7}]
        described = another.execute("DESCRIBE EXTENDED u").to_arrow().to_pylist()
        assert any("3" in str(row) and "bucket" in str(row) for row in described)
        another.execute("TRUNCATE TABLE u")
        assert another.execute("SELECT count(*) AS n FROM u").to_arrow()["n"].to_pylist() == [0]
        another.execute("DROP TABLE u")
        another.execute(f"DROP DATABASE {shop} CASCADE")
        assert shop not in another.execute("SHOW DATABASES").to_arrow().column(0).to_pylist()
