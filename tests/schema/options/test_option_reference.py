"""The option reference covers every key that a table accepts."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum

import pytest

from storage_lib import InvalidInputError, describe_options
from storage_lib.file_store.merge_tree.aggregate_function.aggregators import _FUNCTIONS
from storage_lib.schema.options.known_options import is_known_option
from storage_lib.schema.options.option_reference import option_descriptions, paimon_descriptions
from storage_lib.schema.options.source_options import SOURCE_OPTIONS
from storage_lib.schema.options.table_options import MergeEngine, TableOptions, older_spellings, option_keys

DECLARED = [each for each in fields(TableOptions) if "key" in each.metadata]
FIRST_NOT_NULL = "first_not_null_value"  # Paimon's alias of first_non_null_value


def options(prefix: str) -> list[str]:
    return [each.option for each in describe_options(prefix)]


def test_every_option_is_described_once_with_key_and_meaning() -> None:
    described = {each.option: each.meaning for each in describe_options()}

    assert [each.option for each in option_descriptions()] == option_keys()
    assert {each.metadata["key"]: each.metadata["text"] for each in DECLARED}.items() <= described.items()
    assert len(described) == len(describe_options())
    assert all(described.values())


def test_an_option_of_words_names_each_of_them() -> None:
    unnamed = [
        f"{each.name}: {word}"
        for each in DECLARED
        if isinstance(each.default, StrEnum)
        for word in type(each.default)
        # Value-count is set automatically for a table without a key.
        if word is not MergeEngine.VALUE_COUNT and word not in each.metadata["text"]
    ]

    assert unnamed == []


def test_the_functions_that_the_reference_names_are_those_there_are() -> None:
    [function] = describe_options("fields.price.aggregate-function")

    named = function.meaning.partition("partial-update: ")[2].rstrip(".").replace(" or ", ", ").split(", ")
    assert {*named, FIRST_NOT_NULL} == set(_FUNCTIONS)


def test_a_key_finds_itself_and_the_keys_that_begin_with_it() -> None:
    assert options("log.scan") == ["log.scan", "log.scan.on-corrupt", "log.scan.timestamp-millis"]
    assert options("bucket")[:3] == ["bucket", "bucket-key", "bucket-function.type"]


def test_an_older_spelling_and_the_session_s_prefix_find_the_option() -> None:
    assert options("table-storage.log.scan.on-corrupt") == ["log.scan.on-corrupt"]
    assert all(options(older) for older in older_spellings() if not older.endswith("*"))


@pytest.mark.parametrize(
    ("key", "option"),
    [
        ("fields.price.distinct", "fields.<column>.distinct"),
        ("fields.a,b.sequence-group", "fields.<columns>.sequence-group"),
        ("log.kafka.security.protocol", "log.kafka.<setting>"),
        ("parquet.page.size", "parquet.*"),
        ("x.team", "x.<name>"),
    ],
)
def test_a_key_with_a_name_of_the_user_s_finds_its_family(key: str, option: str) -> None:
    assert options(key) == [option]


def test_options_of_sources_are_found_but_not_listed_with_those_of_tables() -> None:
    assert options("debezium.decimal") == ["debezium.decimal-handling-mode"]
    assert SOURCE_OPTIONS.keys().isdisjoint(options(""))


def test_options_for_other_engines_are_found_but_not_listed() -> None:
    paimon = {each.option for each in paimon_descriptions()}

    assert options("consumer-id") == ["consumer-id"]
    assert paimon.isdisjoint(options(""))
    assert all(is_known_option(key.replace("*", "a")) for key in paimon)


@pytest.mark.parametrize(
    ("key", "said"),
    [("buckte", "did you mean 'bucket'?"), ("foo", "`dynamic-table options`"), ("path", "has no description")],
)
def test_a_key_without_a_description_is_refused_with_the_reason(key: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said.replace("?", r"\?")):
        describe_options(key)
