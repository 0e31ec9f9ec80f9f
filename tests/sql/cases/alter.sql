ALTER TABLE and maintenance (requirements B14, B26 to B28).

-- case: columns
CREATE TABLE t (id BIGINT, v STRING, n INT NOT NULL, a ROW<x INT>, up AS (upper(v)), PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
INSERT INTO t SELECT 1, 'a', 2, named_struct('x', 3);
--> default.t: snapshot 1
ALTER TABLE t ADD w DOUBLE COMMENT 'new' AFTER id;
--> table default.t altered
ALTER TABLE t ADD COLUMNS (p STRING DEFAULT NULL FIRST, a.y STRING);
--> table default.t altered
ALTER TABLE t RENAME COLUMN n TO number;
--> table default.t altered
ALTER TABLE t MODIFY number BIGINT COMMENT 'wide' AFTER id;
--> table default.t altered
ALTER TABLE t ALTER COLUMN w COMMENT 'renewed';
--> table default.t altered
ALTER TABLE t ALTER COLUMN number DROP NOT NULL;
--> table default.t altered
ALTER TABLE t CHANGE COLUMN w TYPE DOUBLE;
--> table default.t altered
ALTER TABLE t ALTER w FIRST;
--> table default.t altered
ALTER TABLE t DROP COLUMN p;
--> table default.t altered
DESCRIBE t;
--> name | type | nullable | key | comment
--> w | DOUBLE | true |  | renewed
--> id | BIGINT | false | primary key | NULL
--> number | BIGINT | true |  | wide
--> v | STRING | true |  | NULL
--> a | ROW<x INT, y STRING> | true |  | NULL
--> up | AS (upper(v)) | true | computed | NULL
SELECT * FROM t;
--> w | id | number | v | a | up
--> NULL | 1 | 2 | a | {'x': 3, 'y': None} | A
ALTER TABLE t DROP COLUMN id;
--> InvalidInputError: table default.t: column 'id' is part of the primary key, so it can't be dropped: every row's place depends on it; create a new table
ALTER TABLE t DROP (vv);
--> InvalidInputError: table default.t has no column 'vv'; did you mean 'v'?
ALTER TABLE t DROP up;
--> InvalidInputError: table default.t: column 'up' is computed; take it away by RESET ('column.up.expression'), or change it by SET ('column.up.expression' = '...')
ALTER TABLE t ADD x INT NOT NULL;
--> InvalidInputError: table default.t: new column 'x' is INT NOT NULL, but existing rows have no value for it; make it nullable
ALTER TABLE t ADD x INT DEFAULT 5;
--> SqlSyntaxError: line 1, column 25: DEFAULT accepts only NULL; declare another value for rows written from now on by the option 'fields.<column>.default-value', in WITH or by ALTER TABLE ... SET; existing rows read null
-->   ALTER TABLE t ADD x INT DEFAULT 5
-->                           ^
ALTER TABLE t ADD x INT NOT NULL DEFAULT NULL;
--> SqlSyntaxError: line 1, column 34: a column that is NOT NULL can't have DEFAULT NULL; leave one of them out
-->   ALTER TABLE t ADD x INT NOT NULL DEFAULT NULL
-->                                    ^
ALTER TABLE t MODIFY number BIGINT DEFAULT NULL;
--> SqlSyntaxError: line 1, column 36: MODIFY leaves the default as it is; change it by SET or RESET ('fields.<column>.default-value')
-->   ALTER TABLE t MODIFY number BIGINT DEFAULT NULL
-->                                      ^
ALTER TABLE t ADD v STRING;
--> InvalidInputError: table default.t: column 'v' is there already; choose another name
ALTER TABLE t MODIFY number INT;
--> InvalidInputError: table default.t: column 'number' is BIGINT, of which INT does not hold every value; only a wider type of the same kind will do. Add a column of the new type, and fill it
ALTER TABLE t ALTER COLUMN v SET NOT NULL;
--> InvalidInputError: table default.t: column 'v' may hold nulls already, so it can't be made NOT NULL; add a column, fill it, and drop this one
ALTER TABLE t ADD x INTT;
--> InvalidInputError: table default.t: column type 'INTT' is not supported; columns may be BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), DATE, TIME(p), CHAR(n), VARCHAR(n), STRING, BINARY(n), VARBINARY(n), BYTES, TIMESTAMP(p), TIMESTAMP(p) WITH LOCAL TIME ZONE, VARIANT, or ARRAY<>, MAP<>, MULTISET<> and ROW<> of these. Cast the column, or keep it as a STRING (JSON, for instance)
ALTER TABLE t RENAME v TO number;
--> InvalidInputError: table default.t: column 'v' can't be renamed: 'number' is there already; choose another name
ALTER TABLE nowhere ADD x INT;
--> NotFoundError: table default.nowhere does not exist; there are t
ALTER TABLE IF EXISTS nowhere ADD x INT;
--> table nowhere does not exist
ALTER TABLE t FROBNICATE;
--> SqlSyntaxError: line 1, column 15: expected ADD, ALTER, CHANGE, COMPACT, DROP, MODIFY, PARTITION, RENAME, RESET, SET or UNSET, found 'FROBNICATE'
-->   ALTER TABLE t FROBNICATE
-->                 ^

