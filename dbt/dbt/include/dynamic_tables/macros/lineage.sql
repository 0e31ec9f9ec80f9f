{#- From which columns each column of the models is computed: dbt run-operation column_lineage --args 'model: orders' -#}

{% macro column_lineage(model=none) %}
  {%- set nodes = [] -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.language == 'sql' and node.config.materialized != 'ephemeral' -%}
    {%- do nodes.append({'name': node.name, 'unique_id': node.unique_id, 'schema': node.schema, 'package_name': node.package_name, 'original_file_path': node.original_file_path}) -%}
  {%- endfor -%}
  {% for line in adapter.column_lineage(nodes, model=model) %}{% do log(line, info=true) %}{% endfor %}
{% endmacro %}
