{# Clauses of CREATE TABLE that come from a model's config. #}

{% macro dynamic_tables__literal(text) -%}
  '{{ text | string | replace("\\", "\\\\") | replace("'", "''") }}'
{%- endmacro %}

{% macro dynamic_tables__options_clause() -%}
  {%- set options = config.get('options', {}) -%}
  {%- if options %} with (
    {%- for key in options %} '{{ key }}' = {{ dynamic_tables__literal(options[key]) }}{{ ',' if not loop.last }}{% endfor -%}
  ){%- endif -%}
{%- endmacro %}

{% macro dynamic_tables__list_of(config_key) -%}
  {%- set found = config.get(config_key, none) -%}
  {{ return([] if found is none else [found] if found is string else found) }}
{%- endmacro %}

{% macro dynamic_tables__names(names) -%}
  {%- for name in names %}{{ adapter.quote(name) }}{{ ', ' if not loop.last }}{% endfor -%}
{%- endmacro %}

{% macro dynamic_tables__comment_clause() -%}
  {%- if config.persist_relation_docs() and model.description %} comment {{ dynamic_tables__literal(model.description) }}{% endif -%}
{%- endmacro %}

{% macro dynamic_tables__table_clauses() -%}
  {%- set partition_by = dynamic_tables__list_of('partition_by') -%}
  {{ dynamic_tables__comment_clause() }}
  {%- if partition_by %} partitioned by ({{ dynamic_tables__names(partition_by) }}){% endif -%}
  {{ dynamic_tables__options_clause() }}
{%- endmacro %}

{% macro dynamic_tables__create_table_as(temporary, relation, sql, verb='create') -%}
  {%- if temporary -%}
    create or replace temporary view {{ relation.include(schema=false) }} as
    {{ sql }}
  {%- elif dynamic_tables__has_contract() -%}
    {{ get_assert_columns_equivalent(sql) }}
    {{ config.get('sql_header') or '' }}
    {{ dynamic_tables__create_by_contract(relation, sql) }}
  {%- else -%}
    {%- set keys = dynamic_tables__list_of('primary_key') or dynamic_tables__key_of_snapshot() -%}
    {{ config.get('sql_header') or '' }}
    {{ verb }} table {{ relation }}
    {%- if keys %} (primary key ({{ dynamic_tables__names(keys) }}) not enforced){% endif -%}
    {{ dynamic_tables__table_clauses() }} as
    {{ sql }}
  {%- endif -%}
{%- endmacro %}

{% macro dynamic_tables__key_of_snapshot() -%}
  {#- MERGE finds the rows of a snapshot by this column; a table with a key takes the columns that its source gets. -#}
  {%- if model.resource_type != 'snapshot' -%}{{ return([]) }}{%- endif -%}
  {{ return([(config.get('snapshot_table_column_names') or get_snapshot_table_column_names()).dbt_scd_id]) }}
{%- endmacro %}

{% macro dynamic_tables__create_view_as(relation, sql) -%}
  {%- if dynamic_tables__has_contract() -%}{{ get_assert_columns_equivalent(sql) }}{%- endif -%}
  {{ config.get('sql_header') or '' }}
  create or replace view {{ relation }}
  {%- if config.persist_column_docs() and model.columns -%}
    {%- set names = adapter.columns_of_query(sql) -%}
    {%- set described = {} -%}
    {%- for name in model.columns %}{% do described.update({name | lower: model.columns[name].description}) %}{% endfor %} (
    {%- for name in names -%}
      {{ adapter.quote(name) }}
      {%- set text = described.get(name | lower) -%}
      {%- if text %} comment {{ dynamic_tables__literal(text) }}{% endif -%}
      {{ ', ' if not loop.last }}
    {%- endfor -%} )
  {%- endif -%}
  {{ dynamic_tables__comment_clause() }} as
  {{ sql }}
{%- endmacro %}

{% macro dynamic_tables__make_temp_relation(base_relation, suffix) -%}
  {{ return(api.Relation.create(identifier=base_relation.identifier | replace('$', '_') ~ suffix, type='view').include(schema=false)) }}
{%- endmacro %}

{% macro dynamic_tables__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}

{% macro dynamic_tables__alter_column_type(relation, column_name, new_column_type) -%}
  {% call statement('alter_column_type') %}
    alter table {{ relation }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {% endcall %}
{%- endmacro %}

{% macro dynamic_tables__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {% if add_columns %}
    {% do run_query("alter table " ~ relation ~ " add columns (" ~ dynamic_tables__definitions(add_columns) ~ ")") %}
  {% endif %}
  {% if remove_columns %}
    {% do run_query("alter table " ~ relation ~ " drop columns (" ~ (remove_columns | map(attribute='quoted') | join(', ')) ~ ")") %}
  {% endif %}
{%- endmacro %}

{% macro dynamic_tables__definitions(columns) -%}
  {%- for column in columns %}{{ column.quoted }} {{ column.data_type }}{{ ', ' if not loop.last }}{% endfor -%}
{%- endmacro %}

{% macro dynamic_tables__alter_relation_comment(relation, relation_comment) -%}
  {%- if relation.is_view %}select 1{% else -%}
  comment on table {{ relation }} is {{ dynamic_tables__literal(relation_comment) }}
  {%- endif -%}
{%- endmacro %}

{% macro dynamic_tables__alter_column_comment(relation, column_dict) -%}
  {%- if not relation.is_view -%}
  {%- for name in column_dict if column_dict[name].description -%}
    alter table {{ relation }} alter column {{ adapter.quote(name) }} comment {{ dynamic_tables__literal(column_dict[name].description) }};
  {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{% macro dynamic_tables__information_schema_name(database) -%}
  information_schema
{%- endmacro %}

{% macro dynamic_tables__current_timestamp() -%}
  current_timestamp()
{%- endmacro %}

{% macro dynamic_tables__apply_grants(relation, grant_config, should_revoke) -%}
  {%- if grant_config -%}
    {{ exceptions.raise_compiler_error("grants are not supported: the catalog has no users; leave the config `grants` out") }}
  {%- endif -%}
{%- endmacro %}
