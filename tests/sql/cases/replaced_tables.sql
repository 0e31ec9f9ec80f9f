Tables that are created or replaced by a query, and rows that are inserted by the names of columns.

-- case: columns are found by their names
CREATE TABLE t (id BIGINT, item STRING, amount INT, dt STRING, PRIMARY KEY (id, dt) NOT ENFORCED) PARTITIONED BY (dt);
--> table default.t created
INSERT INTO t BY NAME SELECT 'x' AS dt, 3 AS Amount, 1 AS id;
--> default.t: snapshot 1
INSERT INTO t BY NAME SELECT 'pen' AS item, 2L AS id, 'y' AS dt;
--> default.t: snapshot 2
INSERT INTO t PARTITION (dt = 'z') BY NAME SELECT 'ink' AS item, 3 AS id;
--> default.t: snapshot 3
INSERT OVERWRITE t BY NAME SELECT '-D' AS _row_kind, 2 AS id, 'y' AS dt;
--> default.t: nothing to write
SELECT * FROM t ORDER BY id;
--> id | item | amount | dt
--> 1 | NULL | 3 | x
--> 2 | pen | NULL | y
--> 3 | ink | NULL | z
INSERT INTO t BY NAME SELECT 1 AS id, 'x' AS dt, 2 AS itme;
--> InvalidInputError: table default.t has no column 'itme'; did you mean 'item'?
INSERT INTO t BY NAME SELECT 1 AS id, 'x' AS dt, 2 AS ID;
--> InvalidInputError: table default.t: column 'id' is given twice
INSERT INTO t PARTITION (dt = 'z') BY NAME SELECT 1 AS id, 'z' AS dt;
--> InvalidInputError: table default.t: column 'dt' is given twice
INSERT INTO t BY NAME SELECT 'pen' AS item, 'x' AS dt;
--> InvalidInputError: table default.t: the input lacks column 'id', which is BIGINT NOT NULL; add it with a value in every row
INSERT INTO t BY NAME SELECT 1 AS id, TRUE AS amount, 'x' AS dt;
--> InvalidInputError: table default.t: column 'amount' is INT, and the query gives BOOLEAN (amount); write CAST(... AS INT)
INSERT INTO t BY NAME (id) SELECT 1 AS id;
--> SqlSyntaxError: line 1, column 24: expected '(', FROM, SELECT, VALUES or WITH, found 'id'
-->   INSERT INTO t BY NAME (id) SELECT 1 AS id
-->                          ^
INSERT INTO t BY SELECT 1 AS id;
--> SqlSyntaxError: line 1, column 18: expected NAME, found 'SELECT'
-->   INSERT INTO t BY SELECT 1 AS id
-->                    ^

-- case: a query's table has a key
CREATE TABLE keyed (PRIMARY KEY (id) NOT ENFORCED) COMMENT 'by its query' AS SELECT 1L AS id, 'pen' AS item;
--> default.keyed: snapshot 1
INSERT INTO keyed VALUES (1, 'ink');
--> default.keyed: snapshot 2
SELECT * FROM keyed;
--> id | item
--> 1 | ink
DESCRIBE keyed;
--> name | type | nullable | key | comment
--> id | BIGINT | false | primary key | NULL
--> item | STRING | true |  | NULL
CREATE TABLE wrong (PRIMARY KEY (nr) NOT ENFORCED) AS SELECT 1 AS id;
--> InvalidInputError: table wrong: PRIMARY KEY (nr): unknown column 'nr'; there are id

