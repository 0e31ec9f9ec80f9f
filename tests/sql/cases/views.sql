Views that the catalog stores.

-- case: a view is read like a table, from each database
CREATE TABLE shop.orders (id BIGINT, item STRING, amount INT, PRIMARY KEY (id) NOT ENFORCED);
--> table shop.orders created
INSERT INTO shop.orders VALUES (1, 'pen', 3), (2, 'ink', 5), (3, 'pen', 4);
--> shop.orders: snapshot 1
USE shop;
--> database shop
CREATE VIEW pens (number COMMENT 'of the order', amount) COMMENT 'orders of pens' AS SELECT id, amount FROM orders WHERE item = 'pen';
--> view shop.pens created
CREATE VIEW IF NOT EXISTS pens AS SELECT 1 AS x;
--> view shop.pens already exists
CREATE VIEW dear AS SELECT pens.* FROM shop.pens WHERE pens.amount > 3 -- more than three
;
--> view shop.dear created
CREATE DATABASE other;
--> database other created
USE other;
--> database other
SELECT number, amount FROM shop.pens ORDER BY number;
--> number | amount
--> 1 | 3
--> 3 | 4
SELECT d.number, o.item FROM shop.dear AS d JOIN shop.orders o ON o.id = d.number;
--> number | item
--> 3 | pen
WITH pens AS (SELECT 1 AS x) SELECT * FROM pens;
--> x
--> 1
SHOW TABLES IN shop;
--> database | table | temporary
--> shop | orders | false
--> shop | dear | false
--> shop | pens | false
SHOW VIEWS IN shop;
--> database | view | temporary
--> shop | dear | false
--> shop | pens | false
SHOW VIEWS;
--> database | view | temporary
SHOW VIEWS IN shop LIKE 'p%';
--> database | view | temporary
--> shop | pens | false
DESCRIBE shop.pens;
--> name | type | nullable | key | comment
--> number | BIGINT | false |  | of the order
--> amount | INT | true |  | NULL
DESCRIBE EXTENDED shop.pens;
--> field | value
--> name | shop.pens
--> type | view
--> query | SELECT id, amount FROM `shop`.orders WHERE item = 'pen'
--> comment | orders of pens
SHOW COLUMNS IN shop.pens;
--> column
--> number
--> amount
SHOW CREATE VIEW shop.pens;
--> statement
--> CREATE VIEW `shop`.`pens` (`number` COMMENT 'of the order', `amount`) COMMENT 'orders of pens' AS
--> SELECT id, amount FROM `shop`.orders WHERE item = 'pen'
SHOW CREATE TABLE shop.dear;
--> statement
--> CREATE VIEW `shop`.`dear` AS
--> SELECT pens.* FROM shop.pens WHERE pens.amount > 3
DESCRIBE DATABASE shop;
--> field | value
--> name | shop
--> tables | 1
--> views | 2

-- case: a view is replaced, renamed and dropped
CREATE TABLE t (a INT, b INT);
--> table default.t created
INSERT INTO t VALUES (1, 2);
--> default.t: snapshot 1
CREATE VIEW v AS SELECT a FROM t;
--> view default.v created
CREATE VIEW v AS SELECT b FROM t;
--> AlreadyExistsError: view default.v already exists; drop it, or replace it
CREATE OR REPLACE VIEW v AS SELECT b FROM t;
--> view default.v created
CREATE VIEW w AS SELECT * FROM v;
--> view default.w created
CREATE OR REPLACE VIEW v AS SELECT * FROM w;
--> InvalidInputError: views read each other in a cycle (default.v); drop or replace one of them
CREATE OR REPLACE VIEW v AS SELECT a + b AS c FROM t;
--> view default.v created
SELECT * FROM w;
--> c
--> 3
ALTER TABLE t ADD COLUMN d INT;
--> InvalidInputError: table default.t: a table without primary key tells its rows apart by all their columns, so these can't change; create a new table, with the primary key or write-mode=append-only
CREATE OR REPLACE VIEW w AS SELECT * FROM t;
--> view default.w created
SELECT * FROM w;
--> a | b
--> 1 | 2
ALTER VIEW v RENAME TO other.v;
--> view default.v renamed to other.v
SELECT * FROM other.v;
--> c
--> 3
ALTER VIEW IF EXISTS v RENAME TO x;
--> view default.v does not exist
ALTER VIEW v RENAME TO x;
--> NotFoundError: view default.v does not exist; existing views of its database: default.w
ALTER VIEW w RENAME TO t;
--> AlreadyExistsError: view default.t can't be created: default.t is a table; drop it, or choose another name
DROP VIEW other.v;
--> view other.v dropped
DROP VIEW other.v;
--> NotFoundError: view other.v does not exist; there are none
DROP VIEW IF EXISTS other.v;
--> view other.v does not exist
DROP DATABASE default;
--> InvalidInputError: database default still contains tables: default.t and views: default.w; drop them first, or drop it with cascade=True
DROP DATABASE default CASCADE;
--> database default dropped
SHOW VIEWS;
--> database | view | temporary

