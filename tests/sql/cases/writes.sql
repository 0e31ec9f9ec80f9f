INSERT INTO and OVERWRITE (requirements B18 to B22).

-- case: rows by place and by name
CREATE TABLE t (id BIGINT, v STRING, n INT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
INSERT INTO t VALUES (1, 'a', 10);
--> default.t: snapshot 1
INSERT INTO t (n, id) VALUES (20, 2);
--> default.t: snapshot 2
INSERT INTO t (ID, V) SELECT id + 2, n FROM t;
--> default.t: snapshot 3
INSERT INTO TABLE t SELECT id, v, n FROM t WHERE false;
--> default.t: nothing to write
SELECT * FROM t;
--> id | v | n
--> 1 | a | 10
--> 2 | NULL | 20
--> 3 | 10 | NULL
--> 4 | 20 | NULL

-- case: changes written by their kinds
CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
INSERT INTO t VALUES (1, 'a'), (2, 'b');
--> default.t: snapshot 1
INSERT INTO t SELECT 1L AS id, '-D' AS _row_kind, 'a' AS v;
--> default.t: snapshot 2
SELECT * FROM t;
--> id | v
--> 2 | b

-- case: partitions
CREATE TABLE t (id BIGINT, v STRING, dt STRING, hr INT, PRIMARY KEY (id, dt, hr) NOT ENFORCED) PARTITIONED BY (dt, hr);
--> table default.t created
INSERT INTO t PARTITION (dt = 'a', hr = 1) VALUES (1, 'x'), (2, 'y');
--> default.t: snapshot 1
INSERT INTO t PARTITION (dt = 'a', hr) VALUES (3, 'z', 2);
--> default.t: snapshot 2
INSERT INTO t PARTITION (dt = 'b') (hr, id) VALUES (1, 4);
--> default.t: snapshot 3
SELECT * FROM t;
--> id | v | dt | hr
--> 1 | x | a | 1
--> 2 | y | a | 1
--> 3 | z | a | 2
--> 4 | NULL | b | 1
INSERT OVERWRITE t PARTITION (dt = 'a', hr = 1) SELECT 9, 'new';
--> default.t: snapshot 4
SELECT * FROM t;
--> id | v | dt | hr
--> 3 | z | a | 2
--> 4 | NULL | b | 1
--> 9 | new | a | 1
INSERT OVERWRITE t VALUES (5, 'other', 'b', 1);
--> default.t: snapshot 5
SELECT * FROM t;
--> id | v | dt | hr
--> 3 | z | a | 2
--> 5 | other | b | 1
--> 9 | new | a | 1
SHOW PARTITIONS t;
--> partition
--> dt=a/hr=1
--> dt=a/hr=2
--> dt=b/hr=1
SHOW PARTITIONS t PARTITION (dt = 'a');
--> partition
--> dt=a/hr=1
--> dt=a/hr=2
INSERT OVERWRITE t /*+ OPTIONS('dynamic-partition-overwrite' = 'false', 'change-tracking' = 'false') */ VALUES (6, 'all', 'c', 1);
--> default.t: snapshot 6
SELECT * FROM t;
--> id | v | dt | hr
--> 6 | all | c | 1
DESCRIBE EXTENDED t PARTITION (dt = 'c', hr = 1);
--> field | value
--> name | default.t
--> kind | managed dynamic table
--> comment |
--> columns | id BIGINT NOT NULL, v STRING, dt STRING NOT NULL, hr INT NOT NULL
--> primary key | id, dt, hr
--> partitioned by | dt, hr
--> bucket | 1
--> change-tracking | true
--> log.system | none
--> source offsets |
--> file.path | <warehouse>/default.db/t/dt=c/hr=1
--> file.format | parquet
--> partition | dt=c, hr=1
--> num-files | 1
--> size | <bytes>
--> rows (physical) | 1
--> runs per bucket | 1
--> compacted | true
--> last-modified | <moment>
--> watermark |
--> newest snapshot | 6
--> lease held by |
--> options | bucket=1, dynamic-table.uuid=<uuid>, log.system=none, partition.legacy-name=false, snapshot.num-retained.max=2147483647, snapshot.num-retained.min=2147483647
TRUNCATE TABLE t PARTITION (dt = 'c');
--> default.t: snapshot 7
SELECT * FROM t;
--> id | v | dt | hr

-- case: an overwrite without partitions replaces the table, and may read it
CREATE TABLE t (id BIGINT);
--> table default.t created
INSERT INTO t VALUES (1), (1), (2);
--> default.t: snapshot 1
INSERT OVERWRITE t SELECT DISTINCT id FROM t;
--> default.t: snapshot 2
SELECT * FROM t;
--> id
--> 1
--> 2
TRUNCATE TABLE t;
--> default.t: snapshot 3
SELECT * FROM t;
--> id

-- case: CREATE TABLE AS SELECT
CREATE TABLE a (id BIGINT, v STRING);
--> table default.a created
INSERT INTO a VALUES (1, 'x');
--> default.a: snapshot 1
CREATE TABLE b (PRIMARY KEY (id) NOT ENFORCED) PARTITIONED BY (v) WITH ('bucket' = '2') AS SELECT id, v FROM a;
--> InvalidInputError: partition column 'v' is not in the primary key (id), so a row could move between partitions unseen; add it to the primary key, or declare bucket=-1: dynamic buckets follow a row to another partition
CREATE TABLE b (PRIMARY KEY (id, v) NOT ENFORCED) PARTITIONED BY (v) WITH ('bucket' = '2') AS SELECT id, v FROM a;
--> default.b: snapshot 1
SELECT * FROM b;
--> id | v
--> 1 | x
DESCRIBE b;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | NULL
--> v | STRING | false | primary key, partition | NULL
CREATE TABLE IF NOT EXISTS b AS SELECT 1 AS x;
--> table default.b already exists; nothing was written into it
CREATE TABLE c (x INT) AS SELECT 1 AS x;
--> InvalidInputError: table c: AS takes the query's columns; leave the columns and LIKE out. A key may be given: CREATE TABLE c (PRIMARY KEY (...) NOT ENFORCED) AS SELECT ...
CREATE TABLE d AS SELECT CAST(raise_error('no row') AS INT) AS x;
--> InvalidInputError: no row
SHOW TABLES;
--> database | table | temporary
--> default | a | false
--> default | b | false

-- case: rows that do not fit
CREATE TABLE t (id BIGINT, v STRING, n TINYINT, twice AS (n * 2), dt STRING, PRIMARY KEY (id, dt) NOT ENFORCED) PARTITIONED BY (dt);
--> table default.t created
INSERT INTO t VALUES (1, 'a');
--> InvalidInputError: table default.t: the query gives 2 columns (col1, col2), but 4 are to be written (id, v, n, dt); write a value for each, or name the columns: INSERT INTO default.t (a, b) ...
INSERT INTO t VALUES (1, 'a', 'many', 'x');
--> InvalidInputError: table default.t: column 'n' is TINYINT, and the query gives STRING (col3); write CAST(... AS TINYINT)
INSERT INTO t VALUES (1, 'a', 300, 'x');
--> InvalidInputError: table default.t: column 'n' is TINYINT, which does not hold 300; correct the value, or ALTER TABLE ... MODIFY the column
INSERT INTO t (v, n, dt) VALUES ('a', 1, 'x');
--> InvalidInputError: table default.t: the input lacks column 'id', which is BIGINT NOT NULL; add it with a value in every row
INSERT INTO t VALUES (NULL, 'a', 1, 'x');
--> InvalidInputError: table default.t: column 'id' is part of the primary key, but 1 of 1 rows have no value in it (the first is row 0). Fill or drop these rows
INSERT INTO t (id, w) VALUES (1, 'a');
--> InvalidInputError: table default.t has no column 'w'; there are id, v, n, dt
INSERT INTO t (id, twice) VALUES (1, 2);
--> InvalidInputError: table default.t: column 'twice' is computed from others and can't be written
INSERT INTO t (id, id) VALUES (1, 2);
--> InvalidInputError: table default.t: column 'id' is given twice
INSERT INTO t PARTITION (dtt = 'x') VALUES (1, 'a', 1);
--> InvalidInputError: table default.t has no partition column 'dtt'; did you mean 'dt'?
INSERT INTO t PARTITION (v = 'x') VALUES (1, 1, 'x');
--> InvalidInputError: table default.t has no partition column 'v'; there are dt
INSERT INTO t PARTITION (dt = 'x') (id, dt) VALUES (1, 'y');
--> InvalidInputError: table default.t: column 'dt' is given twice
INSERT INTO t /*+ OPTIONS('change-trakcing' = 'false') */ VALUES (1, 'a', 1, 'x');
--> InvalidInputError: this write of table default.t has no hint 'change-trakcing'; did you mean 'change-tracking'?
INSERT INTO t /*+ OPTIONS('change-tracking' = 'perhaps') */ VALUES (1, 'a', 1, 'x');
--> InvalidInputError: table default.t: hint change-tracking = 'perhaps'; it has to be true or false
INSERT INTO t /*+ OPTIONS('checkpoint-location' = '/c') */ VALUES (1, 'a', 1, 'x');
--> InvalidInputError: this write of table default.t has no hint 'checkpoint-location'; there are change-tracking, commit-user, commit-identifier, dynamic-partition-overwrite
INSERT INTO nowhere VALUES (1);
--> NotFoundError: table default.nowhere does not exist; there are t
INSERT INTO t$snapshots VALUES (1);
--> InvalidInputError: default.t$snapshots is a system table, which can only be read: use system_table('default.t$snapshots')
SELECT * FROM t;
--> id | v | n | dt | twice

-- case: a hint wins over the table, the table over the session
CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
CREATE TABLE told (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('change-tracking' = 'true');
--> table default.told created
INSERT OVERWRITE t VALUES (1);
--> default.t: snapshot 1
SET 'table-storage.change-tracking' = 'false';
--> table-storage.change-tracking is set
INSERT OVERWRITE t VALUES (2);
--> default.t: snapshot 2
INSERT OVERWRITE t /*+ OPTIONS('change-tracking' = 'true') */ VALUES (3);
--> default.t: snapshot 3
INSERT OVERWRITE told VALUES (2);
--> default.told: snapshot 1
SELECT snapshot_id, commit_kind FROM t$snapshots ORDER BY snapshot_id;
--> snapshot_id | commit_kind
--> 1 | APPEND
--> 2 | OVERWRITE
--> 3 | APPEND
SELECT commit_kind FROM told$snapshots;
--> commit_kind
--> APPEND

-- case: columns of CREATE TABLE AS
CREATE TABLE t AS SELECT array(1) AS a, named_struct('x', 1) AS s;
--> default.t: snapshot 1
SHOW CREATE TABLE t;
--> statement
--> CREATE TABLE `default`.`t` (
-->   `a` ARRAY<INT>,
-->   `s` ROW<x INT>
--> )
--> WITH (
-->   'bucket' = '1',
-->   'log.system' = 'none',
-->   'merge-engine' = 'value-count',
-->   'partition.legacy-name' = 'false',
-->   'snapshot.num-retained.max' = '2147483647',
-->   'snapshot.num-retained.min' = '2147483647'
--> )
INSERT INTO t VALUES (array(NULL), named_struct('x', NULL));
--> default.t: snapshot 2
CREATE TABLE u AS SELECT 1 AS id, NULL AS nothing;
--> InvalidInputError: table u: column 'nothing' is NULL in every row, which tells no type; write CAST(NULL AS STRING) AS nothing, for example

-- case: nested values that do not fit
CREATE TABLE t (r ROW<x INT, y INT>, m MAP<INT, INT>);
--> table default.t created
INSERT INTO t VALUES (named_struct('x', 1), NULL);
--> InvalidInputError: table default.t: column 'r' is ROW<x INT, y INT>, and the query gives STRUCT<x: INT> (col1); write CAST(... AS ROW<x INT, y INT>)
INSERT INTO t VALUES (NULL, map('one', 1));
--> InvalidInputError: table default.t: column 'm' is MAP<INT, INT>, and the query gives MAP<STRING, INT> (col2); write CAST(... AS MAP<INT, INT>)
INSERT INTO t VALUES (NULL, map(1, 'one'));
--> InvalidInputError: table default.t: column 'm' is MAP<INT, INT>, and the query gives MAP<INT, STRING> (col2); write CAST(... AS MAP<INT, INT>)
INSERT INTO t VALUES (named_struct('a', 1, 'b', 2L), map(1S, 1L));
--> default.t: snapshot 1
SELECT * FROM t;
--> r | m
--> {'x': 1, 'y': 2} | [(1, 1)]

-- case: a partition is emptied
CREATE TABLE t (id BIGINT, dt STRING) PARTITIONED BY (dt);
--> table default.t created
INSERT INTO t VALUES (1, 'a'), (2, 'b');
--> default.t: snapshot 1
TRUNCATE TABLE t PARTITION (dt = 'a');
--> default.t: snapshot 2
SELECT * FROM t;
--> id | dt
--> 2 | b
TRUNCATE TABLE t;
--> default.t: snapshot 3
SELECT * FROM t;
--> id | dt
