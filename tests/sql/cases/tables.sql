Making, looking at and dropping tables (requirements B1 to B13, C1 to C16, D).

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

-- case: unknown settings
SET 'spark.sql.shuffle.partitions';
--> key | value
--> spark.sql.shuffle.partitions | 2

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
