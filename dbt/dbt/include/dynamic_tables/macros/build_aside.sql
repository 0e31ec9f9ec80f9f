{#- A table is built under another name and then renamed, so that nobody sees it before its rows: neither while it is
    built nor after an interruption. The name is the invocation's own, because two of them may build the same model. -#}
{% macro dynamic_tables__build_aside(existing, target, sql) -%}
  {%- if target.is_of_branch -%}
    {{ return(dynamic_tables__build_aside(none, adapter.whole_of(target), sql)) }}
  {%- endif -%}
  {%- set aside = adapter.aside_of(target) -%}
  {% do adapter.drop_abandoned(target) %}
  {%- call statement('main') -%}
    {{ dynamic_tables__create_table_as(false, aside, sql) }}
  {%- endcall -%}
  {%- if existing is not none -%}
    {{ adapter.drop_relation(existing) }}
  {%- endif -%}
  {{ adapter.rename_relation(aside, target) }}
  {{ return(target) }}
{%- endmacro %}
