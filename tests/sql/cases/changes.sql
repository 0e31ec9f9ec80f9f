DELETE, UPDATE and MERGE: appended rows (requirements B29, B30).

-- case: rows of a table with a key
CREATE TABLE t (id BIGINT, v STRING, n INT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (4, 'd', NULL);
--> default.t: snapshot 1
DELETE FROM t WHERE n < (SELECT avg(n) FROM t);
--> default.t: snapshot 2
UPDATE t AS x SET v = concat(x.v, '!'), n = coalesce(n, 0) + 1 WHERE x.id > 2;
--> default.t: snapshot 3
SELECT * FROM t;
--> id | v | n
--> 2 | b | 20
--> 3 | c! | 31
--> 4 | d! | 1
SELECT commit_kind, delta_record_count FROM t$snapshots ORDER BY snapshot_id;
--> commit_kind | delta_record_count
--> APPEND | 4
--> APPEND | 1
--> APPEND | 2
DELETE FROM t /*+ OPTIONS('change-tracking' = 'false') */;
--> default.t: snapshot 4
SELECT count(*) AS n FROM t;
--> n
--> 0

-- case: rows of a table without a key
CREATE TABLE t (id BIGINT, v STRING);
--> table default.t created
INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b');
--> default.t: snapshot 1
UPDATE t SET v = 'x' WHERE id = 1;
--> default.t: snapshot 2
SELECT * FROM t;
--> id | v
--> 1 | x
--> 1 | x
--> 2 | b
DELETE FROM t WHERE id = 2;
--> default.t: snapshot 3
SELECT * FROM t;
--> id | v
--> 1 | x
--> 1 | x

-- case: merging
CREATE TABLE t (id BIGINT, v STRING, n INT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
CREATE TABLE s (id BIGINT, v STRING, n INT) WITH ('write-mode' = 'append-only');
--> table default.s created
INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (9, 'z', 90);
--> default.t: snapshot 1
INSERT INTO s VALUES (1, 'A', 1), (2, 'B', 2), (3, 'C', 3), (5, 'E', 5), (6, 'F', 6);
--> default.s: snapshot 1
MERGE INTO t USING s ON t.id = s.id
  WHEN MATCHED AND s.n = 1 THEN DELETE
  WHEN MATCHED AND s.n = 2 THEN UPDATE SET v = s.v || t.v, n = t.n + s.n
  WHEN MATCHED THEN UPDATE SET *
  WHEN NOT MATCHED AND s.id = 5 THEN INSERT *
  WHEN NOT MATCHED BY TARGET THEN INSERT (id, v) VALUES (s.id, lower(s.v))
  WHEN NOT MATCHED BY SOURCE AND t.n > 50 THEN UPDATE SET v = 'gone';
--> default.t: snapshot 2
SELECT * FROM t;
--> id | v | n
--> 2 | Bb | 22
--> 3 | C | 3
--> 5 | E | 5
--> 6 | f | NULL
--> 9 | gone | 90
SELECT count(*) AS n FROM t$snapshots;
--> n
--> 2
MERGE INTO t AS a USING (SELECT id FROM s WHERE id > 5) AS b ON a.id = b.id WHEN MATCHED THEN DELETE;
--> default.t: snapshot 3
SELECT id FROM t;
--> id
--> 2
--> 3
--> 5
--> 9
MERGE INTO t USING s ON t.id = s.id AND false WHEN MATCHED THEN DELETE;
--> default.t: nothing to write

-- case: merging into a table without a key
CREATE TABLE t (id BIGINT, v STRING);
--> table default.t created
INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b'), (3, 'c');
--> default.t: snapshot 1
MERGE INTO t USING (SELECT 1L AS id UNION ALL SELECT 3L) AS s ON t.id = s.id WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'x' WHEN NOT MATCHED BY SOURCE THEN DELETE;
--> default.t: snapshot 2
SELECT * FROM t;
--> id | v
--> 1 | x
--> 1 | x

-- case: changes that can't be made
CREATE TABLE t (id BIGINT, v STRING, n INT, c AS (n + 1), PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
CREATE TABLE a (id BIGINT) WITH ('write-mode' = 'append-only');
--> table default.a created
CREATE TABLE g (id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum');
--> table default.g created
INSERT INTO t VALUES (1, 'a', 10);
--> default.t: snapshot 1
UPDATE t SET id = 2;
--> InvalidInputError: table default.t: column 'id' is part of the primary key, which says which row it is; UPDATE can't set it. DELETE the row, and INSERT the new one
UPDATE t SET w = 2;
--> InvalidInputError: table default.t has no column 'w'; there are id, v, n
UPDATE t SET c = 2;
--> InvalidInputError: table default.t: column 'c' is computed from others and can't be set
UPDATE t SET n = 'many';
--> InvalidInputError: table default.t: column 'n' is INT, and the query gives STRING (n); write CAST(... AS INT)
UPDATE t SET n = m + 1;
--> InvalidInputError: line 1, column 18: A column, variable, or function parameter with name `m` cannot be resolved. Did you mean one of the following? [`c`, `n`, `v`, `id`]
-->   UPDATE t SET n = m + 1
-->                    ^
DELETE FROM t WHERE m = 1;
--> InvalidInputError: line 1, column 21: A column, variable, or function parameter with name `m` cannot be resolved. Did you mean one of the following? [`c`, `n`, `v`, `id`]
-->   DELETE FROM t WHERE m = 1
-->                       ^
DELETE FROM nowhere;
--> NotFoundError: table default.nowhere does not exist; there are a, g, t
MERGE INTO t USING (SELECT 1L AS id UNION ALL SELECT 1L) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1;
--> InvalidInputError: table default.t: MERGE finds several rows of the source for one row of the table, and can't know which of them counts; make the source's rows unique, or the condition ON narrower
MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
--> InvalidInputError: table default.t: INSERT * takes all columns from the source, which has no 'v' but id; name the columns
MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, w) VALUES (1, 2);
--> InvalidInputError: table default.t has no column 'w'; there are id, v, n
MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.idd WHEN MATCHED THEN DELETE;
--> InvalidInputError: line 1, column 53: A column, variable, or function parameter with name `s`.`idd` cannot be resolved. Did you mean one of the following? [`s`.`id`, `t`.`id`, `t`.`c`, `t`.`n`, `t`.`v`]
-->   MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.idd WHEN MATCHED THEN DELETE
-->                                                       ^
SELECT * FROM t;
--> id | v | n | c
--> 1 | a | 10 | 11

-- case: names before columns
CREATE TABLE t (id BIGINT, a INT, s ROW<a INT>, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
INSERT INTO t VALUES (1, 1, named_struct('a', 1));
--> default.t: snapshot 1
UPDATE t SET t.a = 2;
--> default.t: snapshot 2
UPDATE t AS x SET x.a = x.a + 1;
--> default.t: snapshot 3
MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET s.a = 9;
--> InvalidInputError: table default.t: MERGE sets whole columns, and 's.a' is a part of one; say what all of 's' becomes: SET s = named_struct(...)
MERGE INTO t AS x USING (SELECT 1 AS id) AS y ON x.id = y.id WHEN MATCHED THEN UPDATE SET x.a = 4;
--> default.t: snapshot 4
SELECT * FROM t;
--> id | a | s
--> 1 | 4 | {'a': 1}

-- case: nothing but a condition stands behind WHERE
CREATE TABLE t (id BIGINT);
--> table default.t created
INSERT INTO t VALUES (1), (2);
--> default.t: snapshot 1
DELETE FROM t WHERE id = 1 OR id = 5;
--> default.t: snapshot 2
SELECT * FROM t;
--> id
--> 2

-- case: numbers that a column does not hold
CREATE TABLE t (id BIGINT, small TINYINT, price DECIMAL(5, 2), PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
INSERT INTO t VALUES (1, 127L, 999.99), (2, 1.4, NULL);
--> default.t: snapshot 1
INSERT INTO t VALUES (3, 128, NULL);
--> InvalidInputError: table default.t: column 'small' is TINYINT, which does not hold 128; correct the value, or ALTER TABLE ... MODIFY the column
INSERT INTO t VALUES (3, NULL, 1000);
--> InvalidInputError: table default.t: column 'price' is DECIMAL(5, 2), which does not hold 1000; correct the value, or ALTER TABLE ... MODIFY the column
INSERT INTO t VALUES (3, double('NaN'), NULL);
--> InvalidInputError: table default.t: column 'small' is TINYINT, which does not hold NaN; correct the value, or ALTER TABLE ... MODIFY the column
UPDATE t SET small = small + 1 WHERE id = 1;
--> InvalidInputError: table default.t: column 'small' is TINYINT, which does not hold 128; correct the value, or ALTER TABLE ... MODIFY the column
UPDATE t SET small = small + 1000 WHERE id = 1;
--> InvalidInputError: table default.t: column 'small' is TINYINT, which does not hold 1127; correct the value, or ALTER TABLE ... MODIFY the column
MERGE INTO t USING (SELECT 1 AS id, 12345 AS price) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = s.price;
--> InvalidInputError: table default.t: column 'price' is DECIMAL(5, 2), which does not hold 12345; correct the value, or ALTER TABLE ... MODIFY the column
SELECT * FROM t;
--> id | small | price
--> 1 | 127 | 999.99
--> 2 | 1 | NULL
