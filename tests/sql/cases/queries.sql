Reading: hints, moments, system tables, names (requirements B16, B22, B23, B31, C11 to C15).

-- case: reading in all the ways that a query can name a table
CREATE TABLE shop.orders (id BIGINT, item STRING, amount INT, twice AS (amount * 2), PRIMARY KEY (id) NOT ENFORCED);
--> table shop.orders created
CREATE TABLE items (item STRING, category STRING) WITH ('write-mode' = 'append-only');
--> table default.items created
INSERT INTO shop.orders VALUES (1, 'pen', 10), (2, 'ink', 20);
--> shop.orders: snapshot 1
INSERT INTO items VALUES ('pen', 'tools'), ('ink', 'goods');
--> default.items: snapshot 1
INSERT INTO shop.orders VALUES (2, 'ink', 25), (3, 'pen', 30);
--> shop.orders: snapshot 2
SELECT * FROM shop.orders;
--> id | item | amount | twice
--> 1 | pen | 10 | 20
--> 2 | ink | 25 | 50
--> 3 | pen | 30 | 60
SELECT shop.orders.id, orders.twice FROM shop.orders WHERE shop.orders.amount > 20;
--> id | twice
--> 2 | 50
--> 3 | 60
SELECT o.id, i.category FROM dynamic_tables.shop.orders AS o LEFT JOIN items i ON o.item = i.item WHERE o.id IN (SELECT max(id) FROM shop.orders);
--> id | category
--> 3 | tools
WITH items AS (SELECT 'pen' AS item) SELECT count(*) AS n FROM items JOIN shop.orders USING (item);
--> n
--> 2
SELECT count(*) AS n FROM (SELECT item FROM shop.orders UNION ALL SELECT item FROM items) AS both;
--> n
--> 5
SELECT item, sum(amount) AS total FROM shop.orders GROUP BY item HAVING sum(amount) > 20 ORDER BY total;
--> item | total
--> ink | 25
--> pen | 40
USE shop;
--> database shop
SELECT amount FROM orders VERSION AS OF 1 WHERE id = 2;
--> amount
--> 20
SELECT amount FROM orders FOR SYSTEM_VERSION AS OF 1 AS o WHERE o.id = 2;
--> amount
--> 20
SELECT amount FROM orders /*+ OPTIONS('scan.snapshot-id' = '1') */ AS o WHERE o.id = 2;
--> amount
--> 20
CALL sys.create_tag('orders', 'first', 1);
--> shop.orders: tag first created
SELECT amount FROM orders VERSION AS OF 'first' WHERE id = 2;
--> amount
--> 20
SELECT amount FROM orders TIMESTAMP AS OF current_timestamp() WHERE id = 2;
--> amount
--> 25
SELECT count(*) AS n FROM orders TIMESTAMP AS OF '2001-01-01 00:00:00';
--> NotFoundError: the table had no snapshot yet at 2001-01-01 00:00:00.000+00:00 (<warehouse>/shop.db/orders): name a later moment
SELECT snapshot_id, commit_kind, delta_record_count FROM orders$snapshots ORDER BY snapshot_id;
--> snapshot_id | commit_kind | delta_record_count
--> 1 | APPEND | 2
--> 2 | APPEND | 2
SELECT tag_name, snapshot_id FROM `orders$tags`;
--> tag_name | snapshot_id
--> first | 1
SELECT id, _row_kind FROM orders /*+ OPTIONS('incremental-between' = '1,2') */;
--> id | _row_kind
--> 2 | +I
--> 3 | +I

