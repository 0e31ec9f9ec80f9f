{% materialization table, adapter='dynamic_tables' %}
  {{ return(dynamic_tables__table()) }}
{% endmaterialization %}

{% macro dynamic_tables__table() %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}
  {{ dynamic_tables__apply_grants(target, config.get('grants'), false) }}

  {#- Readers see the old rows or the new ones: they are replaced in one commit, or the table by a renamed one. -#}
  {%- if existing is not none and existing.is_table and not should_full_refresh()
        and dynamic_tables__keeps_its_definition(existing, sql) -%}
    {%- call statement('main') -%}
      {%- if dynamic_tables__has_contract() -%}
        {{ dynamic_tables__replace_by_contract(target, sql) }}
      {%- elif target.is_of_branch -%}
        {{ dynamic_tables__replace_rows(target, sql) }}
      {%- else -%}
        {{ dynamic_tables__create_table_as(false, target, sql, verb='create or replace') }}
      {%- endif -%}
    {%- endcall -%}
  {%- else -%}
    {%- set target = dynamic_tables__build_aside(existing, target, sql) -%}
  {%- endif -%}

  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{% endmacro %}

{% macro dynamic_tables__keeps_its_definition(existing, sql) -%}
  {%- set partition_by = dynamic_tables__list_of('partition_by') -%}
  {%- if dynamic_tables__has_contract() -%}
    {%- set contract = dynamic_tables__contract() -%}
    {{ return(adapter.keeps_its_definition(existing, get_select_subquery(sql), contract['keys'], partition_by, contract['required'])) }}
  {%- endif -%}
  {{ return(adapter.keeps_its_definition(existing, sql, dynamic_tables__list_of('primary_key'), partition_by)) }}
{%- endmacro %}

{% materialization view, adapter='dynamic_tables' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='view') -%}
  {{ run_hooks(pre_hooks) }}
  {{ dynamic_tables__apply_grants(target, config.get('grants'), false) }}
  {%- if existing is not none and not existing.is_view -%}
    {{ adapter.drop_relation(existing) }}
  {%- endif -%}
  {%- call statement('main') -%}
    {{ dynamic_tables__create_view_as(target, sql) }}
  {%- endcall -%}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}
