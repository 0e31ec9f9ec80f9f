DELETE, UPDATE and MERGE: appended rows; done or refused before Spark plans.

-- case: changes that can't be made, without Spark
CREATE TABLE a (id BIGINT) WITH ('write-mode' = 'append-only');
--> table default.a created
CREATE TABLE g (id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum');
--> table default.g created
DELETE FROM a WHERE id = 1;
--> InvalidInputError: table default.a is append-only: DELETE needs rows that can be taken back; INSERT OVERWRITE the partition without them, or make a table without write-mode=append-only
UPDATE g SET n = 1;
--> InvalidInputError: table default.g: with merge-engine=aggregation a row that is written is merged into the one that is there, so UPDATE can't say what it shall be; INSERT INTO the rows to merge, or INSERT OVERWRITE
UPDATE t SET n = 2, n = 3;
--> SqlSyntaxError: line 1, column 21: column 'n' is set twice
-->   UPDATE t SET n = 2, n = 3
-->                       ^
DELETE FROM t WHERE;
--> SqlSyntaxError: line 1, column 20: the statement ends where '(', ',' or an expression was expected
-->   DELETE FROM t WHERE
-->                      ^
DELETE t WHERE id = 1;
--> SqlSyntaxError: line 1, column 8: expected FROM, found 't'
-->   DELETE t WHERE id = 1
-->          ^
MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN MATCHED THEN INSERT (id) VALUES (1);
--> SqlSyntaxError: line 1, column 58: a matching row already exists, so WHEN MATCHED can't INSERT; use UPDATE
-->   MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN MATCHED THEN INSERT (id) VALUES (1)
-->                                                            ^
MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN DELETE;
--> SqlSyntaxError: line 1, column 58: no row of the target matches, so there is nothing to UPDATE or DELETE; use INSERT
-->   MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN DELETE
-->                                                            ^
MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1);
--> SqlSyntaxError: line 1, column 80: INSERT names 2 columns and gives 1 values
-->   MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1)
-->                                                                                  ^
MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *;
--> SqlSyntaxError: line 1, column 58: SET * takes the source's columns, and no row of it matches here
-->   MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *
-->                                                            ^
MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id;
--> SqlSyntaxError: line 1, column 57: the statement ends where '(' or an expression was expected
-->   MERGE INTO t USING (SELECT 1L AS id) AS s ON t.id = s.id
-->                                                           ^

-- case: names before columns, without Spark
CREATE TABLE t (id BIGINT, a INT, s ROW<a INT>, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
UPDATE t SET s.a = 9;
--> InvalidInputError: table default.t: UPDATE sets whole columns, and 's.a' is a part of one; say what all of 's' becomes: SET s = named_struct(...)
UPDATE t AS x SET t.a = 9;
--> InvalidInputError: table default.t has no column 't.a'; there are id, a, s
UPDATE t SET t.a = 9, a = 8;
--> InvalidInputError: table default.t: UPDATE sets column 'a' twice

-- case: nothing but a condition stands behind WHERE, without Spark
CREATE TABLE t (id BIGINT);
--> table default.t created
DELETE FROM t WHERE id = 1 LIMIT 1;
--> SqlSyntaxError: line 1, column 28: in the query: Expecting ), at 'LIMIT'
-->   DELETE FROM t WHERE id = 1 LIMIT 1
-->                              ^
DELETE FROM t WHERE id = 1 UNION ALL SELECT 2, '-D';
--> SqlSyntaxError: line 1, column 28: in the query: Expecting ), at 'UNION'
-->   DELETE FROM t WHERE id = 1 UNION ALL SELECT 2, '-D'
-->                              ^
UPDATE t SET id = 3 WHERE id = 1 ORDER BY id;
--> SqlSyntaxError: line 1, column 34: in the query: Expecting ), at 'ORDER BY'
-->   UPDATE t SET id = 3 WHERE id = 1 ORDER BY id
-->                                    ^
