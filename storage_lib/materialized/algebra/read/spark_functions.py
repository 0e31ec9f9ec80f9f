"""Names of functions of Spark SQL, by what their values depend on.

A function that is in none of these sets and that sqlglot does not know either may be anything, so a query that calls
it is computed in full.
"""

from __future__ import annotations

__all__ = ["ORDER_DEPENDENT", "SCALAR", "VOLATILE"]

_VOLATILE = """
current_catalog current_database current_date current_schema current_time current_timestamp current_timezone
current_user getdate input_file_block_length input_file_block_start input_file_name localtime localtimestamp
monotonically_increasing_id now rand randn random randstr session_user shuffle spark_partition_id uniform
unix_timestamp user uuid version
"""
VOLATILE = frozenset(_VOLATILE.split())
"""Functions whose values may differ between two runs over the same rows."""

_SCALAR = """
aes_decrypt array_append array_compact array_insert array_join array_position array_prepend array_remove
array_repeat array_size arrays_overlap arrays_zip ascii bin bit_count bit_get bit_length bround btrim cardinality
ceil ceiling char char_length character_length chr concat_ws contains conv cot crc32 csc date_from_unix_date
date_part datepart dayname dayofmonth decode degrees e elt encode endswith equal_null exp expm1 factorial
find_in_set flatten format_number format_string from_csv get getbit hash hypot ifnull initcap instr isnotnull
isnull json_array_length json_object_keys left len length levenshtein ln locate log10 log1p log2 lpad ltrim
luhn_check make_date make_dt_interval make_interval make_timestamp make_ym_interval map_concat map_entries
map_from_arrays map_from_entries map_keys map_values mask md5 monthname named_struct nanvl negative nullif
nullifzero nvl nvl2 octet_length overlay parse_url pmod positive pow printf quote radians regexp_count
regexp_instr regexp_substr replace reverse right rint rpad rtrim sec sentences sequence sha sha1 sha2 shiftleft
shiftright shiftrightunsigned sign signum sin sinh size slice sort_array soundex space split split_part sqrt
startswith str_to_map struct substr substring substring_index tan tanh timestamp_micros timestamp_millis
timestamp_seconds to_binary to_char to_csv to_json to_number to_varchar translate trim trunc try_add try_cast
try_divide try_mod try_multiply try_subtract try_to_number try_to_timestamp typeof ucase unbase64 unhex unix_date
unix_micros unix_millis unix_seconds upper url_decode url_encode weekday width_bucket wind0w window xpath xpath_string
xxhash64 zeroifnull
"""
SCALAR = frozenset(_SCALAR.split())
"""Scalar functions without a class of their own in sqlglot. They depend on their arguments only."""

_ORDER_DEPENDENT = """
any_value anyvalue approx_percentile approx_quantile arg_max arg_min argmax argmin array_agg arrayagg
arrayconcatagg arrayuniqueagg collect_list collect_set first first_value group_concat groupconcat jsonobjectagg
last last_value listagg max_by min_by mode objectagg percentile_approx string_agg
"""
ORDER_DEPENDENT = frozenset(_ORDER_DEPENDENT.split())
"""Keys of sqlglot's aggregates whose values depend on the order of their rows."""
