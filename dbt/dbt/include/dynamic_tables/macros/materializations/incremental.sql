{#- The strategies of incremental models. Each is one commit: readers never see rows deleted and not yet inserted. -#}

{% macro dynamic_tables__get_incremental_default_sql(arg_dict) -%}
  {%- if arg_dict['unique_key'] -%}
    {{ return(dynamic_tables__get_incremental_merge_sql(arg_dict)) }}
  {%- endif -%}
  {{ return(get_incremental_append_sql(arg_dict)) }}
{%- endmacro %}

{% macro dynamic_tables__get_incremental_append_sql(arg_dict) -%}
  {%- set names = dynamic_tables__names(arg_dict['dest_columns'] | map(attribute='name') | list) -%}
  {{ return('insert into ' ~ arg_dict['target_relation'] ~ ' (' ~ names ~ ') select ' ~ names ~ ' from ' ~ arg_dict['temp_relation']) }}
{%- endmacro %}

{% macro dynamic_tables__get_incremental_insert_overwrite_sql(arg_dict) -%}
  {%- set names = dynamic_tables__names(arg_dict['dest_columns'] | map(attribute='name') | list) -%}
  {{ return('insert overwrite ' ~ arg_dict['target_relation'] ~ ' by name select ' ~ names ~ ' from ' ~ arg_dict['temp_relation']) }}
{%- endmacro %}

{% macro dynamic_tables__get_incremental_merge_sql(arg_dict) -%}
  {{ return(dynamic_tables__get_merge_sql(
      arg_dict['target_relation'], arg_dict['temp_relation'], arg_dict['unique_key'], arg_dict['dest_columns'],
      arg_dict['incremental_predicates'])) }}
{%- endmacro %}

{% macro dynamic_tables__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates=none) -%}
  {%- set predicates = [] if incremental_predicates is none else [] + incremental_predicates -%}
  {%- set keys = [unique_key] if unique_key is string else unique_key -%}
  {%- for key in keys or [] -%}
    {%- do predicates.append('DBT_INTERNAL_SOURCE.' ~ key ~ ' = DBT_INTERNAL_DEST.' ~ key) -%}
  {%- endfor -%}
  {%- set names = dest_columns | map(attribute='name') | list -%}
  {#- Columns of the key are equal in rows that match, and those of a primary key can't be set. -#}
  {%- set matched = (keys or []) | map('lower') | map('replace', '`', '') | list -%}
  {%- set updated = [] -%}
  {%- for name in get_merge_update_columns(config.get('merge_update_columns'), config.get('merge_exclude_columns'), dest_columns)
        if name | lower | replace('`', '') not in matched -%}
    {%- do updated.append(name) -%}
  {%- endfor -%}
  {% set merge_sql %}
    merge into {{ target }} as DBT_INTERNAL_DEST
    using {{ source }} as DBT_INTERNAL_SOURCE
    on {% if predicates %}({{ predicates | join(') and (') }}){% else %}false{% endif %}
    {% if keys and updated %}
    when matched then update set
      {% for name in updated -%}
        {{ name }} = DBT_INTERNAL_SOURCE.{{ name }}{{ ', ' if not loop.last }}
      {%- endfor %}
    {% endif %}
    when not matched then insert ({{ dynamic_tables__names(names) }})
    values ({% for name in names %}DBT_INTERNAL_SOURCE.{{ adapter.quote(name) }}{{ ', ' if not loop.last }}{% endfor %})
  {% endset %}
  {{ return(merge_sql) }}
{%- endmacro %}

{% macro dynamic_tables__get_incremental_delete_insert_sql(arg_dict) -%}
  {#- All rows of the keys in the new rows are replaced by them, in one commit. -#}
  {%- set names = dynamic_tables__names(arg_dict['dest_columns'] | map(attribute='name') | list) -%}
  {%- set unique_key = arg_dict['unique_key'] -%}
  {%- if not unique_key -%}
    {{ return(get_incremental_append_sql(arg_dict)) }}
  {%- endif -%}
  {%- set keys = [unique_key] if unique_key is string else unique_key -%}
  {% set replace_sql %}
    insert overwrite {{ arg_dict['target_relation'] }} /*+ OPTIONS('dynamic-partition-overwrite' = 'false') */ by name
    select {{ names }} from {{ arg_dict['target_relation'] }} as DBT_INTERNAL_DEST
    where not exists (
      select 1 from {{ arg_dict['temp_relation'] }} as DBT_INTERNAL_SOURCE
      where {% for key in keys %}DBT_INTERNAL_SOURCE.{{ key }} = DBT_INTERNAL_DEST.{{ key }}{{ ' and ' if not loop.last }}{% endfor %}
    )
    {%- for predicate in arg_dict['incremental_predicates'] or [] %} or not ({{ predicate }}){% endfor %}
    union all
    select {{ names }} from {{ arg_dict['temp_relation'] }}
  {% endset %}
  {{ return(replace_sql) }}
{%- endmacro %}

{% macro dynamic_tables__get_incremental_microbatch_sql(arg_dict) -%}
  {#- The rows of one batch are replaced in one commit: those that the batch lacks are deleted. -#}
  {%- set event_time = adapter.quote(config.get('event_time')) -%}
  {%- set batch = model.batch -%}
  {%- if not batch or not batch.event_time_start or not batch.event_time_end -%}
    {{ exceptions.raise_compiler_error("the strategy microbatch needs a batch with a begin and an end: set event_time, batch_size and begin") }}
  {%- endif -%}
  {%- set columns = arg_dict['dest_columns'] -%}
  {%- set names = columns | map(attribute='name') | list -%}
  {%- set unique_key = arg_dict['unique_key'] or dynamic_tables__list_of('primary_key') -%}
  {%- set keys = [unique_key] if unique_key is string else unique_key -%}
  {%- set updated = names | reject('in', keys) | list -%}
  {% set merge_sql %}
    merge into {{ arg_dict['target_relation'] }} as DBT_INTERNAL_DEST
    using {{ arg_dict['temp_relation'] }} as DBT_INTERNAL_SOURCE
    on {% for key in keys %}DBT_INTERNAL_SOURCE.{{ adapter.quote(key) }} = DBT_INTERNAL_DEST.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}{% else %}false{% endfor %}
    {% if keys and updated %}
    when matched then update set
      {% for name in updated -%}
        {{ adapter.quote(name) }} = DBT_INTERNAL_SOURCE.{{ adapter.quote(name) }}{{ ', ' if not loop.last }}
      {%- endfor %}
    {% endif %}
    when not matched then insert ({{ dynamic_tables__names(names) }})
    values ({% for name in names %}DBT_INTERNAL_SOURCE.{{ adapter.quote(name) }}{{ ', ' if not loop.last }}{% endfor %})
    when not matched by source
      and DBT_INTERNAL_DEST.{{ event_time }} >= timestamp '{{ batch.event_time_start }}'
      and DBT_INTERNAL_DEST.{{ event_time }} < timestamp '{{ batch.event_time_end }}'
    then delete
  {% endset %}
  {{ return(merge_sql) }}
{%- endmacro %}

{% materialization incremental, adapter='dynamic_tables' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set unique_key = config.get('unique_key') -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set strategy = config.get('incremental_strategy') or 'default' -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, strategy) -%}

  {{ run_hooks(pre_hooks) }}
  {{ dynamic_tables__apply_grants(target, config.get('grants'), false) }}

  {%- if existing is none or should_full_refresh() or not existing.is_table -%}
    {%- set target = dynamic_tables__build_aside(existing, target, sql) -%}
  {%- else -%}
    {%- if dynamic_tables__has_contract() -%}{{ get_assert_columns_equivalent(sql) }}{%- endif -%}
    {%- set temporary = make_temp_relation(target) -%}
    {% do run_query(dynamic_tables__create_table_as(true, temporary, sql)) %}
    {%- set columns = process_schema_changes(on_schema_change, temporary, existing) or adapter.get_columns_in_relation(existing) -%}
    {%- set build_sql = strategy_macro({
        'target_relation': target, 'temp_relation': temporary, 'unique_key': unique_key, 'dest_columns': columns,
        'incremental_predicates': config.get('predicates', none) or config.get('incremental_predicates', none)}) -%}
    {%- call statement('main') -%}
      {{ build_sql }}
    {%- endcall -%}
    {% do run_query('drop view if exists ' ~ temporary) %}
  {%- endif -%}

  {% do persist_docs(target, model) %}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}