-- case: questions that have no answer
CREATE TABLE orders (id BIGINT, item STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.orders created
SELECT * FROM oders;
--> NotFoundError: table default.oders does not exist; did you mean 'orders'?
SELECT itme FROM orders;
--> InvalidInputError: line 1, column 8: A column, variable, or function parameter with name `itme` cannot be resolved. Did you mean one of the following? [`item`, `id`]
-->   SELECT itme FROM orders
-->          ^
SELECT id
  FROM orders
 WHERE itme = 'pen';
--> InvalidInputError: line 3, column 8: A column, variable, or function parameter with name `itme` cannot be resolved. Did you mean one of the following? [`item`, `id`]
-->    WHERE itme = 'pen'
-->          ^
SELECT o.id FROM orders AS o JOIN default.orders ON o.id = orders.idd;
--> InvalidInputError: line 1, column 60: A column, variable, or function parameter with name `orders`.`idd` cannot be resolved. Did you mean one of the following? [`orders`.`id`, `orders`.`item`, `o`.`id`, `o`.`item`]
-->   SELECT o.id FROM orders AS o JOIN default.orders ON o.id = orders.idd
-->                                                              ^
SELECT id FROM orders ORDER BY id LIMIT 'x';
--> InvalidInputError: line 1, column 41: The limit like expression "x" is invalid. The limit expression must be integer type, but got "STRING"
-->   SELECT id FROM orders ORDER BY id LIMIT 'x'
-->                                           ^
SELECT id, FROM orders;
--> SqlSyntaxError: line 1, column 17: Syntax error at or near 'AS'
-->   SELECT id, FROM orders
-->                   ^
SELECT id FROM orders /*+ OPTIONS('scan.snapshotid' = '1') */;
--> InvalidInputError: a read of table default.orders has no hint 'scan.snapshotid'; did you mean 'scan.snapshot-id'?
SELECT id FROM orders /*+ OPTIONS('scan.snapshot-id' = '7') */;
--> NotFoundError: there is no snapshot 7 (<warehouse>/default.db/orders/snapshot/snapshot-7); the table has none yet
SELECT id FROM orders /*+ OPTIONS('log.scan' = 'latest') */;
--> InvalidInputError: hint log.scan of table default.orders is for reading changes, and this is a read of one snapshot; SET 'execution.runtime-mode' = 'streaming', or give the hint 'execution.runtime-mode' = 'streaming' as well
SELECT id FROM orders VERSION AS OF 1 /*+ OPTIONS('scan.tag-name' = 'x') */;
--> InvalidInputError: table default.orders: AS OF and a hint both select what to read; leave one of them out
SELECT id FROM orders /*+ OPTIONS('execution.runtime-mode' = 'fast') */;
--> InvalidInputError: hint execution.runtime-mode = 'fast'; there are batch, streaming
SELECT * FROM orders$snapshts;
--> NotFoundError: table default.orders has no system table 'snapshts'; it has audit_log, branches, buckets, consumers, files, manifests, options, partitions, rejected, schemas, snapshots, statistics, tags
SELECT * FROM orders$snapshots VERSION AS OF 1;
--> InvalidInputError: default.orders$snapshots is a system table, which takes no such options; leave scan.snapshot-id out
SELECT * FROM other.default.orders;
--> NotFoundError: unknown catalog 'other'; this session's catalog is 'dynamic_tables'

-- case: temporary views
CREATE TABLE orders (id BIGINT, item STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.orders created
CREATE TEMPORARY VIEW pens (number) AS SELECT id FROM orders WHERE item = 'pen';
--> view pens created
CREATE TEMPORARY VIEW few AS SELECT p.number FROM pens p WHERE p.number < 2;
--> view few created
INSERT INTO orders VALUES (1, 'pen'), (2, 'pen'), (3, 'ink');
--> default.orders: snapshot 1
SELECT * FROM pens;
--> number
--> 1
--> 2
SELECT few.number + 1 AS next FROM few;
--> next
--> 2
SHOW TABLES;
--> database | table | temporary
--> default | orders | false
-->  | few | true
-->  | pens | true
SHOW VIEWS;
--> database | view | temporary
-->  | few | true
-->  | pens | true
CREATE TEMPORARY VIEW pens AS SELECT 1;
--> AlreadyExistsError: view pens already exists; drop it, or write CREATE OR REPLACE TEMPORARY VIEW
CREATE TEMPORARY VIEW IF NOT EXISTS pens AS SELECT 1;
--> view pens already exists
CREATE OR REPLACE TEMPORARY VIEW pens AS SELECT number FROM pens;
--> InvalidInputError: view pens would read itself; give one of them another name
CREATE TEMPORARY VIEW wrong (a, b) AS SELECT 1;
--> InvalidInputError: view wrong names 2 columns, and its query gives 1
CREATE TEMPORARY VIEW wrong AS SELECT * FROM nowhere;
--> NotFoundError: table default.nowhere does not exist; there are orders, pens, few
INSERT INTO pens VALUES (1);
--> InvalidInputError: pens is a temporary view, which can only be read; name a table
SELECT * FROM pens VERSION AS OF 1;
--> InvalidInputError: pens is a view; hints and AS OF belong to the tables inside it
DESCRIBE pens;
--> InvalidInputError: pens is a temporary view; SELECT * FROM pens LIMIT 0 shows its columns
DROP TABLE pens;
--> InvalidInputError: pens is a temporary view; write DROP VIEW
DROP VIEW few;
--> view few dropped
DROP VIEW few;
--> NotFoundError: view few does not exist; there are pens
DROP VIEW IF EXISTS few;
--> view few does not exist

-- case: tables of Spark next to ours
CREATE TABLE foreign_rows (id BIGINT, v STRING) WITH ('connector' = 'parquet');
--> table foreign_rows created by Spark as parquet
INSERT INTO foreign_rows VALUES (1, 'a');
--> foreign_rows: written by Spark
CREATE TABLE ours (id BIGINT, v STRING) WITH ('write-mode' = 'append-only');
--> table default.ours created
INSERT INTO ours SELECT * FROM foreign_rows;
--> default.ours: snapshot 1
INSERT INTO foreign_rows (id, v) SELECT id + 1, v FROM ours;
--> foreign_rows: written by Spark
SELECT foreign_rows.id, ours.v FROM foreign_rows JOIN ours ON true;
--> id | v
--> 1 | a
--> 2 | a
CREATE TABLE beside2 USING parquet AS SELECT id FROM ours;
--> table beside2 created by Spark as parquet
SELECT * FROM beside2;
--> id
--> 1
SELECT * FROM foreign_rows VERSION AS OF 1;
--> InvalidInputError: foreign_rows is a Spark table; hints and AS OF are for dynamic tables
CREATE TABLE keyed (id BIGINT PRIMARY KEY NOT ENFORCED) WITH ('connector' = 'parquet');
--> InvalidInputError: table keyed: with parquet it is a table of Spark's, which can't have a primary key; leave that out, or leave the connector out to make a dynamic table
DROP TABLE foreign_rows;
--> table foreign_rows dropped by Spark

-- case: a sample of a table without another name
CREATE TABLE t (id BIGINT);
--> table default.t created
INSERT INTO t VALUES (1), (2);
--> default.t: snapshot 1
SELECT t.id FROM t TABLESAMPLE (100 PERCENT) WHERE t.id > 0;
--> id
--> 1
--> 2
SELECT count(*) AS n FROM t TABLESAMPLE (1 ROWS) AS x;
--> n
--> 1
SELECT t.id, x.id AS other FROM default.t TABLESAMPLE (5 ROWS) JOIN t TABLESAMPLE (5 ROWS) AS x ON t.id = x.id;
--> id | other
--> 1 | 1
--> 2 | 2

-- case: files by their place
CREATE TABLE t (id BIGINT);
--> table default.t created
INSERT INTO t VALUES (1);
--> default.t: snapshot 1
INSERT INTO t SELECT id + 1 FROM parquet.`<warehouse>/default.db/t/bucket-0`;
--> default.t: snapshot 2
SELECT * FROM t;
--> id
--> 1
--> 2
SELECT * FROM csv.`<warehouse>/not/there`;
--> InvalidInputError: Path does not exist: file:<warehouse>/not/there

-- case: moments that are worked out
CREATE TABLE t (id BIGINT);
--> table default.t created
INSERT INTO t VALUES (1);
--> default.t: snapshot 1
SELECT * FROM t TIMESTAMP AS OF current_timestamp() + INTERVAL 1 HOUR AS x WHERE x.id = 1;
--> id
--> 1
SELECT * FROM t TIMESTAMP AS OF '2024-01-01 00:00:00' - INTERVAL '1' DAY - INTERVAL 2 HOURS;
--> NotFoundError: the table had no snapshot yet at 2023-12-30 22:00:00.000+00:00 (<warehouse>/default.db/t): name a later moment
SELECT * FROM t WHERE id = (SELECT id FROM VALUES (1), (2) AS x (id));
--> InvalidInputError: More than one row returned by a subquery used as an expression