-- case: other buckets
CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2');
--> table default.t created
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
--> default.t: snapshot 1
ALTER TABLE t SET ('bucket' = '4');
--> table default.t rewritten
SELECT * FROM t ORDER BY id;
--> id | v
--> 1 | a
--> 2 | b
--> 3 | c
UPDATE t SET v = 'd' WHERE id = 3;
--> default.t: snapshot 3
SELECT * FROM t VERSION AS OF 1 ORDER BY id;
--> id | v
--> 1 | a
--> 2 | b
--> 3 | c
SELECT DISTINCT bucket >= 0 AS there, count(*) AS files FROM t$files GROUP BY 1;
--> there | files
--> True | 4
ALTER TABLE t RESET ('bucket');
--> table default.t rewritten
SELECT * FROM t ORDER BY id;
--> id | v
--> 1 | a
--> 2 | b
--> 3 | d
SHOW CREATE TABLE t;
--> statement
--> CREATE TABLE `default`.`t` (
-->   `id` BIGINT NOT NULL,
-->   `v` STRING,
-->   PRIMARY KEY (`id`) NOT ENFORCED
--> )
--> WITH (
-->   'bucket' = '1',
-->   'log.system' = 'none',
-->   'partition.legacy-name' = 'false',
-->   'snapshot.num-retained.max' = '2147483647',
-->   'snapshot.num-retained.min' = '2147483647'
--> )

-- case: a primary key later
CREATE TABLE visits (id BIGINT, dt STRING, n INT) PARTITIONED BY (dt);
--> table default.visits created
INSERT INTO visits VALUES (1, 'a', 1), (1, 'a', 2), (2, 'b', 3), (2, 'b', 3);
--> default.visits: snapshot 1
ALTER TABLE visits ADD PRIMARY KEY (id, dt) NOT ENFORCED;
--> InvalidInputError: table default.visits: (id, dt) can't be the primary key, for 2 rows have the key of another one: id=1, dt='a' in 2 rows. Nothing has changed; delete the rows that are too many, or add a column to the key
DELETE FROM visits WHERE n = 1;
--> default.visits: snapshot 2
INSERT OVERWRITE visits PARTITION (dt = 'b') VALUES (2, 3);
--> default.visits: snapshot 3
ALTER TABLE visits ADD PRIMARY KEY (idd, dt) NOT ENFORCED;
--> InvalidInputError: table default.visits has no column 'idd'; did you mean 'id'?
ALTER TABLE visits ADD PRIMARY KEY (id) NOT ENFORCED;
--> InvalidInputError: table default.visits: partition column 'dt' is not in the primary key (id), so a row could move between partitions unseen; add it to the primary key, or declare bucket=-1: dynamic buckets follow a row to another partition
ALTER TABLE visits ADD CONSTRAINT pk PRIMARY KEY (id, dt) NOT ENFORCED;
--> table default.visits rewritten
MERGE INTO visits USING (SELECT 1 AS id, 'a' AS dt) AS s ON visits.id = s.id WHEN MATCHED THEN UPDATE SET n = 9;
--> default.visits: snapshot 5
SELECT * FROM visits ORDER BY id;
--> id | dt | n
--> 1 | a | 9
--> 2 | b | 3
ALTER TABLE visits ADD PRIMARY KEY (id) NOT ENFORCED;
--> InvalidInputError: table default.visits: the table has the primary key (id, dt) already, by which its rows were merged, so it can't have another; CREATE TABLE another one, and INSERT the rows of this one into it
CREATE TABLE only (id BIGINT) WITH ('write-mode' = 'append-only');
--> table default.only created
INSERT INTO only VALUES (1);
--> default.only: snapshot 1
ALTER TABLE only ADD PRIMARY KEY (id) NOT ENFORCED;
--> table default.only rewritten
DELETE FROM only;
--> default.only: snapshot 3

-- case: another name
CREATE TABLE a.t (id BIGINT);
--> table a.t created
INSERT INTO a.t VALUES (1);
--> a.t: snapshot 1
ALTER TABLE a.t RENAME TO u;
--> table a.t renamed to a.u
SELECT * FROM a.u;
--> id
--> 1
CREATE TABLE a.v (id BIGINT);
--> table a.v created
ALTER TABLE a.u RENAME TO a.v;
--> AlreadyExistsError: table a.u can't be renamed: table a.v already exists
ALTER TABLE a.u RENAME TO b.u;
--> table a.u renamed to b.u
SELECT * FROM b.u;
--> id
--> 1
SHOW TABLES IN a;
--> database | table | temporary
--> a | v | false

