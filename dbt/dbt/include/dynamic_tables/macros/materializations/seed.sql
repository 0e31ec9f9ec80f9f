{% macro dynamic_tables__create_csv_table(model, agate_table) -%}
  {%- set types = model['config'].get('column_types', {}) -%}
  {%- set keys = dynamic_tables__list_of('primary_key') -%}
  {% set create_sql %}
    create table {{ this.render() }} (
      {%- for name in agate_table.column_names -%}
        {{ adapter.quote(name) }} {{ types.get(name, adapter.convert_type(agate_table, loop.index0)) }}{{ ',' if not loop.last }}
      {%- endfor -%}
      {%- if keys %}, primary key ({{ dynamic_tables__names(keys) }}) not enforced{% endif -%}
    ) {{ dynamic_tables__table_clauses() }}
  {% endset %}
  {% call statement('_') %}{{ create_sql }}{% endcall %}
  {{ return(create_sql) }}
{%- endmacro %}

{% macro dynamic_tables__reset_csv_table(model, full_refresh, old_relation, agate_table) -%}
  {#- Without a full refresh, load_csv_rows replaces the rows in one commit. -#}
  {%- if full_refresh -%}
    {{ adapter.drop_relation(old_relation) }}
    {{ return(dynamic_tables__create_csv_table(model, agate_table)) }}
  {%- endif -%}
  {{ return('-- rows are replaced in one commit') }}
{%- endmacro %}

{% macro dynamic_tables__load_csv_rows(model, agate_table) -%}
  {% do adapter.load_seed(this, agate_table) %}
  {{ return('-- ' ~ (agate_table.rows | length) ~ ' rows in one commit') }}
{%- endmacro %}