-- case: a name is that of a table or of a view
CREATE TABLE t (a INT);
--> table default.t created
CREATE VIEW t AS SELECT 1 AS a;
--> AlreadyExistsError: view default.t can't be created: default.t is a table; drop it, or choose another name
CREATE VIEW v AS SELECT a FROM t;
--> view default.v created
CREATE TABLE v (a INT);
--> AlreadyExistsError: table default.v can't be created: default.v is a view; drop it, or choose another name
CREATE TABLE IF NOT EXISTS v (a INT);
--> AlreadyExistsError: table default.v can't be created: default.v is a view; drop it, or choose another name
CREATE TABLE v AS SELECT 1 AS a;
--> AlreadyExistsError: table default.v can't be created: default.v is a view; drop it, or choose another name
CREATE MATERIALIZED TABLE v AS SELECT count(*) AS n FROM t;
--> AlreadyExistsError: table default.v can't be created: default.v is a view; drop it, or choose another name
ALTER TABLE t RENAME TO v;
--> AlreadyExistsError: table default.v can't be created: default.v is a view; drop it, or choose another name
DROP TABLE v;
--> InvalidInputError: default.v is a view; write DROP VIEW default.v
DROP TABLE IF EXISTS v;
--> InvalidInputError: default.v is a view; write DROP VIEW default.v
DROP VIEW t;
--> InvalidInputError: t is a table; write DROP TABLE t
INSERT INTO v VALUES (1);
--> InvalidInputError: v is a view, which can only be read; name a table
DELETE FROM v;
--> InvalidInputError: v is a view, which can only be read; name a table
ALTER TABLE v ADD COLUMN b INT;
--> InvalidInputError: v is a view, which can only be read; name a table
SELECT * FROM v VERSION AS OF 1;
--> InvalidInputError: v is a view; hints and AS OF belong to the tables inside it
SELECT * FROM vv;
--> NotFoundError: table default.vv does not exist; did you mean 'v'?
CREATE TEMPORARY VIEW v AS SELECT 2 AS temporary;
--> view v created
SELECT * FROM v;
--> temporary
--> 2
DROP VIEW v;
--> view v dropped
SELECT count(*) AS rows FROM v;
--> rows
--> 0

