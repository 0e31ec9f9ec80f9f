"""What the definition of a materialized table stores of a catalog, and where a refresh finds its secrets."""

from __future__ import annotations

import json

import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.sources import catalogs_of_queries
from storage_lib.materialized.sources.catalogs_of_queries import catalogs_of_query, catalogs_of_session, opened
from storage_lib.schema.options.materialized_table import (
    CatalogOfQuery,
    MaterializedTableDefinition,
    catalogs_text,
    parse_catalogs,
)
from storage_lib.schema.options.table_options import TableOptions, is_secret_option

REST = {"type": "iceberg", "uri": "https://c.example", "warehouse": "main", "token": "s3cr3t", "scope": "read"}
STORE = {
    "type": "delta",
    "warehouse": "s3://b/x",
    "s3.endpoint": "http://e",
    "s3.access-key": "A",
    "s3.secret-key": "B",
}
VARIABLE = "DYNAMIC_TABLE_CATALOG_MY_LAKE"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Return the options by which catalogs are opened."""
    found: list[dict[str, str]] = []
    monkeypatch.setattr(catalogs_of_queries, "open_lake", lambda _, options: found.append(dict(options)))
    return found


def stored(options: dict[str, str]) -> CatalogOfQuery:
    [found] = catalogs_of_query("m", ["my-lake.a.t", "my-lake.a.s"], {"my-lake": options})
    return found


@pytest.mark.parametrize("options", [REST, STORE])
def test_a_definition_has_no_secret_and_comes_back(options: dict[str, str]) -> None:
    catalog = stored(options)
    definition = MaterializedTableDefinition(query="SELECT 1 AS x", database="d", sources=(), catalogs=(catalog,))
    texts = definition.to_options()

    assert not any(secret in repr(texts) for secret in ("s3cr3t", '"A"', '"B"'))
    assert not any(is_secret_option(key, value) for key, value in texts.items())
    assert TableOptions.parse(texts).definition == definition
    assert definition.tables_of_catalogs == ("my-lake.a.s", "my-lake.a.t")
    assert parse_catalogs(catalogs_text([catalog])) == (catalog,)


@pytest.mark.parametrize("text", ["", "[]", "{}x", '{"a": {}}', '{"a": {"options": []}}'])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="JSON object of catalogs"):
        parse_catalogs(text)


def test_a_session_or_the_environment_has_the_secrets(
    seen: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with catalogs_of_session({"my-lake": REST}):
        opened("m", stored(REST))
    monkeypatch.setenv(VARIABLE, json.dumps({"uri": REST["uri"], "warehouse": "main", "token": "other", "scope": "no"}))
    opened("m", stored(REST))

    assert seen == [REST, REST | {"token": "other"}]


@pytest.mark.parametrize("elsewhere", [{"uri": "https://evil.example"}, {"warehouse": "other"}, {"token": None}])
def test_a_secret_is_not_sent_to_another_address(
    seen: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, elsewhere: dict[str, str | None]
) -> None:
    given = {key: value for key, value in (REST | elsewhere).items() if value is not None}
    monkeypatch.setenv(VARIABLE, json.dumps(given))

    with catalogs_of_session({"my-lake": given}), pytest.raises(InvalidInputError, match=VARIABLE) as told:
        opened("m", stored(REST))
    assert "s3cr3t" not in str(told.value)
    assert "its options token are secrets" in str(told.value)
    assert seen == []


def test_a_variable_that_is_no_json_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "s3cr3t")
    with pytest.raises(InvalidInputError, match="not a JSON object") as told:
        opened("m", stored(REST))
    assert "s3cr3t" not in str(told.value)


@pytest.mark.parametrize(
    ("table", "options", "words"),
    [
        ("other.a.t", REST, "catalog other, whose options are not given; the catalogs are my-lake"),
        ("my-lake.a.t", {"type": "paimon", "warehouse": "/x"}, "of type paimon; materialized tables read"),
        ("my-lake.a.b.t", REST, "not named by catalog, database and table"),
    ],
)
def test_a_catalog_that_cannot_be_a_source_is_refused(table: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        catalogs_of_query("m", [table], {"my-lake": options})
