{# Tables whose columns a contract declares: their types, NOT NULL and the primary key. #}

{% macro dynamic_tables__has_contract() -%}
  {%- set contract = config.get('contract') -%}
  {{ return((contract and contract.enforced) | as_bool) }}
{%- endmacro %}

{% macro dynamic_tables__contract() -%}
  {{ return(adapter.contract_of(model, dynamic_tables__list_of('primary_key'))) }}
{%- endmacro %}

{% macro dynamic_tables__create_by_contract(relation, sql) -%}
  {%- set contract = dynamic_tables__contract() -%}
  create table {{ relation }} (
    {{ contract['columns'] | join(', ') }}
    {%- if contract['keys'] %}, primary key ({{ dynamic_tables__names(contract['keys']) }}) not enforced{% endif %}
  ) {{ dynamic_tables__table_clauses() }};
  insert into {{ relation }} by name {{ get_select_subquery(sql) }}
{%- endmacro %}

{% macro dynamic_tables__replace_by_contract(relation, sql) -%}
  {{ get_assert_columns_equivalent(sql) }}
  {{ dynamic_tables__replace_rows(relation, get_select_subquery(sql)) }}
{%- endmacro %}

{% macro dynamic_tables__replace_rows(relation, sql) -%}
  {{ config.get('sql_header') or '' }}
  insert overwrite {{ relation }} /*+ OPTIONS('dynamic-partition-overwrite' = 'false') */ by name {{ sql }}
{%- endmacro %}
