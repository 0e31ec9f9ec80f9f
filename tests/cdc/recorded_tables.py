# ruff: noqa: S608 - the names in these statements are our own
"""Tables of a PostgreSQL and what happens to them, chosen so that Debezium writes every kind of record that is hard.

``BEFORE`` makes the tables and their first rows, which a connector reads in its snapshot. Each of ``STEPS`` is one
transaction. All values are fixed, so that a new recording differs only in positions and times.
"""

from __future__ import annotations

__all__ = ["BEFORE", "STEPS", "TABLES"]

TABLES = ("orders", "orders_whole", "toasted", "every_type", "special_values", "keyless", "two_keys", "appended")
LONG = "repeat('0123456789abcdef', 160)"  # 2560 bytes, which PostgreSQL stores outside the row

_ORDERS = """create table {}(id bigint primary key, item text, note text, price numeric(10,2),
    at timestamptz not null default '2026-01-01 10:00:00.123456+00', day date, t time(6))"""

_EVERY_TYPE = """create table every_type(
    id int primary key, a_boolean boolean, a_smallint smallint, an_int int, a_bigint bigint, a_real real,
    a_double double precision, a_numeric numeric(10,2), a_wide_numeric numeric(38,10), a_free_numeric numeric,
    a_money money, a_char char(3), a_varchar varchar(20), a_text text, a_bytea bytea, a_date date, a_time time(0),
    a_time_millis time(3), a_time_micros time(6), a_timetz timetz, a_timestamp timestamp(0),
    a_timestamp_millis timestamp(3), a_timestamp_micros timestamp, a_timestamptz timestamptz, an_interval interval,
    a_uuid uuid, a_json json, a_jsonb jsonb, an_xml xml, an_inet inet, a_cidr cidr, a_macaddr macaddr, a_bit bit(1),
    bits bit(10), a_varbit varbit(20), an_int_range int4range, a_numeric_range numrange, a_date_range daterange,
    a_timestamptz_range tstzrange, ints int[], texts text[], numerics numeric(10,2)[], timestamptzs timestamptz[],
    dates date[], a_mood mood, moods mood[], an_hstore hstore, an_ltree ltree, a_citext citext, a_point point,
    an_oid oid, a_short_text short_text)"""

_TYPICAL = """insert into every_type values (
    1, true, 7, 70000, 7000000000, 1.5, 0.1, 9.50, 1234567890.0123456789, 3.14159, 12.34, 'ab', 'varying', 'text',
    '\\x00ff10', '2026-01-02', '10:11:12', '10:11:12.123', '10:11:12.123456', '10:11:12.5+02',
    '2026-01-02 03:04:05', '2026-01-02 03:04:05.678', '2026-01-02 03:04:05.678901',
    '2026-01-02 03:04:05.678901+02', '1 year 2 months 3 days 04:05:06.789', '9a4a0e5c-98b2-4b3e-8e5c-000000000001',
    '{"b": 1, "a": [1.50, null]}', '{"b": 1, "a": [1.50, null]}', '<a>x</a>', '10.0.0.1/8', '10.0.0.0/8',
    '08:00:2b:01:02:03', '1', '1010101010', '101', '[1,5)', '[1.5,2.5]', '[2026-01-01,2026-02-01)',
    '[2026-01-01 00:00:00+00,2026-01-02 00:00:00+00)', '{1,null,3}', '{"a","b c",null,""}', '{1.50,-2.25,null}',
    '{"2026-01-02 03:04:05.678901+00",null}', '{2026-01-02,null}', 'sad', '{sad,happy}', '"a"=>"1","b"=>NULL',
    'top.middle.leaf', 'MiXed', '(1.5,-2)', 4000000000, 'short')"""

_GREATEST = """insert into every_type(id, a_boolean, a_smallint, an_int, a_bigint, a_real, a_double, a_numeric,
    a_wide_numeric, a_free_numeric, a_money, a_char, a_varchar, a_text, a_bytea, a_date, a_time, a_time_millis,
    a_time_micros, a_timetz, a_timestamp, a_timestamp_millis, a_timestamp_micros, a_timestamptz, an_interval, bits,
    ints, texts) values (3, true, 32767, 2147483647, 9223372036854775807, '3.4028235e38', '1.7976931348623157e308',
    99999999.99, 9999999999999999999999999999.9999999999, 123456789012345678901234567890.5, 92233720368547758.07,
    'zzz', repeat('z', 20), E'line\\nfeed "quoted" \\\\ 😀', '\\xffffffff', '9999-12-31', '23:59:59', '23:59:59.999',
    '23:59:59.999999', '23:59:59.999999-12', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999',
    '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999+00', '100 years', '1111111111', '{2147483647}', '{}')"""