-- case: compaction and partitions
CREATE TABLE t (id BIGINT, dt STRING, PRIMARY KEY (id, dt) NOT ENFORCED) PARTITIONED BY (dt) WITH ('write-only' = 'true');
--> table default.t created
INSERT INTO t VALUES (1, 'a'), (1, 'b');
--> default.t: snapshot 1
INSERT INTO t VALUES (2, 'a'), (2, 'b');
--> default.t: snapshot 2
ALTER TABLE t PARTITION (dt = 'a') COMPACT;
--> default.t: snapshot 3
DESCRIBE FORMATTED t PARTITION (dt = 'a');
--> field | value
--> name | default.t
--> kind | managed dynamic table
--> comment |
--> columns | id BIGINT NOT NULL, dt STRING NOT NULL
--> primary key | id, dt
--> partitioned by | dt
--> bucket | 1
--> change-tracking | true
--> log.system | none
--> source offsets |
--> file.path | <warehouse>/default.db/t/dt=a
--> file.format | parquet
--> partition | dt=a
--> num-files | 1
--> size | <bytes>
--> rows (physical) | 2
--> runs per bucket | 1
--> compacted | true
--> last-modified | <moment>
--> watermark |
--> newest snapshot | 3
--> lease held by |
--> options | bucket=1, dynamic-table.uuid=<uuid>, log.system=none, partition.legacy-name=false, snapshot.num-retained.max=2147483647, snapshot.num-retained.min=2147483647, write-only=true
SELECT partition, level FROM t$files ORDER BY partition, level;
--> partition | level
--> dt=a | 5
--> dt=b | 0
--> dt=b | 0
ALTER TABLE t COMPACT;
--> default.t: snapshot 4
ALTER TABLE t COMPACT;
--> default.t: nothing to write
ALTER TABLE t DROP PARTITION (dt = 'a');
--> default.t: snapshot 5
ALTER TABLE t DROP IF EXISTS PARTITION (dt = 'a');
--> default.t: the partition does not exist
SHOW PARTITIONS t;
--> partition
--> dt=b
SELECT * FROM t;
--> id | dt
--> 1 | b
--> 2 | b

-- case: procedures
CREATE TABLE t (id BIGINT, dt STRING, PRIMARY KEY (id, dt) NOT ENFORCED) PARTITIONED BY (dt);
--> table default.t created
INSERT INTO t VALUES (1, 'a');
--> default.t: snapshot 1
INSERT INTO t VALUES (2, 'b');
--> default.t: snapshot 2
CALL sys.create_tag(table => 't', tag => 'one', snapshot => 1);
--> default.t: tag one created
CALL compact(table => 'default.t', partitions => 'dt=a;dt=b', full => true);
--> default.t: snapshot 4
CALL dynamic_tables.sys.rollback_to('t', tag => 'one');
--> default.t: snapshot 5
SELECT * FROM t;
--> id | dt
--> 1 | a
CALL sys.expire_snapshots(table => 't', retain_last => 1);
--> what | count
--> snapshots | 4
--> data_files | 1
--> manifests | 9
SELECT snapshot_id FROM t$snapshots;
--> snapshot_id
--> 5
CALL sys.delete_tag('t', 'one');
--> default.t: tag one deleted
CALL sys.remove_orphan_files(table => 't', dry_run => true);
--> file
ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS;
--> default.t: snapshot 6
CALL sys.create_tag('t', 'x', time_retained => 'soon');
--> InvalidInputError: table default.t: time_retained='soon'; it has to be a duration such as '30 s', '10 min' or '7 d'
CALL sys.create_tag('t', 'week', time_retained => '7 d');
--> default.t: tag week created
CALL sys.create_tag('t', 'moment', time_retained => '1 ms');
--> default.t: tag moment created
SELECT tag_name FROM t$tags ORDER BY tag_name;
--> tag_name
--> moment
--> week
CALL sys.expire_tags('t');
--> tag
--> moment
SELECT tag_name FROM t$tags;
--> tag_name
--> week
CALL sys.rollback_to('nowhere', 1);
--> NotFoundError: table default.nowhere does not exist; there are t

-- case: a key of another name
CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
INSERT INTO t VALUES (1, 'a'), (2, 'b');
--> default.t: snapshot 1
ALTER TABLE t RENAME COLUMN id TO number;
--> table default.t altered
SELECT * FROM t;
--> number | v
--> 1 | a
--> 2 | b
UPDATE t SET v = 'c' WHERE number = 1;
--> default.t: snapshot 2
DELETE FROM t WHERE number = 2;
--> default.t: snapshot 3
SELECT * FROM t;
--> number | v
--> 1 | c
SELECT number, v, _row_kind FROM t /*+ OPTIONS('incremental-between' = '0,3') */;
--> number | v | _row_kind
--> 1 | c | +U
--> 2 | b | -D
SELECT * FROM t VERSION AS OF 1;
--> number | v
--> 1 | a
--> 2 | b
ALTER TABLE t ADD COLUMN n INT;
--> table default.t altered
UPDATE t SET n = 5;
--> default.t: snapshot 4
SELECT * FROM t;
--> number | v | n
--> 1 | c | 5
