{% macro dynamic_tables__generate_database_name(custom_database_name=none, node=none) -%}
  {#- Names have two parts; dbt's schema is the first one. -#}
  {{ return(none) }}
{%- endmacro %}