_LEAST = """insert into every_type(id, a_boolean, a_smallint, an_int, a_bigint, a_real, a_double, a_numeric,
    a_wide_numeric, a_free_numeric, a_money, a_char, a_varchar, a_text, a_bytea, a_date, a_time, a_time_millis,
    a_time_micros, a_timetz, a_timestamp, a_timestamp_millis, a_timestamp_micros, a_timestamptz, an_interval, bits,
    ints, texts) values (4, false, -32768, -2147483648, -9223372036854775808, -1e-37, -5e-324, -99999999.99,
    -9999999999999999999999999999.9999999999, -0.000000000000000000000000000001, -92233720368547758.08, '', '', '',
    '', '0001-01-01', '00:00:00', '00:00:00', '00:00:00', '00:00:00+14', '0001-01-01 00:00:00',
    '0001-01-01 00:00:00.001', '1969-12-31 23:59:59.999999', '1582-10-04 00:00:00+00', '-1 month', '0000000000',
    '{-2147483648}', '{__debezium_unavailable_value}')"""

_SPECIAL_VALUES = """create table special_values(id int primary key, what text, a_real real, a_double double precision,
    a_date date, a_time time(6), a_timestamp timestamp, a_timestamptz timestamptz, a_numeric numeric,
    a_timestamp_array timestamptz[])"""

BEFORE = (
    "set timezone = 'UTC'",
    "create extension hstore",
    "create extension ltree",
    "create extension citext",
    "create type mood as enum ('sad', 'ok', 'happy')",
    "create domain short_text as varchar(10)",
    _ORDERS.format("orders"),
    _ORDERS.format("orders_whole"),
    "alter table orders_whole replica identity full",
    "alter table orders alter column note set storage external",
    "alter table orders_whole alter column note set storage external",
    *(
        f"insert into {table}(id, item, note, price, day, t) values "
        f"(1, 'tea', {LONG}, 4.50, '2026-01-01', '10:00:00.123456'), (2, 'cup', null, 9, '2026-01-01', '10:00')"
        for table in ("orders", "orders_whole")
    ),
    """create table toasted(id int primary key, n int, a_text text, a_bytea bytea, a_jsonb jsonb, texts text[],
        ints int[], an_hstore hstore, a_varchar varchar(4000))""",
    *(
        f"alter table toasted alter column {column} set storage external"
        for column in ("a_text", "a_bytea", "a_jsonb", "texts", "ints", "an_hstore", "a_varchar")
    ),
    _EVERY_TYPE,
    _TYPICAL,
    "insert into every_type(id) values (2)",
    _SPECIAL_VALUES,
    "create table keyless(a int, b text)",
    "alter table keyless replica identity full",
    "insert into keyless values (1, 'twice'), (1, 'twice'), (2, null)",
    """create table two_keys(region text, id int, code text not null, amount int not null, note text,
        primary key (region, id))""",
    "create unique index two_keys_code on two_keys(code)",
    "insert into two_keys values ('north', 1, 'n1', 10, 'first'), ('south', 1, 's1', 20, null)",
    "create table appended(id int, line text)",
    "insert into appended values (1, 'first')",
)

