{% materialization table, adapter='dynamic_tables' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set keys = dynamic_tables__list_of('primary_key') -%}

  {{ run_hooks(pre_hooks) }}
  {{ dynamic_tables__apply_grants(target, config.get('grants'), false) }}

  {#- Readers see the old rows or the new ones: they are replaced in one commit, or the table by a renamed one. -#}
  {%- if existing is not none and existing.is_table and not should_full_refresh()
        and adapter.keeps_its_definition(existing, sql, keys, dynamic_tables__list_of('partition_by')) -%}
    {%- call statement('main') -%}
      {{ dynamic_tables__create_table_as(false, target, sql, verb='create or replace') }}
    {%- endcall -%}
  {%- elif existing is none -%}
    {%- call statement('main') -%}
      {{ dynamic_tables__create_table_as(false, target, sql) }}
    {%- endcall -%}
  {%- else -%}
    {%- set intermediate = make_intermediate_relation(target) -%}
    {{ drop_relation_if_exists(load_cached_relation(intermediate)) }}
    {%- call statement('main') -%}
      {{ dynamic_tables__create_table_as(false, intermediate, sql) }}
    {%- endcall -%}
    {{ adapter.drop_relation(existing) }}
    {{ adapter.rename_relation(intermediate, target) }}
  {%- endif -%}

  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}

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
