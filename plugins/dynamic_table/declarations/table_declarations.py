"""Tables declared in one file, which is read and checked by a task, not when a DAG is parsed.

    tables:
      shop.orders:
        columns: {id: BIGINT NOT NULL, price: "DECIMAL(10, 2)", day: DATE}
        primary_key: [day, id]
        partition_by: [day]
        options: {bucket: 4}
        comment: What was sold
        pool_slots: 2

Instead of a path, ``package.module:function`` may name a function that returns the same mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamic_table.policies.allowed_callable import load_allowed_callable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "SYNCS",
    "check_values",
    "declared_tables",
    "load_declarations",
    "load_yaml",
    "read_declarations",
    "refusal",
    "refuse_secrets",
]

TABLES, SYNCS = "tables", "syncs"
MERGE_TAG = "tag:yaml.org,2002:merge"
EXAMPLE = "tables: {shop.orders: {columns: {id: BIGINT}, primary_key: [id]}}"


def read_declarations(source: str, folder: Path) -> list[dict[str, Any]]:
    """Return ``ProvisionTableOperator``'s arguments for every table, in the order declared.

    A relative path is resolved against ``folder``. An InvalidInputError names the file, table, key and remedy.
    """
    where, tables = declared_tables(source, folder)
    return [_table(where, name, table) for name, table in tables.items()]


def declared_tables(source: str, folder: Path) -> tuple[str, dict[str, Mapping[str, Any]]]:
    """Return the source for error messages and each table's mapping by its name; checks the keys."""
    where, declared = load_declarations(source, folder)
    return where, {str(name): _checked_keys(where, str(name), table) for name, table in declared[TABLES].items()}


def load_declarations(source: str, folder: Path) -> tuple[str, dict[str, Mapping[Any, Any]]]:
    """Return the source for error messages, and the mappings of tables and of syncs, one of which may be empty."""
    is_function = ":" in source and Path(source).suffix not in (".yaml", ".yml")
    where = source if is_function else str(folder / source)
    declared = load_allowed_callable(source)() if is_function else load_yaml(folder / source)
    if not isinstance(declared, Mapping) or not any(declared.get(key) for key in (TABLES, SYNCS)):
        raise refusal(where, f"declares no tables; write {EXAMPLE}")
    if unknown := sorted(str(key) for key in declared if key not in (TABLES, SYNCS)):
        raise refusal(where, f"has the unknown key {unknown[0]!r} next to {TABLES!r}; remove it")
    found = {key: declared.get(key) or {} for key in (TABLES, SYNCS)}
    for key, value in found.items():
        if not isinstance(value, Mapping):
            raise refusal(where, f"has {key} that are {value!r}; they have to be a mapping of names")
    return where, found


def _checked_keys(where: str, name: str, declared: object) -> Mapping[str, Any]:
    database, dot, table = name.partition(".")
    if not (database and dot and table):
        raise refusal(where, f"has a table {name!r} without a database; write database.table")
    if not isinstance(declared, Mapping):
        raise refusal(where, f"table {name} is {declared!r}; it has to be a mapping with {', '.join(CHECKS)}")
    for key in declared:
        if key not in CHECKS:
            raise refusal(where, f"table {name} has the unknown key {key!r}; known are {', '.join(CHECKS)}")
    return declared