-- case: what a view can't read
CREATE TABLE t (a INT);
--> table default.t created
CREATE TEMPORARY VIEW small AS SELECT 1 AS x;
--> view small created
CREATE TEMPORARY TABLE brief (x INT);
--> table brief created
CREATE VIEW v AS SELECT * FROM small;
--> InvalidInputError: line 1, column 32: view default.v can't read small, a temporary view, which ends with the session; write its query as a common table expression: WITH small AS (SELECT ...)
-->   CREATE VIEW v AS SELECT * FROM small
-->                                  ^
CREATE VIEW v AS SELECT * FROM brief;
--> InvalidInputError: line 1, column 32: view default.v can't read brief, a temporary table, which ends with the session; name a table of the catalog
-->   CREATE VIEW v AS SELECT * FROM brief
-->                                  ^
CREATE VIEW small AS SELECT 1 AS x;
--> AlreadyExistsError: small is a temporary view or table, which would hide the view; drop it first
CREATE VIEW v AS SELECT nothing FROM t;
--> InvalidInputError: line 1, column 25: A column, variable, or function parameter with name `nothing` cannot be resolved. Did you mean one of the following? [`a`]
-->   CREATE VIEW v AS SELECT nothing FROM t
-->                           ^
CREATE VIEW v AS SELECT * FROM parquet.`/data/orders`;
--> NotFoundError: line 1, column 32: table parquet./data/orders does not exist; there are none
-->   CREATE VIEW v AS SELECT * FROM parquet.`/data/orders`
-->                                  ^
CREATE VIEW v AS SELECT a, 1 AS a FROM t;
--> InvalidInputError: view v has two columns a; give one of them another name with AS
CREATE VIEW v (x, y) AS SELECT a FROM t;
--> InvalidInputError: view v names 2 columns, and its query gives 1
CREATE VIEW a.b.c AS SELECT 1 AS x;
--> NotFoundError: unknown catalog 'a'; this session's catalog is 'dynamic_tables'
CREATE VIEW v AS SELECT * FROM missing;
--> NotFoundError: line 1, column 32: table default.missing does not exist; there are t, brief, small
-->   CREATE VIEW v AS SELECT * FROM missing
-->                                  ^
CREATE VIEW `no name` AS SELECT 1 AS x;
--> InvalidInputError: invalid table name 'default.no name'; write database.table, each part of letters, digits, '_' and '-' (they become directories and the Kafka topic's name)
DESCRIBE v;
--> NotFoundError: table default.v does not exist; there are t, brief, small

-- case: views of snapshots, of changes and of system tables
CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('changelog-producer' = 'input');
--> table default.t created
INSERT INTO t VALUES (1, 'a');
--> default.t: snapshot 1
INSERT INTO t VALUES (1, 'b');
--> default.t: snapshot 2
CREATE VIEW first_rows AS SELECT id, v FROM t VERSION AS OF 1;
--> view default.first_rows created
CREATE VIEW changed AS SELECT id, v, _row_kind FROM t /*+ OPTIONS('incremental-between' = '1,2') */;
--> view default.changed created
CREATE VIEW commits AS SELECT snapshot_id, commit_kind FROM t$snapshots;
--> view default.commits created
SELECT * FROM first_rows;
--> id | v
--> 1 | a
SELECT * FROM changed ORDER BY _row_kind;
--> id | v | _row_kind
--> 1 | b | +I
SELECT * FROM commits;
--> snapshot_id | commit_kind
--> 1 | APPEND
--> 2 | APPEND

-- case: rows are written from views
CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
CREATE TABLE u (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.u created
INSERT INTO t VALUES (1, 'a'), (2, 'b');
--> default.t: snapshot 1
CREATE VIEW ones AS SELECT id, upper(v) AS v FROM t WHERE id = 1;
--> view default.ones created
INSERT INTO u SELECT * FROM ones;
--> default.u: snapshot 1
MERGE INTO u USING ones ON u.id = ones.id WHEN MATCHED THEN UPDATE SET v = concat(ones.v, '!');
--> default.u: snapshot 2
UPDATE t SET v = 'c' WHERE id IN (SELECT id FROM ones);
--> default.t: snapshot 2
SELECT * FROM u;
--> id | v
--> 1 | A!
SELECT * FROM ones;
--> id | v
--> 1 | C

-- case: a materialized table stores the queries of its views
CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'a');
--> default.t: snapshot 1
CREATE VIEW few (id, letter) AS SELECT id, v FROM t WHERE id < 3;
--> view default.few created
CREATE VIEW upper_few AS SELECT id, upper(few.letter) AS letter FROM few;
--> view default.upper_few created
CREATE MATERIALIZED TABLE counts AS SELECT letter, count(*) AS n FROM upper_few GROUP BY letter;
--> materialized table default.counts created, rows written: 2
SHOW CREATE MATERIALIZED TABLE counts;
--> statement
--> CREATE MATERIALIZED TABLE `default`.`counts`
--> WITH (
-->   'bucket' = '1',
-->   'log.system' = 'none',
-->   'merge-engine' = 'value-count',
-->   'partition.legacy-name' = 'false',
-->   'snapshot.num-retained.max' = '2147483647',
-->   'snapshot.num-retained.min' = '2147483647'
--> )
--> REFRESH_MODE = AUTO
--> -- settings: {"spark.sql.session.timeZone": "UTC"}
--> -- columns of "default.t": ["id", "v"]
--> AS SELECT letter, count(*) AS n FROM (SELECT id, upper(few.letter) AS letter FROM (SELECT * FROM (SELECT id, v FROM `default`.t WHERE id < 3) AS `few`(`id`, `letter`)) AS `few`) AS `upper_few` GROUP BY letter
CREATE OR REPLACE VIEW few (id, letter) AS SELECT id, v FROM t;
--> view default.few created
INSERT INTO t VALUES (2, 'a');
--> default.t: snapshot 2
ALTER MATERIALIZED TABLE counts REFRESH;
--> default.counts: incremental refresh, snapshot 2, rows written: 3, rows read: default.t 2
SELECT * FROM counts ORDER BY letter;
--> letter | n
--> A | 2
CREATE MATERIALIZED TABLE wrong AS SELECT lettre FROM few;
--> InvalidInputError: line 1, column 8: A column, variable, or function parameter with name `lettre` cannot be resolved. Did you mean one of the following? [`letter`, `id`]
-->   SELECT lettre FROM (SELECT * FROM (SELECT id, v FROM `default`.t) AS `few`(`id`, `letter`)) AS `few`
-->          ^
