"""Tables of a MariaDB and what happens to them, chosen so that Debezium writes every type and kind of record.

``BEFORE`` makes the tables and their first rows, which a connector reads in its snapshot. Each of ``STEPS`` is one
transaction, or one statement that changes a table's shape. All values are fixed.
"""

from __future__ import annotations

__all__ = ["BEFORE", "STEPS", "TABLES"]

TABLES = ("every_type", "orders", "keyless", "unsigned_key", "special_values")

_COLUMNS = """id int primary key, a_tiny tinyint, a_bool tinyint(1), a_boolean boolean, a_utiny tinyint unsigned,
    a_small smallint, a_usmall smallint unsigned, a_medium mediumint, a_umedium mediumint unsigned, an_int int,
    a_uint int unsigned, a_big bigint, a_ubig bigint unsigned, a_float float, a_double double, a_decimal decimal(10,2),
    a_udecimal decimal(10,2) unsigned, a_wide decimal(38,10), a_widest decimal(65,30), a_zerofill int(8) zerofill,
    a_bit bit(1), bits bit(10), every_bit bit(64), a_char char(3), a_varchar varchar(20), a_text text, a_long longtext,
    a_binary binary(4), a_varbinary varbinary(20), a_blob blob, a_date date, a_time time, a_time_micros time(6),
    a_datetime datetime, a_datetime_millis datetime(3), a_datetime_micros datetime(6), a_timestamp timestamp null,
    a_timestamp_micros timestamp(6) null, a_year year, an_enum enum('a','b','c d'), a_set set('x','y','z'), a_json json,
    a_uuid uuid, a_point point"""

_TYPICAL = """insert into every_type values ({id}, -5, 1, true, 250, -300, 60000, -8000000, 16000000, -2000000000,
    4000000000, -9000000000000000000, 9000000000000000000, 1.5, 0.1, 9.50, 9.50, 1234567890.0123456789,
    12345678901234567890.012345678901234567890123456789, 42, b'1', b'1010101010', b'1', 'ab', 'varying', 'text', 'long',
    x'00ff', x'00ff10', x'00ff10', '2026-01-02', '10:11:12', '10:11:12.123456', '2026-01-02 03:04:05',
    '2026-01-02 03:04:05.678', '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05', '2026-01-02 03:04:05.678901', 2026,
    'c d', 'x,z', '{{"b": 1, "a": [1.50, null]}}', '9a4a0e5c-98b2-4b3e-8e5c-000000000001', point(1, -2.5))"""

_GREATEST = """insert into every_type values ({id}, 127, 127, true, 255, 32767, 65535, 8388607, 16777215, 2147483647,
    4294967295, 9223372036854775807, 9223372036854775807, 3.40282e38, 1.7976931348623157e308, 99999999.99, 99999999.99,
    9999999999999999999999999999.9999999999, 99999999999999999999999999999999999.999999999999999999999999999999,
    4294967295, b'1', b'1111111111', x'ffffffffffffffff', 'zzz', repeat('z', 20), 'line\\nfeed "quoted" \\\\ 😀',
    repeat('long', 1000), x'ffffffff', x'ffffffff', repeat('b', 3000), '9999-12-31', '23:59:59', '23:59:59.999999',
    '9999-12-31 23:59:59', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07',
    '2038-01-19 03:14:07.999999', 2155, 'a', 'x,y,z', '[]', 'ffffffff-ffff-ffff-ffff-ffffffffffff', point(0, 0))"""

_LEAST = """insert into every_type values ({id}, -128, -128, false, 0, -32768, 0, -8388608, 0, -2147483648, 0,
    -9223372036854775808, 0, -3.40282e38, 5e-324, -99999999.99, 0, -9999999999999999999999999999.9999999999,
    -99999999999999999999999999999999999.999999999999999999999999999999, 0, b'0', b'0', b'0', '', '', '', '', x'', x'',
    x'', '1600-01-01', '00:00:00', '00:00:00', '1600-01-02 00:00:00', '1969-12-31 23:59:59.999',
    '1969-12-31 23:59:59.999999', '1970-01-01 00:00:01', '1970-01-01 00:00:01.000001', 1901, 'a', '', 'null',
    '00000000-0000-0000-0000-000000000000', point(0, 0))"""

_SPECIAL = """create table special_values(
    id int primary key, what text, a_date date, a_time time, a_time_micros time(6), a_datetime datetime,
    a_datetime_micros datetime(6), a_timestamp timestamp null, a_year year, an_enum enum('a', 'b'),
    required_date date not null)"""

BEFORE = (
    "set sql_mode = ''",  # which allows dates of zeros
    f"create table every_type({_COLUMNS})",
    _TYPICAL.format(id=1),
    "insert into every_type(id) values (2)",
    _GREATEST.format(id=3),
    _LEAST.format(id=4),
    "create table orders(id bigint primary key, item varchar(20), price decimal(10,2), at timestamp not null)",
    "insert into orders values (1, 'tea', 4.50, '2026-01-02 03:04:05'), (2, 'cup', 9, '2026-01-02 03:04:06')",
    "create table keyless(a int, b text)",
    "insert into keyless values (1, 'x'), (1, 'x'), (null, null)",
    "create table unsigned_key(id bigint unsigned primary key, name varchar(20))",
    "insert into unsigned_key values (9000000000000000000, 'great')",
    _SPECIAL,
    """insert into special_values values (1, 'zeros', '0000-00-00', '-838:59:59', '-838:59:58.999999',
        '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', null, 'nope', '0000-00-00')""",
)

STEPS: tuple[tuple[str, ...], ...] = (
    (_TYPICAL.format(id=11), "insert into every_type(id) values (12)", _GREATEST.format(id=13), _LEAST.format(id=14)),
    ("update every_type set a_text = 'new', a_time = '11:12:13', bits = b'1' where id in (1, 3)",),
    ("delete from every_type where id in (2, 12)",),
    ("update orders set price = 5 where id = 1", "insert into orders values (3, 'pot', 19.99, '2026-02-01 00:00:00')"),
    ("update orders set id = 4 where id = 2",),
    ("delete from orders where id = 4",),
    ("alter table orders add column qty int unsigned not null default 7",),
    ("insert into orders values (5, 'jug', 1.25, '2026-02-02 00:00:00', 3)",),
    ("alter table orders modify column price decimal(12,4)",),
    ("update orders set price = 1.2345 where id = 5",),
    ("alter table orders change column item article varchar(40)",),
    ("update orders set article = 'mug' where id = 1",),
    ("alter table orders drop column article",),
    ("update orders set qty = 9 where id = 3",),
    ("update keyless set b = 'y' where a = 1 limit 1", "delete from keyless where a is null"),
    ("truncate table keyless",),
    ("insert into keyless values (7, 'after')",),
    ("update unsigned_key set name = 'greater'", "insert into unsigned_key values (1, 'small')"),
    ("update unsigned_key set id = 2 where id = 1", "delete from unsigned_key where id = 9000000000000000000"),
    (
        """insert into special_values values (2, 'zeros', '0000-00-00', '838:59:59', '838:59:58.999999',
        '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', 0, 'nope', '0000-00-00')""",
    ),
    (
        """insert into special_values values
        (3, 'parts', '2026-00-00', null, null, null, null, null, 69, 'a', '2026-01-00')""",
    ),
)
