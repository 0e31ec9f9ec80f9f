{#- A table that is always the answer of its query: a refresh applies what changed in the tables that it reads. -#}

{% materialization materialized_table, adapter='dynamic_tables' %}
  {{ return(dynamic_tables__materialized()) }}
{% endmaterialization %}

{% materialization materialized_view, adapter='dynamic_tables' %}
  {{ return(dynamic_tables__materialized()) }}
{% endmaterialization %}

{% macro dynamic_tables__materialized() %}
  {#- A materialized table can't read branches: there it is a table of the same rows. -#}
  {%- if adapter.is_on_branch() -%}{{ return(dynamic_tables__table()) }}{%- endif -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='materialized_view') -%}
  {{ run_hooks(pre_hooks) }}
  {{ dynamic_tables__apply_grants(target, config.get('grants'), false) }}
  {%- if existing is not none and (should_full_refresh() or not existing.is_materialized_view) -%}
    {{ adapter.drop_relation(existing) }}
    {%- set existing = none -%}
  {%- endif -%}
  {%- if existing is none -%}
    {%- call statement('main') -%}
      {{ dynamic_tables__create_materialized_table(target, sql) }}
    {%- endcall -%}
  {%- else -%}
    {%- set on_change = config.get('on_configuration_change') -%}
    {%- if adapter.has_another_query(existing, sql) and on_change == 'fail' -%}
      {{ exceptions.raise_fail_fast_error("the query of " ~ target ~ " has changed, and on_configuration_change is fail") }}
    {%- elif adapter.has_another_query(existing, sql) and on_change == 'continue' -%}
      {{ exceptions.warn("the query of " ~ target ~ " has changed, and was left as it is: on_configuration_change is continue") }}
    {%- elif adapter.has_another_query(existing, sql) -%}
      {% do run_query("alter materialized table " ~ target ~ " as " ~ sql) %}
    {%- endif -%}
    {%- if config.get('target_lag') and adapter.has_another_lag(existing, config.get('target_lag')) -%}
      {% do run_query("alter materialized table " ~ target ~ " set " ~ dynamic_tables__lag_clause()) %}
    {%- endif -%}
    {%- call statement('main') -%}
      alter materialized table {{ target }} refresh
    {%- endcall -%}
  {%- endif -%}
  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{% endmacro %}

{% macro dynamic_tables__lag_clause() -%}
  {%- set lag = config.get('target_lag') -%}
  {{ return('target_lag = downstream' if lag | lower == 'downstream' else 'freshness = interval ' ~ lag) }}
{%- endmacro %}

{% macro dynamic_tables__create_materialized_table(relation, sql) -%}
  {%- if dynamic_tables__has_contract() -%}{{ get_assert_columns_equivalent(sql) }}{%- endif -%}
  {%- set keys = dynamic_tables__list_of('primary_key') -%}
  create materialized table {{ relation }}
  {%- if keys %} (primary key ({{ dynamic_tables__names(keys) }}) not enforced){% endif -%}
  {{ dynamic_tables__table_clauses() }}
  {%- if config.get('target_lag') %} {{ dynamic_tables__lag_clause() }}{% endif -%}
  {%- if config.get('refresh_mode') %} refresh_mode = {{ config.get('refresh_mode') }}{% endif %} as
  {{ sql }}
{%- endmacro %}