def _table(where: str, name: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    if not declared.get("columns"):
        raise refusal(where, f"table {name} has no columns; add columns: {{id: BIGINT}}")
    for key, (is_right, wanted) in CHECKS.items():
        value = declared.get(key)
        if value is not None and not is_right(value):
            raise refusal(where, f"table {name}: {key} is {value!r}; it has to be {wanted}")
    columns = dict(declared["columns"])
    for key in ("primary_key", "partition_by"):
        _check_names(where, f"table {name}: {key}", declared.get(key) or (), columns)
    _check_types(where, name, columns)
    refuse_secrets(where, f"table {name}", declared.get("options") or {})
    return {
        "table": name,
        "columns": columns,
        "primary_key": list(declared.get("primary_key") or ()),
        "partition_by": list(declared.get("partition_by") or ()),
        "options": dict(declared.get("options") or {}),
        "comment": declared.get("comment"),
        # Airflow's own argument ``pool_slots`` is the number of slots that one task takes.
        "table_pool_slots": declared.get("pool_slots"),
    }


def _check_names(where: str, what: str, names: Sequence[str], columns: Mapping[str, str]) -> None:
    for name in names:
        if name not in columns:
            raise refusal(where, f"{what} names the unknown column {name!r}; columns are {', '.join(columns)}")


def _check_types(where: str, name: str, columns: Mapping[str, str]) -> None:
    from storage_lib import TableDescriptor
    from storage_lib.errors import InvalidInputError

    for column, text in columns.items():
        try:
            TableDescriptor.for_managed().column(column, text)
        except InvalidInputError as wrong:
            raise refusal(where, f"table {name}, column {column}: {wrong}") from wrong


def refuse_secrets(where: str, what: str, options: Mapping[str, Any]) -> None:
    """Refuse secrets: Airflow's database stores the arguments that tasks pass on."""
    from storage_lib.schema.options.table_options import is_secret_option

    for key, value in options.items():
        if is_secret_option(key, value):
            raise refusal(where, f"{what}: option {key} is a secret or holds one; move it to the connection")


def _is_text_by_text(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair)


def _is_options(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(one, str | int | float) for key, one in value.items()
    )


def _is_names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


# Checks types, because YAML reads words like `on` and `no` as booleans.
CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "columns": (_is_text_by_text, "a mapping of names to types such as {id: BIGINT}, quoted where YAML reads no text"),
    "primary_key": (_is_names, "a list of columns such as [id]"),
    "partition_by": (_is_names, "a list of columns such as [day]"),
    "options": (_is_options, "a mapping such as {bucket: 4}"),
    "comment": (lambda value: isinstance(value, str), "text"),
    "pool_slots": (
        lambda value: isinstance(value, int) and value > 0 and value is not True,
        "a whole number from 1 on",
    ),
    # Its content is checked by `stream_declarations`.
    "stream": (lambda value: isinstance(value, Mapping), "a mapping such as {source: {kind: ..., name: ...}}"),
}


def load_yaml(path: Path) -> object:
    """Parse a YAML file; raises InvalidInputError for duplicate keys, of which PyYAML would keep the last."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """PyYAML's safe loader, which also refuses duplicate keys."""

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        seen: list[Any] = []
        for key_node, _ in node.value:
            if key_node.tag == MERGE_TAG:
                continue
            key = loader.construct_object(key_node, deep=True)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise refusal(str(path), f"line {line}: duplicate key {key!r}; remove one of them")
            seen.append(key)
        loader.flatten_mapping(node)
        return dict(loader.construct_mapping(node, deep=True))

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    try:
        with path.open(encoding="utf-8") as file:
            return yaml.load(file, Loader)  # noqa: S506  a SafeLoader
    except (FileNotFoundError, IsADirectoryError) as missing:
        raise refusal(str(path), "does not exist; relative paths start at the DAG's folder") from missing
    except UnicodeDecodeError as wrong:
        raise refusal(str(path), f"is not UTF-8 text: {wrong}") from wrong
    except yaml.YAMLError as wrong:
        raise refusal(str(path), f"is not YAML: {wrong}") from wrong


def check_values(
    where: str, what: str, place: str, declared: Mapping[str, Any], checks: Mapping[str, Callable[[Any], object]]
) -> None:
    """Refuse keys without a check, and values whose check raises; ``what`` and ``place`` name them in the message."""
    from storage_lib.errors import InvalidInputError

    for key, value in declared.items():
        if key not in checks:
            raise refusal(where, f"{what} has the unknown key {key!r}; known are {', '.join(checks)}")
        try:
            checks[key](value)
        except InvalidInputError as wrong:
            raise refusal(where, f"{place}: {wrong}") from wrong


def refusal(where: str, what: str) -> Exception:
    """Return an InvalidInputError about ``where``, a file or a function."""
    from storage_lib.errors import InvalidInputError

    return InvalidInputError(f"{where} {what}.")
