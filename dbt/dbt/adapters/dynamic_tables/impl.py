"""The adapter: what dbt asks about tables and views, answered by the catalog without a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from dbt.adapters.__about__ import version as base_version
from dbt.adapters.base.impl import AdapterTrackingRelationInfo, ConstraintSupport, available
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.dynamic_tables.__version__ import version
from dbt.adapters.dynamic_tables.branch import Branch, is_of_branch, without_branch
from dbt.adapters.dynamic_tables.column import DynamicTablesColumn
from dbt.adapters.dynamic_tables.connections import DynamicTablesConnectionManager, branch_of
from dbt.adapters.dynamic_tables.lineage import columns_of_models, compiled_query, report, selected
from dbt.adapters.dynamic_tables.publication import Publication
from dbt.adapters.dynamic_tables.relation import DynamicTablesRelation
from dbt.adapters.sql import SQLAdapter
from dbt_common.contracts.constraints import ColumnLevelConstraint, ConstraintType, ModelLevelConstraint
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from storage_lib import InvalidInputError, NotFoundError
from storage_lib.materialized.algebra import SourceTable
from storage_lib.materialized.sources.source_tables import source_table

if TYPE_CHECKING:
    import agate
    from dbt.adapters.base.relation import InformationSchema
    from dbt.adapters.contracts.relation import RelationConfig
    from pyspark.sql import DataFrame

    from storage_lib import Catalog, DynamicTable
    from storage_lib.sql import Session

_STRATEGIES = ["append", "merge", "delete+insert", "insert_overwrite", "microbatch"]
_ASIDE = "__dbt_tmp_"
_LINEAGE = "column_lineage.json"
_ABANDONED_AFTER = timedelta(days=1)


class DynamicTablesAdapter(SQLAdapter):
    """dbt's adapter. A schema is a database of the catalog, which is the highest level of a name."""

    Relation = DynamicTablesRelation
    Column = DynamicTablesColumn
    ConnectionManager = DynamicTablesConnectionManager
    CONSTRAINT_SUPPORT = {
        ConstraintType.check: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        # A later row replaces an earlier one of the same key; none is refused.
        ConstraintType.primary_key: ConstraintSupport.NOT_ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }
    _capabilities = CapabilityDict(
        {Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full)},
    )

    # --- names ---

    @classmethod
    def date_function(cls) -> str:
        """Return the expression of the present moment."""
        return "current_timestamp()"

    @classmethod
    def quote(cls, identifier: str) -> str:
        """Return a name in back quotes."""
        return f"`{identifier}`"

    @classmethod
    def get_adapter_run_info(cls, config: RelationConfig) -> AdapterTrackingRelationInfo:
        """Return the adapter's name and version: dbt would derive the module from the name of this class."""
        return AdapterTrackingRelationInfo(
            adapter_name=cls.type(),
            base_adapter_version=base_version,
            adapter_version=version,
            model_adapter_details={},
        )

    def valid_incremental_strategies(self) -> list[str]:
        """Return the strategies of incremental models."""
        return _STRATEGIES

    # --- schemas ---

    def list_schemas(self, database: str) -> list[str]:
        """Return the databases of the catalog."""
        return self._catalog().list_databases()

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Return whether a database exists."""
        return self._catalog().database_exists(schema)

    def create_schema(self, relation: DynamicTablesRelation) -> None:
        """Create a database if it is missing."""
        branch, schema = self._branch(), str(relation.schema)
        if branch is not None and branch.is_next_to_tables(schema):
            branch.create_database(schema)
        else:
            self._catalog().create_database(schema, if_not_exists=True)

    def drop_schema(self, relation: DynamicTablesRelation) -> None:
        """Drop a database with its tables and views."""
        self._catalog().drop_database(str(relation.schema), if_exists=True, cascade=True)
        self.cache.drop_schema(relation.database, relation.schema)

    # --- relations ---

    def list_relations_without_caching(self, schema_relation: DynamicTablesRelation) -> list[DynamicTablesRelation]:
        """Return the tables, materialized tables and views of a database.

        In a target with a branch, each table also has it: the branch is created when it is first written.
        """
        schema, catalog = str(schema_relation.schema), self._catalog()
        kinds = {name: self._kind(catalog, name) for name in catalog.list_tables(schema)}
        branch = self._branch()
        if branch is not None:
            plain = [name for name, kind in kinds.items() if kind is RelationType.Table]
            kinds |= {f"{name}$branch_{branch.name}": RelationType.Table for name in plain}
        kinds |= dict.fromkeys(catalog.views.names(schema), RelationType.View)
        return [
            self.Relation.create(schema=schema, identifier=name.partition(".")[2], type=kind)
            for name, kind in kinds.items()
        ]

    @staticmethod
    def _kind(catalog: Catalog, name: str) -> RelationType:
        is_kept = catalog.load_table(name).definition is not None
        return RelationType.MaterializedView if is_kept else RelationType.Table

    def get_relation(self, database: str | None, schema: str, identifier: str) -> DynamicTablesRelation | None:
        """Return a table or view; None if it does not exist. There is no ``database`` in dbt's sense."""
        found: DynamicTablesRelation | None = super().get_relation(None, schema, identifier)  # type: ignore[arg-type]
        return found

    def get_columns_in_relation(self, relation: DynamicTablesRelation) -> list[DynamicTablesColumn]:
        """Return names and types; [] if there is no such relation, as dbt expects."""
        table = self._table(relation)
        if table is not None:
            return [
                DynamicTablesColumn(field.name, str(field.type.with_nullable(nullable=True)))
                for field in table.schema.fields
            ]
        try:
            rows = self._analysed(relation.render())
        except NotFoundError:
            return []
        try:
            # As a table of these columns has them: dbt compares both.
            return [DynamicTablesColumn(name, kind) for name, kind in _typed(rows)]
        except InvalidInputError:
            return [DynamicTablesColumn(each.name, each.dataType.simpleString()) for each in rows.schema.fields]

    def drop_relation(self, relation: DynamicTablesRelation) -> None:
        """Drop a table, a materialized table or a view."""
        self.cache_dropped(relation)
        kind = {
            RelationType.View: "VIEW",
            RelationType.MaterializedView: "MATERIALIZED TABLE",
        }.get(relation.type, "TABLE")
        self._session().execute(f"DROP {kind} IF EXISTS {relation.render()}")

    def truncate_relation(self, relation: DynamicTablesRelation) -> None:
        """Delete all rows of a table."""
        self._session().execute(f"TRUNCATE TABLE {relation.render()}")

    def rename_relation(self, from_relation: DynamicTablesRelation, to_relation: DynamicTablesRelation) -> None:
        """Rename a table or a view."""
        self.cache_renamed(from_relation, to_relation)
        if from_relation.is_materialized_view:
            message = f"{from_relation} is a materialized table, which can't be renamed"
            raise DbtRuntimeError(message)
        kind = "VIEW" if from_relation.is_view else "TABLE"
        self._session().execute(f"ALTER {kind} {from_relation.render()} RENAME TO {to_relation.render()}")

    # --- what the macros ask ---

    @available.parse(lambda *_, **__: False)
    def keeps_its_definition(
        self,
        relation: DynamicTablesRelation,
        query: str,
        primary_key: Sequence[str],
        partition_by: Sequence[str],
        required: Sequence[str] | None = None,
    ) -> bool:
        """Return whether the query gives the columns that the table has, so that its rows can be replaced at once.

        ``required`` are the columns that a contract declares as NOT NULL, besides the key; None without a contract.
        """
        table = self._table(relation)
        if table is None or table.definition is not None:
            return False
        rows = self._analysed(f"({query}\n) AS dbt_query")
        there = [(field.name, str(field.type.with_nullable(nullable=True))) for field in table.schema.fields]
        keys = (tuple(table.schema.primary_keys), tuple(table.schema.partition_keys))
        if required is not None and {*required} != {*_required(table)}:
            return False
        return there == _typed(rows) and keys == (tuple(primary_key), tuple(partition_by))

    @available.parse(lambda *_, **__: {"columns": [], "keys": [], "required": []})
    def contract_of(self, model: dict[str, Any], primary_key: Sequence[str]) -> dict[str, list[str]]:
        """Return the definitions of a model's columns, its key, and the other columns that are NOT NULL.

        ``primary_key`` is the config of that name. dbt warns about constraints that tables can't have.
        Raises ``DbtRuntimeError`` if the config and the contract name different keys.
        """
        found = list(primary_key)
        declared = [
            each["name"]
            for each in model["columns"].values()
            if _has(each.get("constraints"), ConstraintType.primary_key)
        ]
        for each in model.get("constraints") or ():
            self.render_raw_model_constraint(each)  # warns
            if each["type"] == ConstraintType.primary_key:
                declared += each["columns"]
        if found and declared and {*found} != {*declared}:
            message = f"primary_key is {found}, but the contract's is {declared}; leave one of them out"
            raise DbtRuntimeError(message)
        keys = found or declared
        required = [
            each["name"] for each in model["columns"].values() if _has(each.get("constraints"), ConstraintType.not_null)
        ]
        return {
            "columns": self.render_raw_columns_constraints(model["columns"]),
            "keys": keys,
            "required": [name for name in required if name not in keys],
        }

    @classmethod
    def render_column_constraint(cls, constraint: ColumnLevelConstraint) -> str | None:
        """Return NOT NULL; the key is declared for the whole table. Raises ``DbtRuntimeError`` for a custom text."""
        _refuse_custom(constraint)
        return "not null" if constraint.type is ConstraintType.not_null else None

    @classmethod
    def render_model_constraint(cls, constraint: ModelLevelConstraint) -> str | None:
        """Return None: the key is declared by ``contract_of``. Raises ``DbtRuntimeError`` for a custom text."""
        _refuse_custom(constraint)
        return None

    @available.parse(lambda _, relation: relation)
    def aside_of(self, relation: DynamicTablesRelation) -> DynamicTablesRelation:
        """Return the name under which this invocation builds a table."""
        identifier = f"{relation.identifier}{_ASIDE}{get_invocation_id().replace('-', '')[:12]}"
        return relation.incorporate(path={"identifier": identifier})

    @available.parse(lambda *_, **__: None)
    def drop_abandoned(self, relation: DynamicTablesRelation) -> None:
        """Drop tables that interrupted invocations have begun to build in place of a table, after a day."""
        catalog, prefix = self._catalog(), f"{relation.name_in_catalog}{_ASIDE}"
        oldest = (datetime.now(UTC) - _ABANDONED_AFTER).timestamp() * 1000
        for name in catalog.list_tables(str(relation.schema)):
            if name.startswith(prefix) and catalog.load_table(name).schema.time_millis < oldest:
                catalog.drop_table(name, if_exists=True)

    @available.parse(lambda *_, **__: [])
    def columns_of_query(self, query: str) -> list[str]:
        """Return the names of a query's columns."""
        return list(self._analysed(f"({query}\n) AS dbt_query").columns)

    @available.parse(lambda *_, **__: None)
    def load_seed(self, relation: DynamicTablesRelation, rows: agate.Table) -> None:
        """Replace the rows of a table by those of a seed, in one commit."""
        table = self._catalog().load_table(relation.name_in_catalog)
        schema = pa.schema([table.schema.arrow_schema.field(name) for name in rows.column_names])
        columns = [
            pa.array([_value(value, field.type) for value in column.values()], field.type)
            for column, field in zip(rows.columns, schema, strict=True)
        ]
        table.overwrite(pa.Table.from_arrays(columns, schema=schema))

    @available.parse(lambda *_, **__: False)
    def has_another_query(self, relation: DynamicTablesRelation, query: str) -> bool:
        """Return whether a materialized table was created by another query, or over other texts of its views."""
        table = self._table(relation)
        if table is None or table.definition is None:
            return True
        return bool(table.definition.query != self._session().stored_query(query.strip(), table=table.name))

    @available.parse(lambda *_, **__: False)
    def has_another_lag(self, relation: DynamicTablesRelation, target_lag: str) -> bool:
        """Return whether a materialized table has another lag than the config, such as ``'5' MINUTE``."""
        from storage_lib.schema.options.materialized_table import parse_freshness

        table = self._table(relation)
        if table is None or table.definition is None:
            return True
        return bool(table.definition.freshness != parse_freshness(target_lag))

    # --- column lineage ---

    @available.parse(lambda *_, **__: [])
    def column_lineage(self, nodes: Sequence[Mapping[str, Any]], *, model: str | None = None) -> Iterator[str]:
        """Yield, by column, the columns that the models of a project are computed from; ``model``: only of that one.

        They are those of the queries that dbt compiled last, and are also written to ``column_lineage.json`` next to
        the manifest.
        """
        project, target = Path(self.config.project_root), Path(self.config.project_target_path)

        def query_of(node: Mapping[str, Any]) -> str:
            return compiled_query(project, target, node)

        chosen = selected(nodes, model)
        yield from report(columns_of_models(chosen, query_of, self._source_table), project / target / _LINEAGE)

    def _source_table(self, name: str) -> SourceTable | None:
        schema, _, identifier = name.rpartition(".")
        relation = self.Relation.create(schema=schema, identifier=identifier)
        table = self._table(relation)
        if table is not None:
            return source_table(name, table)
        if not self._catalog().views.exists(name):
            return None
        columns = self._analysed(relation.render()).schema.fields
        return SourceTable(name, tuple((each.name, each.dataType.simpleString()) for each in columns))

    # --- branches ---

    def _branch(self) -> Branch | None:
        return branch_of(self.config.credentials)

    def pre_model_hook(self, config: Mapping[str, Any]) -> None:
        """Create what a model is written to in a target with a branch. Raises ``DbtRuntimeError`` for snapshots."""
        branch, node = self._branch(), getattr(config, "model", None)
        if branch is None or node is None:
            return
        if node.resource_type == "snapshot" or (node.resource_type == "test" and config.get("store_failures")):
            what = "snapshots" if node.resource_type == "snapshot" else "tests with store_failures"
            message = f"{what} would write to main; exclude them in a target with a branch ({branch.name})"
            raise DbtRuntimeError(message)
        if node.resource_type in ("model", "seed"):
            branch.prepare(node.schema, node.identifier, str(config.get("materialized")))

    @available.parse(lambda *_, **__: False)
    def is_on_branch(self) -> bool:
        """Return whether the target has a branch."""
        return self._branch() is not None

    @available.parse(lambda _, relation: relation)
    def whole_of(self, relation: DynamicTablesRelation) -> DynamicTablesRelation:
        """Return what a rebuild creates: for a branch, a table in the database next to the table's."""
        branch = self._branch()
        if branch is None or not relation.is_of_branch:
            return relation
        schema, identifier = branch.database_next_to(str(relation.schema)), without_branch(str(relation.identifier))
        return relation.incorporate(path={"schema": schema, "identifier": identifier})

    @available.parse(lambda *_, **__: [])
    def publish_branch(self, nodes: Sequence[Mapping[str, Any]], *, dry_run: bool = False) -> Iterator[str]:
        """Yield the differences of the branch's rows to main's, then replace main by the branch unless ``dry_run``."""
        publication = Publication(self._named_branch(), nodes)
        yield from publication.differences()
        if not dry_run:
            yield from publication.publish()

    @available.parse(lambda *_, **__: [])
    def drop_branch(self, nodes: Sequence[Mapping[str, Any]]) -> list[str]:
        """Delete the branch of all tables in the databases of a project; return what was deleted."""
        return self._named_branch().drop(sorted({each["schema"] for each in nodes}))

    def _named_branch(self) -> Branch:
        branch = self._branch()
        if branch is None:
            message = "this target has no branch; choose one whose profile names a branch, by --target"
            raise DbtRuntimeError(message)
        return branch

    # --- dbt docs, freshness ---

    def _get_one_catalog(
        self,
        information_schema: InformationSchema,
        schemas: set[str],
        used_schemas: frozenset[tuple[str, str]],
    ) -> agate.Table:
        from dbt_common.clients.agate_helper import table_from_data

        # dbt leaves schemas without a database out of what it filters by.
        rows = [row for schema in sorted(filter(None, schemas)) for row in self._described(schema)]
        return table_from_data(rows, list(_described_columns()))

    def _described(self, schema: str) -> Iterable[dict[str, Any]]:
        for relation in self.list_relations_without_caching(self.Relation.create(schema=schema)):
            table = self._table(relation)
            comments = {} if table is None else {field.name: field.description for field in table.schema.fields}
            view = None if table is not None else self._catalog().views.find(relation.name_in_catalog)
            comments |= {} if view is None else dict(view.column_comments)
            comment = table.schema.comment if table is not None else None if view is None else view.comment
            for index, column in enumerate(self.get_columns_in_relation(relation), start=1):
                values = (
                    None,
                    schema,
                    relation.identifier,
                    str(relation.type),
                    comment,
                    None,
                    column.name,
                    index,
                    column.dtype,
                    comments.get(column.name),
                )
                yield dict(zip(_described_columns(), values, strict=True))

    def calculate_freshness_from_metadata_batch(
        self, sources: list[DynamicTablesRelation], macro_resolver: object = None
    ) -> tuple[list[None], dict[DynamicTablesRelation, Any]]:
        """Return when each source was last written: the time of its newest snapshot, without a query."""
        now = datetime.now(UTC)
        return [], {each: self._create_freshness_response(self._written_at(each), now) for each in sources}

    def _written_at(self, relation: DynamicTablesRelation) -> datetime | None:
        table = self._table(relation)
        snapshot = None if table is None else table.inspect.latest_snapshot()
        return None if snapshot is None else datetime.fromtimestamp(snapshot.time_millis / 1000, UTC)

    # --- types of seeds ---

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a column of text."""
        return "STRING"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a column of numbers."""
        import agate

        return "DOUBLE" if agate_table.aggregate(agate.MaxPrecision(col_idx)) else "BIGINT"

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a column of whole numbers."""
        return "BIGINT"

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a column of moments."""
        return "TIMESTAMP"

    # --- the session ---

    def _session(self) -> Session:
        session: Session = self.connections.get_thread_connection().handle.session
        return session

    def _analysed(self, relation: str) -> DataFrame:
        """Return the lazy rows of a table, a view or a query in parentheses, whose columns Spark has found."""
        rows = self._session().execute(f"SELECT * FROM {relation}").dataframe
        if rows is None:
            message = f"the session gave no rows for {relation}"
            raise DbtRuntimeError(message)
        return rows

    def _catalog(self) -> Catalog:
        return self._session().catalog

    def _table(self, relation: DynamicTablesRelation) -> DynamicTable | None:
        """Return the table of that name, to ask it; None for a view, and for a name that is not there.

        For a branch that was not created yet, this is the table itself.
        """
        catalog, name = self._catalog(), relation.name_in_catalog
        plain = without_branch(name)
        if relation.schema is None or not catalog.table_exists(plain):
            return None
        branch = self._branch()
        is_created = is_of_branch(name) and branch is not None and branch.has_table(plain)
        return catalog.load_table(name if is_created else plain)


