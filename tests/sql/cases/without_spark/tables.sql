Making, looking at and dropping tables; done or refused before Spark plans.

-- case: a table without options
CREATE TABLE t (id BIGINT, name STRING);
--> table default.t created
SHOW TABLES;
--> database | table | temporary
--> default | t | false
DESCRIBE t;
--> name | type | nullable | key | comment
--> id | BIGINT | true |  | NULL
--> name | STRING | true |  | NULL
SHOW OPTIONS FROM t;
--> option | value
--> bucket | 1
--> dynamic-table.uuid | <uuid>
--> log.system | none
--> merge-engine | value-count
--> partition.legacy-name | false
--> snapshot.num-retained.max | 2147483647
--> snapshot.num-retained.min | 2147483647

-- case: a primary key on a column
CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED, v STRING);
--> table default.t created
DESCRIBE t;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | NULL
--> v | STRING | true |  | NULL

-- case: types of all kinds
CREATE TABLE t (a ARRAY<INT NOT NULL>, m MAP<STRING, ROW<x INT, y: STRING>>, d DOUBLE PRECISION, z TIMESTAMP(3) WITH LOCAL TIME ZONE, v VARCHAR(20)) WITH ('write-mode' = 'append-only');
--> table default.t created
DESCRIBE t;
--> name | type | nullable | key | comment
--> a | ARRAY<INT NOT NULL> | true |  | NULL
--> m | MAP<STRING, ROW<x INT, y STRING>> | true |  | NULL
--> d | DOUBLE | true |  | NULL
--> z | TIMESTAMP(3) WITH LOCAL TIME ZONE | true |  | NULL
--> v | VARCHAR(20) | true |  | NULL

-- case: what no table can be
CREATE TABLE t ();
--> SqlSyntaxError: line 1, column 17: expected CONSTRAINT, PRIMARY, WATERMARK or a name, found ')'
-->   CREATE TABLE t ()
-->                   ^
CREATE TABLE t (id BIGINTT);
--> InvalidInputError: table t: column 'id': column type 'BIGINTT' is not supported; columns may be BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), DATE, TIME(p), CHAR(n), VARCHAR(n), STRING, BINARY(n), VARBINARY(n), BYTES, TIMESTAMP(p), TIMESTAMP(p) WITH LOCAL TIME ZONE, VARIANT, or ARRAY<>, MAP<>, MULTISET<> and ROW<> of these. Cast the column, or keep it as a STRING (JSON, for instance)
CREATE TABLE t (id BIGINT, ID STRING);
--> InvalidInputError: table t: column 'id' is declared twice; names differ by more than case
CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED, v INT, PRIMARY KEY (v) NOT ENFORCED);
--> SqlSyntaxError: line 1, column 60: a table has one primary key; write PRIMARY KEY (a, b) NOT ENFORCED for a key of several columns
-->   CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED, v INT, PRIMARY KEY (v) NOT ENFORCED)
-->                                                              ^
CREATE TABLE t (id BIGINT, PRIMARY KEY (idd) NOT ENFORCED);
--> InvalidInputError: table t: PRIMARY KEY (idd): unknown column 'idd'; did you mean 'id'?
CREATE TABLE t (id BIGINT, PRIMARY KEY (id));
--> SqlSyntaxError: line 1, column 44: expected NOT ENFORCED, found ')'
-->   CREATE TABLE t (id BIGINT, PRIMARY KEY (id))
-->                                              ^
CREATE TABLE t (id BIGINT, PRIMARY KEY (id) ENFORCED);
--> SqlSyntaxError: line 1, column 45: expected NOT ENFORCED, found 'ENFORCED'
-->   CREATE TABLE t (id BIGINT, PRIMARY KEY (id) ENFORCED)
-->                                               ^
CREATE TABLE t (id BIGINT, dt STRING, PRIMARY KEY (id) NOT ENFORCED) PARTITIONED BY (dt);
--> InvalidInputError: partition column 'dt' is not in the primary key (id), so a row could move between partitions unseen; add it to the primary key, or declare bucket=-1: dynamic buckets follow a row to another partition
CREATE TABLE t (id BIGINT) PARTITIONED BY (dt);
--> InvalidInputError: table t: PARTITIONED BY (dt): unknown column 'dt'; there are id
CREATE TABLE t (id BIGINT) WITH ('buckt' = '3');
--> InvalidInputError: table default.t: unknown option 'buckt'; did you mean 'bucket'?
CREATE TABLE t (id BIGINT) WITH ('bucket' = 'many');
--> InvalidInputError: option bucket is 'many'; it has to be a whole number
CREATE TABLE t (id BIGINT) WITH ('bucket' = '1', 'bucket' = '2');
--> SqlSyntaxError: line 1, column 50: option 'bucket' is given twice
-->   CREATE TABLE t (id BIGINT) WITH ('bucket' = '1', 'bucket' = '2')
-->                                                    ^
CREATE TABLE t (id BIGINT) WITH ('log.consistency' = 'eventual');
--> InvalidInputError: table default.t: option log.consistency=eventual writes the log's records into files, but the table has no log; open the catalog with log.kafka.bootstrap.servers, or leave it out
CREATE TABLE t (id BIGINT) WITH ('log.kafka.sasl.password' = 'hush');
--> InvalidInputError: table default.t: option log.kafka.sasl.password is a secret, or holds one; give it to the catalog (the connection), not to the table
CREATE TABLE t (id BIGINT, WATERMARK FOR ts AS ts);
--> InvalidInputError: table t: WATERMARK FOR ts: unknown column; there are id
CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts * 2);
--> InvalidInputError: WATERMARK FOR ts AS ts * 2: a watermark follows its column at a distance; write ts - INTERVAL '5' SECOND (or another unit), or ts alone
CREATE TABLE other.shop.t (id BIGINT);
--> NotFoundError: unknown catalog 'other'; this session's catalog is 'dynamic_tables'
CREATE TABLE a.b.c.d (id BIGINT);
--> SqlSyntaxError: line 1, column 14: a table's name has at most three parts: catalog.database.table
-->   CREATE TABLE a.b.c.d (id BIGINT)
-->                ^
CREATE TABLE t (id BIGINT) COMMENT 'a' COMMENT 'b';
--> SqlSyntaxError: line 1, column 40: this clause is given twice
-->   CREATE TABLE t (id BIGINT) COMMENT 'a' COMMENT 'b'
-->                                          ^
CREATE TABLE t;
--> InvalidInputError: table t has no columns; write CREATE TABLE t (id BIGINT, ...)
SHOW TABLES;
--> database | table | temporary

