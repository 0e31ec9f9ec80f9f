"""Open the catalog of another format that options describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES
from storage_lib.lakes.lake_kinds import DELTA, ICEBERG, LAKES, OPTIONS_OF_REST, TYPE, URI, WAREHOUSE

if TYPE_CHECKING:
    from storage_lib.lakes.lake_version import LakeCatalog


def open_lake(name: str, options: Mapping[str, str]) -> LakeCatalog:
    """Open a catalog by its options: ``type``, ``warehouse`` or ``uri``, and those of its store or connection.

    Raises ``InvalidInputError`` for an unknown type or option, and if a package is missing.
    """
    rest = dict(options)
    kind, warehouse = rest.pop(TYPE, None), rest.pop(WAREHOUSE, None)
    if kind not in LAKES:
        message = f"catalog {name} is of type {kind!r}; the types are {', '.join(LAKES)}"
        raise InvalidInputError(message)
    uri = rest.get(URI) if kind == ICEBERG else None
    if warehouse is None and uri is None:
        message = f"catalog {name} has no option 'warehouse', the directory or URL that holds its databases"
        message += f", or '{URI}', the address of a REST catalog" if kind == ICEBERG else ""
        raise InvalidInputError(message)
    _refuse_unknown(name, kind, rest, () if uri is None else OPTIONS_OF_REST)
    if kind == DELTA:
        from storage_lib.lakes.delta_catalog import DeltaCatalog

        return DeltaCatalog(name, str(warehouse), rest)
    from storage_lib.lakes.iceberg_catalog import IcebergDirectories, IcebergRest

    return IcebergRest(name, rest, warehouse) if uri is not None else IcebergDirectories(name, str(warehouse), rest)


def _refuse_unknown(name: str, kind: str, options: Mapping[str, str], more: Sequence[str]) -> None:
    for key in options:
        if key not in more and not key.startswith(STORE_OPTION_PREFIXES):
            known = ", ".join(map(repr, (TYPE, WAREHOUSE, *(more or ((URI,) if kind == ICEBERG else ())))))
            message = (
                f"catalog {name} of type {kind} has no option {key!r}; it has {known}, and options of the store, which "
                f"begin with {', '.join(STORE_OPTION_PREFIXES)}"
            )
            raise InvalidInputError(message)
