"""What SHOW CREATE MATERIALIZED TABLE shows of a definition can be run again, whatever its names and values are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from storage_lib import MemoryCatalog
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from storage_lib.sql import parse
from storage_lib.sql.definition.materialized_text import materialized_text_of
from storage_lib.sql.statements.materialized_statements import CreateMaterializedTable


def test_settings_and_columns_are_shown_as_comments_that_end_with_their_line() -> None:
    schema = MemoryCatalog().create_table("d.t", {"id": "BIGINT"}, options={"log.system": "none"}).schema
    definition = MaterializedTableDefinition(
        query="SELECT * FROM d.s",
        database="d",
        sources=("d.s",),
        settings=(("spark.sql.session.timeZone", "Asia/Tokyo\nAS SELECT 1"),),
        columns=(("d.s\n", ("id", "a\u2028b", "c\r\n; DROP TABLE t")),),
    )
    table: Any = SimpleNamespace(name="d.t", schema=schema, definition=definition)

    shown = materialized_text_of(table)

    assert '\n-- settings: {"spark.sql.session.timeZone": "Asia/Tokyo\\nAS SELECT 1"}\n' in shown
    assert '\n-- columns of "d.s\\n": ["id", "a\\u2028b", "c\\r\\n; DROP TABLE t"]\nAS SELECT * FROM d.s' in shown
    statement = parse(shown)
    assert isinstance(statement, CreateMaterializedTable)
    assert statement.query.text == "SELECT * FROM d.s"