def _described_columns() -> tuple[str, ...]:
    return (
        "table_database",
        "table_schema",
        "table_name",
        "table_type",
        "table_comment",
        "table_owner",
        "column_name",
        "column_index",
        "column_type",
        "column_comment",
    )


def _has(constraints: Iterable[dict[str, Any]] | None, kind: ConstraintType) -> bool:
    return any(each["type"] == kind for each in constraints or ())


def _refuse_custom(constraint: ColumnLevelConstraint | ModelLevelConstraint) -> None:
    if constraint.type is ConstraintType.custom:
        message = f"custom constraints are not supported: {constraint.expression}"
        raise DbtRuntimeError(message)


def _required(table: DynamicTable) -> list[str]:
    """Return the columns that are NOT NULL, besides those of the key."""
    keys = table.schema.primary_keys
    return [field.name for field in table.schema.fields if not field.type.nullable and field.name not in keys]


def _typed(rows: DataFrame) -> list[tuple[str, str]]:
    from storage_lib.schema.table_schema import typed_columns
    from storage_lib.spark.types.spark_schema import arrow_schema_of

    columns = typed_columns(arrow_schema_of(rows.schema))
    return [(name, str(of.with_nullable(nullable=True))) for name, of in columns]


def _value(value: object, of: pa.DataType) -> object:
    """Return a value of a seed as Arrow takes it for a column's type; ``agate`` gives every number as a decimal."""
    if pa.types.is_string(of) and value is not None:
        return str(value)
    if isinstance(value, Decimal):
        return _number(value, of)
    if isinstance(value, date) and not isinstance(value, datetime) and pa.types.is_timestamp(of):
        return datetime.combine(value, time())
    return value


def _number(value: Decimal, of: pa.DataType) -> object:
    if pa.types.is_integer(of):
        return int(value)
    if pa.types.is_floating(of):
        return float(value)
    return value.quantize(Decimal(1).scaleb(-of.scale)) if pa.types.is_decimal(of) else value
