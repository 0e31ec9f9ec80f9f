{#- Operations on the branch of the target: dbt run-operation publish_branch --target pr -#}

{% macro publish_branch(dry_run=false) %}
  {% for line in adapter.publish_branch(dynamic_tables__built_nodes(), dry_run=dry_run) %}{% do log(line, info=true) %}{% endfor %}
{% endmacro %}

{% macro drop_branch() %}
  {% for name in adapter.drop_branch(dynamic_tables__built_nodes()) %}{% do log('dropped ' ~ name, info=true) %}{% endfor %}
{% endmacro %}

{% macro dynamic_tables__built_nodes() %}
  {%- set found = [] -%}
  {%- for node in graph.nodes.values() if node.resource_type in ('model', 'seed') and node.config.materialized != 'ephemeral' -%}
    {%- do found.append({'name': node.name, 'schema': node.schema, 'identifier': node.alias, 'materialized': node.config.materialized}) -%}
  {%- endfor -%}
  {{ return(found) }}
{% endmacro %}