-- case: rows of a table are replaced in one commit
CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT 1 AS id, 'pen' AS item;
--> default.t: snapshot 1
CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT item, id + 1 AS id FROM t;
--> InvalidInputError: table default.t exists, and CREATE OR REPLACE replaces the rows of a table, not its definition: order of columns: id, item in the table, declared as item, id. ALTER TABLE first, or DROP TABLE it, which also drops its log
SELECT * FROM t;
--> id | item
--> 1 | pen
SELECT * FROM t VERSION AS OF 1;
--> id | item
--> 1 | pen
CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT id, item FROM t WHERE false;
--> default.t: snapshot 2
SELECT count(*) AS n FROM t;
--> n
--> 0
SELECT snapshot_id, commit_kind FROM t$snapshots;
--> snapshot_id | commit_kind
--> 1 | APPEND
--> 2 | APPEND
CREATE OR REPLACE TABLE t AS SELECT 1 AS id, 'pen' AS item;
--> InvalidInputError: table default.t exists, and CREATE OR REPLACE replaces the rows of a table, not its definition: column id: INT NOT NULL in the table, declared as INT; primary key: id in the table, declared as none. ALTER TABLE first, or DROP TABLE it, which also drops its log
CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT 1L AS id, 'pen' AS item, 2 AS more;
--> InvalidInputError: table default.t exists, and CREATE OR REPLACE replaces the rows of a table, not its definition: column id: INT NOT NULL in the table, declared as BIGINT NOT NULL; column more: not in the table, declared as INT. ALTER TABLE first, or DROP TABLE it, which also drops its log
CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '7') AS SELECT 1 AS id, 'pen' AS item;
--> InvalidInputError: table default.t exists, and CREATE OR REPLACE replaces the rows of a table, not its definition: option bucket: 1 in the table, declared as 7. ALTER TABLE first, or DROP TABLE it, which also drops its log
CREATE OR REPLACE TABLE IF NOT EXISTS t AS SELECT 1 AS id;
--> InvalidInputError: table default.t: OR REPLACE and IF NOT EXISTS contradict each other; leave one of them out
CREATE OR REPLACE TABLE t (id INT);
--> InvalidInputError: table default.t exists, and CREATE OR REPLACE would drop it with all its rows and its log; DROP TABLE IF EXISTS it first
CREATE OR REPLACE TABLE made (id INT);
--> table default.made created
CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT nothing AS id, 'pen' AS item;
--> InvalidInputError: line 1, column 69: A column, variable, or function parameter with name `nothing` cannot be resolved
-->   CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT nothing AS id, 'pen' AS item
-->                                                                       ^

-- case: a partitioned table is replaced whole
CREATE OR REPLACE TABLE p PARTITIONED BY (dt) AS SELECT 1 AS id, 'x' AS dt UNION ALL SELECT 2, 'y';
--> default.p: snapshot 1
CREATE OR REPLACE TABLE p PARTITIONED BY (dt) AS SELECT 3 AS id, 'y' AS dt;
--> default.p: snapshot 2
SELECT * FROM p;
--> id | dt
--> 3 | y
CREATE MATERIALIZED TABLE m AS SELECT dt, count(*) AS n FROM p GROUP BY dt;
--> materialized table default.m created, rows written: 1
CREATE OR REPLACE TABLE m AS SELECT 'x' AS dt, 1L AS n;
--> InvalidInputError: table default.m is a materialized table: its rows are the answer of its query, so CREATE OR REPLACE TABLE is refused. Change the tables that it reads and run ALTER MATERIALIZED TABLE default.m REFRESH, or change its query: ALTER MATERIALIZED TABLE default.m AS SELECT ...

-- case: a stream finds its columns by their names
CREATE TABLE a (id BIGINT, v STRING, w STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.a created
CREATE TABLE b (w STRING, id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.b created
INSERT INTO a VALUES (1, 'x', 'p'), (2, 'y', 'q');
--> default.a: snapshot 1
DELETE FROM a WHERE id = 2;
--> default.a: snapshot 2
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
SET 'table.dml-sync' = 'true';
--> table.dml-sync is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ BY NAME SELECT v, id FROM a;
--> default.b: stream <uuid> ended; its checkpoint is <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
INSERT INTO b /*+ OPTIONS('available-now' = 'true', 'query-name' = 'other') */ BY NAME SELECT v AS x, id FROM a;
--> InvalidInputError: table default.b has no column 'x'; there are w, id, v
RESET 'execution.runtime-mode';
--> execution.runtime-mode is reset
SELECT * FROM b;
--> w | id | v
--> NULL | 1 | x