-- case: a table that is there already
CREATE TABLE t (id BIGINT);
--> table default.t created
CREATE TABLE t (id BIGINT);
--> AlreadyExistsError: table default.t already exists; drop it first, or write CREATE TABLE IF NOT EXISTS
CREATE TABLE IF NOT EXISTS t (id BIGINT);
--> table default.t already exists
CREATE TABLE IF NOT EXISTS t (id STRING);
--> table default.t already exists; WARNING: it differs from the declaration and was not changed: column id: BIGINT in the table, declared as STRING
CREATE TABLE IF NOT EXISTS t (other STRING) WITH ('bucket' = '2');
--> table default.t already exists; WARNING: it differs from the declaration and was not changed: column other: not in the table, declared as STRING; column id: BIGINT in the table, not declared; option bucket: 1 in the table, declared as 2

-- case: options of the session are frozen when a table is created
SET table-storage.bucket = 3;
--> table-storage.bucket is set
SET 'table-storage.file.format' = 'avro';
--> table-storage.file.format is set
CREATE TABLE a (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2');
--> table default.a created
SHOW OPTIONS FROM a LIKE 'bucket|file*';
--> option | value
--> bucket | 2
--> file.format | avro
SET;
--> key | value
--> execution.checkpointing.dir |
--> execution.checkpointing.interval | 0 ms
--> execution.real-time | false
--> execution.runtime-mode | batch
--> pipeline.name |
--> table-storage.bucket | 3
--> table-storage.file.format | avro
--> table.dml-sync | false
RESET 'table-storage.bucket';
--> table-storage.bucket is reset
RESET;
--> the settings are reset
CREATE TABLE b (id BIGINT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.b created
SHOW OPTIONS FROM b LIKE 'bucket|file*';
--> option | value
--> bucket | 1
SHOW OPTIONS FROM a LIKE 'bucket|file*';
--> option | value
--> bucket | 2
--> file.format | avro

-- case: unknown settings, without Spark
SET 'execution.runtime-mod' = 'batch';
--> InvalidInputError: unknown setting 'execution.runtime-mod'; did you mean 'execution.runtime-mode'?
SET 'execution.runtime-mode' = 'fast';
--> InvalidInputError: setting execution.runtime-mode = 'fast'; there are batch, streaming
SET 'table-storage.buckt' = '2';
--> InvalidInputError: unknown option 'table-storage.buckt'; did you mean 'table-storage.bucket'?
SET 'table-storage.log.kafka.sasl.password' = 'hush';
--> InvalidInputError: setting table-storage.log.kafka.sasl.password is a secret, or holds one; set it on the catalog (the connection), because the session would show it
SET 'table-storage.bucket' = 'many';
--> InvalidInputError: option bucket is 'many'; it has to be a whole number
SET 'nonsense' = '1';
--> InvalidInputError: unknown setting 'nonsense'; there are execution.runtime-mode, execution.checkpointing.dir, execution.checkpointing.interval, execution.real-time, pipeline.name, table.dml-sync, table-storage.<option of a table> and spark.<Spark's>
RESET 'nonsense';
--> InvalidInputError: unknown setting 'nonsense'; there are execution.runtime-mode, execution.checkpointing.dir, execution.checkpointing.interval, execution.real-time, pipeline.name, table.dml-sync, table-storage.<option of a table> and spark.<Spark's>

-- case: databases
CREATE DATABASE lake COMMENT 'deep';
--> database lake created
CREATE DATABASE lake;
--> AlreadyExistsError: database lake already exists; create it with if_not_exists=True
CREATE DATABASE IF NOT EXISTS lake;
--> database lake created
SHOW DATABASES;
--> database
--> lake
DESCRIBE DATABASE lake;
--> field | value
--> name | lake
--> comment | deep
--> tables | 0
--> views | 0
USE laek;
--> NotFoundError: database laek does not exist; did you mean 'lake'?
USE lake;
--> database lake
CREATE TABLE t (id BIGINT);
--> table lake.t created
SHOW TABLES IN lake LIKE 't*';
--> database | table | temporary
--> lake | t | false
DROP DATABASE lake;
--> InvalidInputError: database lake still contains tables: lake.t; drop them first, or drop it with cascade=True
DROP DATABASE lake CASCADE;
--> database lake dropped
DROP DATABASE lake;
--> NotFoundError: database lake does not exist; existing databases: none
DROP DATABASE IF EXISTS lake;
--> database lake does not exist

-- case: temporary tables hide others and need no name of a database
CREATE TABLE t (id BIGINT);
--> table default.t created
CREATE TEMPORARY TABLE t (a INT);
--> table t created
DESCRIBE t;
--> name | type | nullable | key | comment
--> a | INT | true |  | NULL
DROP TEMPORARY TABLE t;
--> temporary table t dropped
DESCRIBE t;
--> name | type | nullable | key | comment
--> id | BIGINT | true |  | NULL
DROP TEMPORARY TABLE t;
--> InvalidInputError: temporary table t does not exist; there are none
CREATE TEMPORARY TABLE shop.t (a INT);
--> InvalidInputError: temporary table shop.t: temporary tables have no database; name it t

-- case: a table's comment
CREATE TABLE t (id BIGINT);
--> table default.t created
COMMENT ON TABLE t IS 'it''s mine';
--> table default.t altered
SHOW OPTIONS LIKE 'bucket';
--> option | default | meaning
--> bucket | 1 | Number of buckets of every partition and of Kafka partitions of the log. -1: dynamic buckets for a table with a primary key; for an append-only table rows have no bucket (its default).
SHOW CREATE TABLE t;
--> statement
--> CREATE TABLE `default`.`t` (
-->   `id` BIGINT
--> )
--> COMMENT 'it''s mine'
--> WITH (
-->   'bucket' = '1',
-->   'log.system' = 'none',
-->   'merge-engine' = 'value-count',
-->   'partition.legacy-name' = 'false',
-->   'snapshot.num-retained.max' = '2147483647',
-->   'snapshot.num-retained.min' = '2147483647'
--> )

-- case: options said twice, and too large
CREATE TABLE t (id BIGINT) WITH ('bucket' = '2', 'table-storage.bucket' = '3');
--> InvalidInputError: table t: option bucket is given twice, also as table-storage.bucket; leave one out
CREATE TABLE t (id BIGINT) WITH ('bucket' = '2147483648');
--> InvalidInputError: option bucket is '2147483648'; it has to be at most 2147483647, the largest number that the format has for a bucket
CREATE TABLE t (id BIGINT) LOCATION '/elsewhere';
--> InvalidInputError: table default.t: option path=/elsewhere would do nothing here: a table lies below its warehouse, by its name; open a catalog on the directory that you want

-- case: columns from the metadata of records, without Spark
CREATE TABLE t (id BIGINT, metadata STRING, ordinal BIGINT METADATA FROM 'value.source.lsn' COMMENT 'the order of the source', `offset` BIGINT METADATA, PRIMARY KEY (id) NOT ENFORCED) WITH ('sequence.field' = 'ordinal');
--> table default.t created
SHOW CREATE TABLE t;
--> statement
--> CREATE TABLE `default`.`t` (
-->   `id` BIGINT NOT NULL,
-->   `metadata` STRING,
-->   `ordinal` BIGINT METADATA FROM 'value.source.lsn' COMMENT 'the order of the source',
-->   `offset` BIGINT METADATA FROM 'offset',
-->   PRIMARY KEY (`id`) NOT ENFORCED
--> )
--> WITH (
-->   'bucket' = '1',
-->   'log.system' = 'none',
-->   'partition.legacy-name' = 'false',
-->   'sequence.field' = 'ordinal',
-->   'snapshot.num-retained.max' = '2147483647',
-->   'snapshot.num-retained.min' = '2147483647'
--> )
DESCRIBE t;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | NULL
--> metadata | STRING | true |  | NULL
--> ordinal | BIGINT | true | metadata value.source.lsn | the order of the source
--> offset | BIGINT | true | metadata offset | NULL
CREATE TABLE u LIKE t (EXCLUDING METADATA);
--> table default.u created
DESCRIBE u;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | NULL
--> metadata | STRING | true |  | NULL
--> ordinal | BIGINT | true |  | the order of the source
--> offset | BIGINT | true |  | NULL
ALTER TABLE t RENAME COLUMN `offset` TO place;
--> table default.t altered
ALTER TABLE t ADD COLUMN op CHAR(1) METADATA FROM 'value.op';
--> table default.t altered
ALTER TABLE t MODIFY metadata STRING METADATA FROM 'topic';
--> table default.t altered
DESCRIBE t;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | NULL
--> metadata | STRING | true | metadata topic | NULL
--> ordinal | BIGINT | true | metadata value.source.lsn | the order of the source
--> place | BIGINT | true | metadata offset | NULL
--> op | CHAR(1) | true | metadata value.op | NULL
ALTER TABLE t DROP COLUMN place;
--> table default.t altered
ALTER TABLE t RESET ('column.metadata.metadata');
--> table default.t altered
DESCRIBE t;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | NULL
--> metadata | STRING | true |  | NULL
--> ordinal | BIGINT | true | metadata value.source.lsn | the order of the source
--> op | CHAR(1) | true | metadata value.op | NULL
CREATE TABLE v (id BIGINT, ordinal BIGINT METADATA);
--> InvalidInputError: column.ordinal.metadata: records have no metadata 'ordinal'. Use one of topic, partition, offset, timestamp, value.op, value.ts_ms, value.ts_us, value.ts_ns, value.source.lsn, value.source.ts_ms, value.source.ts_us, value.source.ts_ns, value.source.txId, value.source.pos, value.source.row, value.source.event_serial_no, value.source.file, value.source.gtid, value.source.commit_lsn, value.source.change_lsn, value.source.scn, value.source.commit_scn, value.source.sequence, value.source.db, value.source.schema, value.source.table, value.source.snapshot, value.source.name, value.source.connector
CREATE TABLE v (id BIGINT, ordinal BIGINT METADATA FROM 'value.source.lns');
--> InvalidInputError: column.ordinal.metadata: records have no metadata 'value.source.lns'; did you mean 'value.source.lsn'?
CREATE TABLE v (id BIGINT, ordinal DATE METADATA FROM 'value.source.lsn');
--> InvalidInputError: METADATA: the table has no primary key, so a deletion has to repeat its row with all values, but it has other metadata. Use a table with the key of the source and merge-engine=deduplicate, or an append-only one
CREATE TABLE v (id BIGINT METADATA FROM 'offset', PRIMARY KEY (id) NOT ENFORCED);
--> InvalidInputError: METADATA fills column 'id', which is in the primary key or partitions the table: deletions would not find their rows. Use another column
CREATE TABLE v (id BIGINT, ordinal BIGINT METADATA FROM 'value.source.lsn' VIRTUAL);
--> SqlSyntaxError: line 1, column 43: METADATA VIRTUAL is not stored; columns with metadata are filled by ingest, and stored
-->   CREATE TABLE v (id BIGINT, ordinal BIGINT METADATA FROM 'value.source.lsn' VIRTUAL)
-->                                             ^
CREATE TABLE v (id BIGINT, n STRING METADATA FROM 'value.source.scn', PRIMARY KEY (id) NOT ENFORCED) WITH ('sequence.field' = 'n');
--> InvalidInputError: METADATA: column 'n' of sequence.field is STRING, and value.source.scn is a number: as text, 9 would be newer than 10. Make it DECIMAL(38, 0)
ALTER TABLE u ADD COLUMN op CHAR(1) METADATA FROM 'value.ops';
--> InvalidInputError: table default.u: column.op.metadata: records have no metadata 'value.ops'; did you mean 'value.op'?
