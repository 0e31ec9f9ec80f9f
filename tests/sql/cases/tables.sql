Making, looking at and dropping tables (requirements B1 to B13, C1 to C16, D).
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

-- case: a table as FLIP-188 declares it
CREATE TABLE IF NOT EXISTS dynamic_tables.shop.orders (
  order_id BIGINT NOT NULL COMMENT 'who knows',
  amount DECIMAL(10, 2),
  `comment` STRING,
  dt STRING,
  cents AS (amount * 100) COMMENT 'as the bank has it',
  create_time TIMESTAMP(3),
  WATERMARK FOR create_time AS create_time - INTERVAL '5' SECOND,
  CONSTRAINT pk PRIMARY KEY (order_id, dt) NOT ENFORCED
) COMMENT 'all orders' PARTITIONED BY (dt) WITH ('bucket' = '2', 'file.format' = 'orc');
--> table shop.orders created
CREATE TABLE IF NOT EXISTS shop.orders (
  order_id BIGINT NOT NULL, amount DECIMAL(10, 2), `comment` STRING, dt STRING, create_time TIMESTAMP(3),
  PRIMARY KEY (order_id, dt) NOT ENFORCED
) PARTITIONED BY (dt);
--> table shop.orders already exists
DESCRIBE shop.orders;
--> name | type | nullable | key | comment
--> order_id | BIGINT | false | primary key | who knows
--> amount | DECIMAL(10, 2) | true |  | NULL
--> comment | STRING | true |  | NULL
--> dt | STRING | false | primary key, partition | NULL
--> create_time | TIMESTAMP(3) | true | watermark 5 SECOND behind | NULL
--> cents | AS (amount * 100) | true | computed | as the bank has it
USE shop;
--> database shop
SHOW CREATE TABLE orders;
--> statement
--> CREATE TABLE `shop`.`orders` (
-->   `order_id` BIGINT NOT NULL COMMENT 'who knows',
-->   `amount` DECIMAL(10, 2),
-->   `comment` STRING,
-->   `dt` STRING NOT NULL,
-->   `create_time` TIMESTAMP(3),
-->   `cents` AS (amount * 100) COMMENT 'as the bank has it',
-->   WATERMARK FOR `create_time` AS `create_time` - INTERVAL '5' SECOND,
-->   PRIMARY KEY (`order_id`, `dt`) NOT ENFORCED
--> )
--> COMMENT 'all orders'
--> PARTITIONED BY (`dt`)
--> WITH (
-->   'bucket' = '2',
-->   'file.format' = 'orc',
-->   'log.system' = 'none',
-->   'partition.legacy-name' = 'false',
-->   'snapshot.num-retained.max' = '2147483647',
-->   'snapshot.num-retained.min' = '2147483647'
--> )
SHOW COLUMNS FROM orders;
--> column
--> order_id
--> amount
--> comment
--> dt
--> create_time
--> cents
DESCRIBE TABLE EXTENDED orders;
--> field | value
--> name | shop.orders
--> kind | managed dynamic table
--> comment | all orders
--> columns | order_id BIGINT NOT NULL, amount DECIMAL(10, 2), comment STRING, dt STRING NOT NULL, create_time TIMESTAMP(3)
--> primary key | order_id, dt
--> partitioned by | dt
--> bucket | 2
--> change-tracking | true
--> log.system | none
--> source offsets |
--> file.path | <warehouse>/shop.db/orders
--> file.format | orc
--> partition |
--> num-files | 0
--> size | <bytes>
--> rows (physical) | 0
--> runs per bucket | 0
--> compacted | true
--> last-modified |
--> watermark |
--> newest snapshot |
--> lease held by |
--> options | bucket=2, column.cents.comment=as the bank has it, column.cents.expression=amount * 100, dynamic-table.uuid=<uuid>, file.format=orc, log.system=none, partition.legacy-name=false, snapshot.num-retained.max=2147483647, snapshot.num-retained.min=2147483647, watermark.create_time=5 SECOND

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
CREATE OR REPLACE TABLE t (id BIGINT);
--> InvalidInputError: table t: CREATE OR REPLACE would drop a table with all its rows and its log; DROP TABLE IF EXISTS it first
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

