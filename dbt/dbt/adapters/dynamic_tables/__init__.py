"""dbt's plugin for dynamic tables."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.dynamic_tables.connections import DynamicTablesCredentials
from dbt.adapters.dynamic_tables.impl import DynamicTablesAdapter
from dbt.include import dynamic_tables

Plugin = AdapterPlugin(
    adapter=DynamicTablesAdapter,
    credentials=DynamicTablesCredentials,
    include_path=dynamic_tables.PACKAGE_PATH,
)