STEPS: tuple[tuple[str, ...], ...] = (
    # Unchanged long values are not sent, and neither is the row before unless the identity is full.
    *((f"update {table} set price = 5 where id = 1",) for table in ("orders", "orders_whole")),
    *((f"delete from {table} where id = 2",) for table in ("orders", "orders_whole")),
    *(
        (f"insert into {table}(id, item, note, price, day, t) values (3, 'pot', 'n', 19.9, '2026-01-02', '11:00')",)
        for table in ("orders", "orders_whole")
    ),
    # A moved key is a deletion and an insertion.
    *((f"update {table} set id = 4 where id = 3",) for table in ("orders", "orders_whole")),
    *((f"update {table} set id = 5 where id = 1",) for table in ("orders", "orders_whole")),
    (
        (
            f"insert into toasted values (1, 0, {LONG}, convert_to({LONG}, 'UTF8'), jsonb_build_object('a', {LONG}), "
            f"array[{LONG}, 'short'], array(select generate_series(1, 700)), hstore('a', {LONG}), {LONG}), "
            "(2, 0, 'a', '\\x01', '{}', '{a}', '{1}', 'a=>1', 'a')"
        ),
    ),
    ("update toasted set n = n + 1",),
    ("update toasted set a_text = a_text || 'x' where id = 1",),
    ("update toasted set a_text = '__debezium_unavailable_value' where id = 2",),
    ("alter table toasted replica identity full", "update toasted set n = n + 1 where id = 1"),
    ("update toasted set id = 3 where id = 1",),
    ("delete from toasted where id = 3",),
    (_GREATEST,),
    (_LEAST,),
    ("update every_type set a_text = 'changed' where id = 1",),
    ("update every_type set a_numeric = null, ints = null where id = 1",),
    ("delete from every_type where id = 2",),
    ("insert into special_values(id, what, a_date) values (1, 'date', 'infinity'), (2, 'date', '-infinity')",),
    ("insert into special_values(id, what, a_time) values (3, 'midnight', '24:00:00')",),
    (
        """insert into special_values(id, what, a_timestamp, a_timestamptz) values
            (4, 'timestamps', 'infinity', 'infinity'), (5, 'timestamps', '-infinity', '-infinity')""",
    ),
    (
        """insert into special_values(id, what, a_real, a_double) values (6, 'floats', 'NaN', 'NaN'),
            (7, 'floats', 'Infinity', 'Infinity'), (8, 'floats', '-Infinity', '-Infinity'),
            (9, 'floats', '-0', '-0')""",
    ),
    ("insert into special_values(id, what, a_numeric) values (10, 'numeric', 'NaN')",),
    (
        """insert into special_values(id, what, a_date, a_timestamp, a_timestamptz) values
            (11, 'before Christ', '0044-03-15 BC', '0044-03-15 10:00:00 BC', '0044-03-15 10:00:00+00 BC'),
            (12, 'far', '29999-12-31', '29999-12-31 23:59:59.999999', '29999-12-31 23:59:59.999999+00')""",
    ),
    ("insert into keyless values (3, 'new')",),
    ("update keyless set b = 'changed' where a = 1",),
    ("delete from keyless where a = 2",),
    ("update two_keys set amount = 11 where region = 'north'",),
    ("update two_keys set region = 'west' where region = 'south'",),
    ("alter table two_keys replica identity using index two_keys_code",),
    ("update two_keys set note = 'by its code' where code = 'n1'",),
    ("update two_keys set code = 'n2' where code = 'n1'",),
    ("delete from two_keys where code = 's1'",),
    ("insert into appended values (2, 'second'), (2, 'second')",),
    # One transaction over several tables, which inserts, changes and deletes one row.
    (
        "insert into orders(id, item) values (6, 'brief')",
        "insert into two_keys values ('east', 1, 'e1', 1, null)",
        "update orders set item = 'briefly' where id = 6",
        "delete from orders where id = 6",
        "insert into orders(id, item) values (6, 'again')",
    ),
    ("select pg_logical_emit_message(true, 'prefix', 'a message')",),
    *((f"alter table {table} add column qty int default 1",) for table in ("orders", "orders_whole")),
    *((f"alter table {table} rename column item to article",) for table in ("orders", "orders_whole")),
    *((f"update {table} set qty = 7 where id = 4",) for table in ("orders", "orders_whole")),
    *((f"alter table {table} alter column price type numeric(12,4)",) for table in ("orders", "orders_whole")),
    *((f"insert into {table}(id, price) values (7, 1.2345)",) for table in ("orders", "orders_whole")),
    *((f"alter table {table} drop column day",) for table in ("orders", "orders_whole")),
    *((f"insert into {table}(id, article) values (8, 'after')",) for table in ("orders", "orders_whole")),
    *((f"truncate {table}",) for table in ("orders", "orders_whole")),
    *((f"insert into {table}(id, article) values (9, 'mug')",) for table in ("orders", "orders_whole")),
)
