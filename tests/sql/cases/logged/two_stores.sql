Tables with a log in Kafka: the changes of streams and the rows of batch reads agree (promise 3).

-- case: every change of a keyed table reaches a stream, and the table after it
CREATE TABLE a (id BIGINT, v STRING, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2');
--> table default.a created
CREATE TABLE b (id BIGINT, v STRING, n INT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.b created
CREATE TABLE received (id BIGINT, v STRING, n INT, kind STRING) WITH ('write-mode' = 'append-only', 'log.system' = 'none');
--> table default.received created
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
INSERT INTO a VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3);
--> default.a: snapshot 1
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
INSERT INTO received /*+ OPTIONS('available-now' = 'true') */ SELECT id, v, n, _row_kind AS kind, '+I' AS _row_kind FROM b;
--> default.received: stream <uuid> runs from <warehouse>/checkpoints/default.received
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM b;
--> id | v | n
--> 1 | a | 1
--> 2 | b | 2
--> 3 | c | 3
UPDATE a SET n = n * 10 WHERE id = 1;
--> default.a: snapshot 2
DELETE FROM a WHERE id = 2;
--> default.a: snapshot 3
MERGE INTO a USING (SELECT 3 AS id, 'C' AS v UNION ALL SELECT 4, 'd') AS s ON a.id = s.id
  WHEN MATCHED THEN UPDATE SET v = s.v
  WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)
  WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'none';
--> default.a: snapshot 4
INSERT INTO a (id, v) VALUES (5, 'e');
--> default.a: snapshot 5
ALTER TABLE a COMPACT;
--> default.a: snapshot 7
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
INSERT INTO received /*+ OPTIONS('available-now' = 'true') */ SELECT id, v, n, _row_kind AS kind, '+I' AS _row_kind FROM b;
--> default.received: stream <uuid> runs from <warehouse>/checkpoints/default.received
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM a;
--> id | v | n
--> 1 | none | 10
--> 3 | C | 3
--> 4 | d | NULL
--> 5 | e | NULL
SELECT * FROM a EXCEPT SELECT * FROM b;
--> id | v | n
SELECT * FROM b EXCEPT SELECT * FROM a;
--> id | v | n
SELECT * FROM received;
--> id | v | n | kind
--> 1 | a | 1 | +I
--> 1 | a | 10 | +U
--> 1 | none | 10 | +U
--> 2 | b | 2 | +I
--> 2 | b | 2 | -D
--> 3 | C | 3 | +U
--> 3 | c | 3 | +I
--> 4 | d | NULL | +I
--> 5 | e | NULL | +I
INSERT OVERWRITE a VALUES (1, 'none', 10), (6, 'f', 6);
--> default.a: snapshot 8
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM b;
--> id | v | n
--> 1 | none | 10
--> 6 | f | 6
TRUNCATE TABLE a;
--> default.a: snapshot 9
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM b;
--> id | v | n
SELECT commit_kind, tracked FROM a$snapshots ORDER BY snapshot_id;
--> commit_kind | tracked
--> APPEND | True
--> APPEND | True
--> APPEND | True
--> APPEND | True
--> APPEND | True
--> COMPACT | False
--> COMPACT | False
--> APPEND | True
--> APPEND | True

-- case: what is written untracked is in the files alone
CREATE TABLE a (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.a created
CREATE TABLE b (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.b created
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
INSERT INTO a VALUES (1, 'a');
--> default.a: snapshot 1
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
INSERT INTO a /*+ OPTIONS('change-tracking' = 'false') */ VALUES (2, 'unheard');
--> default.a: snapshot 2
DELETE FROM a /*+ OPTIONS('change-tracking' = 'false') */ WHERE id = 1;
--> default.a: snapshot 3
INSERT INTO a VALUES (3, 'c');
--> default.a: snapshot 4
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM a;
--> id | v
--> 2 | unheard
--> 3 | c
SELECT * FROM b;
--> id | v
--> 1 | a
--> 3 | c

-- case: a table without a key counts the same in both stores
CREATE TABLE a (v STRING);
--> table default.a created
CREATE TABLE b (v STRING);
--> table default.b created
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
INSERT INTO a VALUES ('x'), ('x'), ('y');
--> default.a: snapshot 1
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
UPDATE a SET v = 'z' WHERE v = 'y';
--> default.a: snapshot 2
INSERT INTO a VALUES ('x');
--> default.a: snapshot 3
DELETE FROM a WHERE v = 'z';
--> default.a: snapshot 4
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM a;
--> v
--> x
--> x
--> x
SELECT * FROM b;
--> v
--> x
--> x
--> x
INSERT OVERWRITE a VALUES ('x');
--> default.a: snapshot 5
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM b;
--> v
--> x