-- case: dropping
CREATE TABLE orders (id BIGINT);
--> table default.orders created
DROP TABLE oders;
--> NotFoundError: table default.oders does not exist; did you mean 'orders'?
DROP TABLE IF EXISTS oders;
--> table default.oders does not exist
DROP TABLE orders;
--> table default.orders dropped
DROP TABLE orders;
--> NotFoundError: table default.orders does not exist; there are none
SHOW TABLES;
--> database | table | temporary

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

-- case: unknown settings
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
SET 'spark.sql.shuffle.partitions';
--> key | value
--> spark.sql.shuffle.partitions | 2

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

-- case: a table like another
CREATE TABLE a (id BIGINT, v STRING, up AS (upper(v)), dt STRING, PRIMARY KEY (id, dt) NOT ENFORCED) COMMENT 'c' PARTITIONED BY (dt) WITH ('bucket' = '2');
--> table default.a created
CREATE TABLE b LIKE a;
--> table default.b created
DESCRIBE b;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | NULL
--> v | STRING | true |  | NULL
--> dt | STRING | false | primary key, partition | NULL
--> up | AS (upper(v)) | true | computed | NULL
SHOW OPTIONS FROM b LIKE 'bucket';
--> option | value
--> bucket | 2
CREATE TABLE c LIKE a (EXCLUDING ALL) WITH ('bucket' = '3');
--> table default.c created
DESCRIBE c;
--> name | type | nullable | key | comment
--> id | BIGINT | false |  | NULL
--> v | STRING | true |  | NULL
--> dt | STRING | false |  | NULL
SHOW OPTIONS FROM c LIKE 'bucket';
--> option | value
--> bucket | 3

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

-- case: comments are there from the first
CREATE TABLE t (id BIGINT COMMENT 'ours', v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
CREATE TABLE like_it (extra INT COMMENT 'more') LIKE t;
--> table default.like_it created
SELECT schema_id FROM t$schemas;
--> schema_id
--> 0
DESCRIBE like_it;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | ours
--> v | STRING | true |  | NULL
--> extra | INT | true |  | more

-- case: options said twice, and too large
CREATE TABLE t (id BIGINT) WITH ('bucket' = '2', 'table-storage.bucket' = '3');
--> InvalidInputError: table t: option bucket is given twice, also as table-storage.bucket; leave one out
CREATE TABLE t (id BIGINT) WITH ('bucket' = '2147483648');
--> InvalidInputError: option bucket is '2147483648'; it has to be at most 2147483647, the largest number that the format has for a bucket
CREATE TABLE t (id BIGINT) LOCATION '/elsewhere';
--> InvalidInputError: table default.t: option path=/elsewhere would do nothing here: a table lies below its warehouse, by its name; open a catalog on the directory that you want

-- case: settings of Spark's
SET 'spark.sql.ansi.enabled';
--> key | value
--> spark.sql.ansi.enabled | true
SET 'spark.hadoop.fs.s3a.secret.key' = 'hunter2';
--> spark.hadoop.fs.s3a.secret.key is set
SET 'spark.hadoop.fs.s3a.secret.key';
--> key | value
--> spark.hadoop.fs.s3a.secret.key | ******
RESET 'spark.hadoop.fs.s3a.secret.key';
--> spark.hadoop.fs.s3a.secret.key is reset
SET 'spark.nobody.has.this';
--> key | value
--> spark.nobody.has.this |

-- case: tables of unknown connectors
CREATE TABLE t (id BIGINT) WITH ('connector' = 'datagen');
--> InvalidInputError: Failed to find the data source: datagen. Make sure the provider name is correct and the package is properly registered and compatible with your Spark version
CREATE TABLE t (id BIGINT) USING csv LOCATION '<warehouse>/files';
--> table t created by Spark as csv
INSERT INTO t VALUES (1);
--> t: written by Spark
SELECT * FROM csv.`<warehouse>/files`;
--> _c0
--> 1
DESCRIBE t;
--> InvalidInputError: t is a Spark table, which can only be read, inserted into and dropped here
DROP TABLE IF EXISTS t;
--> table t dropped by Spark
DROP TABLE t;
--> NotFoundError: table default.t does not exist; there are none
CREATE TABLE t (id BIGINT) USING csv OPTIONS (path '/a') LOCATION '/b';
--> SqlSyntaxError: line 1, column 58: LOCATION and option path both set the location; leave one of them out
-->   CREATE TABLE t (id BIGINT) USING csv OPTIONS (path '/a') LOCATION '/b'
-->                                                            ^

-- case: columns that can't be computed
CREATE TABLE t (a INT, b AS (nope + 1));
--> InvalidInputError: table default.t: computed column 'b' AS (nope + 1): A column, variable, or function parameter with name `nope` cannot be resolved. Did you mean one of the following? [`a`]
CREATE TABLE t (a INT, b AS (a +));
--> InvalidInputError: table default.t: computed column 'b' AS (a +): Syntax error at or near ')'
CREATE TABLE t (a INT, b AS (sum(a)));
--> InvalidInputError: table default.t: computed column 'b' AS (sum(a)): The query does not include a GROUP BY clause. Add GROUP BY or turn it into the window functions using OVER clauses
CREATE TABLE t (a INT, b AS (a + 1), c AS (b + 1));
--> InvalidInputError: table default.t: computed column 'c' AS (b + 1): A column, variable, or function parameter with name `b` cannot be resolved. Did you mean one of the following? [`a`]
CREATE TABLE t (a INT, WATERMARK FOR a AS a);
--> InvalidInputError: table default.t: WATERMARK FOR a: column 'a' is INT; a watermark follows a TIMESTAMP or a TIMESTAMP_LTZ
CREATE TABLE t (a STRING, at AS (to_timestamp(a)), WATERMARK FOR at AS at - INTERVAL '5' SECOND);
--> table default.t created
CREATE TABLE u (at TIMESTAMP(3), n INT, twice AS (n * 2), PRIMARY KEY (n) NOT ENFORCED, WATERMARK FOR at AS at);
--> table default.u created
ALTER TABLE u SET ('column.twice.expression' = 'm * 2');
--> InvalidInputError: table default.u: computed column 'twice' AS (m * 2): A column, variable, or function parameter with name `m` cannot be resolved. Did you mean one of the following? [`n`, `at`]
ALTER TABLE u SET ('column.n.expression' = '1');
--> InvalidInputError: table default.u: column 'n' already exists, so it can't be computed as well
ALTER TABLE u RENAME n TO m;
--> InvalidInputError: table default.u: computed column 'twice' AS (n * 2): A column, variable, or function parameter with name `n` cannot be resolved. Did you mean one of the following? [`m`, `at`]
ALTER TABLE u RENAME at TO moment;
--> InvalidInputError: table default.u: WATERMARK FOR at: unknown column; there are moment, n, twice
ALTER TABLE u RESET ('column.twice.expression', 'watermark.at');
--> table default.u altered
ALTER TABLE u RENAME at TO moment;
--> table default.u altered
DESCRIBE u;
--> name | type | nullable | key | comment
--> moment | TIMESTAMP(3) | true |  | NULL
--> n | INT | false | primary key | NULL

-- case: only what a query needs is computed
CREATE TABLE t (a INT, b INT, sum_of_both AS (a + b), at TIMESTAMP(3));
--> table default.t created
INSERT INTO t VALUES (1, 2, NULL);
--> default.t: snapshot 1
SELECT sum_of_both FROM t;
--> sum_of_both
--> 3
CREATE TABLE late (at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '1' MONTH);
--> InvalidInputError: WATERMARK FOR at AS at - INTERVAL '1' MONTH: a watermark follows its column at a distance; write at - INTERVAL '5' SECOND (or another unit), or at alone

-- case: a table like one that was rewritten
CREATE TABLE t (id BIGINT COMMENT 'k', PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
INSERT INTO t VALUES (1);
--> default.t: snapshot 1
ALTER TABLE t SET ('bucket' = '3');
--> table default.t rewritten
ALTER TABLE t MODIFY id BIGINT COMMENT 'the key';
--> table default.t altered
DESCRIBE t;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | the key
CREATE TABLE u LIKE t;
--> table default.u created
SHOW OPTIONS FROM u;
--> option | value
--> bucket | 3
--> dynamic-table.uuid | <uuid>
--> log.system | none
--> partition.legacy-name | false
--> snapshot.num-retained.max | 2147483647
--> snapshot.num-retained.min | 2147483647
INSERT INTO u SELECT * FROM t;
--> default.u: snapshot 1
SELECT * FROM u;
--> id
--> 1
