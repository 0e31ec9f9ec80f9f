Streaming by SET 'execution.runtime-mode' (requirements B15, B17, B19, F1).

-- case: changes of one table flow into another
CREATE TABLE a (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.a created
CREATE TABLE b (id BIGINT, w STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.b created
INSERT INTO a VALUES (1, 'x'), (2, 'y');
--> default.a: snapshot 1
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT id, upper(v) FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
SELECT * FROM a;
--> InvalidInputError: this query reads a stream, which never ends: write it into a table by INSERT INTO, use result.dataframe.writeStream, or SET 'execution.runtime-mode' = 'batch' to read one snapshot
RESET 'execution.runtime-mode';
--> execution.runtime-mode is reset
SELECT * FROM b;
--> id | w
--> 1 | X
--> 2 | Y
DELETE FROM a WHERE id = 1;
--> default.a: snapshot 2
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT id, upper(v) FROM a;
--> default.b: stream <uuid> runs from <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
RESET 'execution.runtime-mode';
--> execution.runtime-mode is reset
SELECT * FROM b;
--> id | w
--> 2 | Y

-- case: with table.dml-sync an INSERT returns when its stream has ended
CREATE TABLE a (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.a created
CREATE TABLE b (id BIGINT, w STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.b created
INSERT INTO a VALUES (1, 'x');
--> default.a: snapshot 1
SET 'table.dml-sync' = 'true';
--> table.dml-sync is set
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b /*+ OPTIONS('available-now' = 'true') */ SELECT id, upper(v) FROM a;
--> default.b: stream <uuid> ended; its checkpoint is <warehouse>/checkpoints/default.b; scan.normalize=none (the key of default.a is the key of default.b, and no row can drop out)
RESET 'execution.runtime-mode';
--> execution.runtime-mode is reset
SELECT * FROM b;
--> id | w
--> 1 | X

-- case: a stream joined with a snapshot, through a view, with a star
CREATE TABLE orders (id BIGINT, item STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.orders created
CREATE TABLE items (item STRING, category STRING, PRIMARY KEY (item) NOT ENFORCED);
--> table default.items created
CREATE TABLE joined (id BIGINT, item STRING, category STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.joined created
INSERT INTO orders VALUES (1, 'pen');
--> default.orders: snapshot 1
INSERT INTO items VALUES ('pen', 'tools');
--> default.items: snapshot 1
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO joined /*+ OPTIONS('available-now' = 'true') */ SELECT o.id, o.item, i.category FROM orders AS o LEFT JOIN items /*+ OPTIONS('execution.runtime-mode' = 'batch') */ AS i ON o.item = i.item;
--> default.joined: stream <uuid> runs from <warehouse>/checkpoints/default.joined; scan.normalize=none (the key of default.orders is the key of default.joined, and no row can drop out); rows are put back into the source's order (the join with default.items)
INSERT INTO joined SELECT 1, 'a', 'b';
--> InvalidInputError: table default.joined: the query reads no stream, so there is nothing to wait for; SET 'execution.runtime-mode' = 'batch' to write it once
INSERT INTO joined /*+ OPTIONS('commit-user' = 'me') */ SELECT id, item, item FROM orders;
--> InvalidInputError: this write of table default.joined has no hint 'commit-user'; there are change-tracking, checkpoint-location, output-mode, trigger-interval, available-now, query-name
SELECT * FROM orders VERSION AS OF 1;
--> id | item
--> 1 | pen
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM joined;
--> id | item | category
--> 1 | pen | tools

-- case: an append-only table takes the insertions of a keyed one, or all its changes as rows
CREATE TABLE a (id BIGINT, n INT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.a created
CREATE TABLE only_added (id BIGINT, n INT) WITH ('write-mode' = 'append-only');
--> table default.only_added created
CREATE TABLE received (id BIGINT, n INT, kind STRING) WITH ('write-mode' = 'append-only');
--> table default.received created
INSERT INTO a VALUES (1, 9), (2, 3);
--> default.a: snapshot 1
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO only_added /*+ OPTIONS('available-now' = 'true') */ SELECT id, n FROM a /*+ OPTIONS('scan.normalize' = 'none') */ WHERE n > 5;
--> InvalidInputError: table default.only_added: table default.only_added is append-only, so a row that changes or leaves has to reach it to be refused; so the changes of default.a need their pre-images, which scan.normalize=none leaves out. Remove that option, or set scan.normalize=lookup
INSERT INTO only_added /*+ OPTIONS('available-now' = 'true') */ SELECT id, n FROM a WHERE n > 5;
--> default.only_added: stream <uuid> runs from <warehouse>/checkpoints/default.only_added; scan.normalize=lookup (table default.only_added is append-only, so a row that changes or leaves has to reach it to be refused)
INSERT INTO received /*+ OPTIONS('available-now' = 'true') */ SELECT id, n, _row_kind AS kind, '+I' AS _row_kind FROM a;
--> default.received: stream <uuid> runs from <warehouse>/checkpoints/default.received
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
INSERT INTO a VALUES (3, 7);
--> default.a: snapshot 2
DELETE FROM a WHERE id = 2;
--> default.a: snapshot 3
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO only_added /*+ OPTIONS('available-now' = 'true') */ SELECT id, n FROM a WHERE n > 5;
--> default.only_added: stream <uuid> runs from <warehouse>/checkpoints/default.only_added; scan.normalize=lookup (table default.only_added is append-only, so a row that changes or leaves has to reach it to be refused)
INSERT INTO received /*+ OPTIONS('available-now' = 'true') */ SELECT id, n, _row_kind AS kind, '+I' AS _row_kind FROM a;
--> default.received: stream <uuid> runs from <warehouse>/checkpoints/default.received
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM only_added;
--> id | n
--> 1 | 9
--> 3 | 7
SELECT * FROM received;
--> id | n | kind
--> 1 | 9 | +I
--> 2 | 3 | +I
--> 2 | 3 | -D
--> 3 | 7 | +I

-- case: appended rows are added up
CREATE TABLE events (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE) WITH ('write-mode' = 'append-only');
--> table default.events created
CREATE TABLE totals (everything BIGINT, one INT, PRIMARY KEY (one) NOT ENFORCED);
--> table default.totals created
INSERT INTO events VALUES (1, TIMESTAMP_NTZ '2024-05-14 00:00:00'), (2, TIMESTAMP_NTZ '2024-05-14 00:00:01');
--> default.events: snapshot 1
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO totals /*+ OPTIONS('available-now' = 'true', 'output-mode' = 'update') */ SELECT sum(n), 1 FROM events GROUP BY 2;
--> default.totals: stream <uuid> runs from <warehouse>/checkpoints/default.totals
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM totals;
--> everything | one
--> 3 | 1

-- case: a table that is rewritten under its streams
CREATE TABLE later_keyed (id BIGINT, v STRING);
--> table default.later_keyed created
CREATE TABLE in_more_buckets (id BIGINT PRIMARY KEY NOT ENFORCED, v STRING);
--> table default.in_more_buckets created
CREATE TABLE sink (id BIGINT PRIMARY KEY NOT ENFORCED, v STRING);
--> table default.sink created
INSERT INTO later_keyed VALUES (1, 'a');
--> default.later_keyed: snapshot 1
INSERT INTO in_more_buckets VALUES (11, 'a');
--> default.in_more_buckets: snapshot 1
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO sink /*+ OPTIONS('available-now' = 'true', 'query-name' = 'one') */ SELECT * FROM later_keyed;
--> default.sink: stream <uuid> runs from <warehouse>/checkpoints/one; the rows of a key are added up and held against the stored one (default.later_keyed has no primary key, so several of its rows may share one of default.sink)
INSERT INTO sink /*+ OPTIONS('available-now' = 'true', 'query-name' = 'two') */ SELECT * FROM in_more_buckets;
--> default.sink: stream <uuid> runs from <warehouse>/checkpoints/two; scan.normalize=none (the key of default.in_more_buckets is the key of default.sink, and no row can drop out)
ALTER TABLE later_keyed ADD PRIMARY KEY (id) NOT ENFORCED;
--> table default.later_keyed rewritten
ALTER TABLE in_more_buckets SET ('bucket' = '3');
--> table default.in_more_buckets rewritten
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
INSERT INTO later_keyed VALUES (2, 'b');
--> default.later_keyed: snapshot 3
INSERT INTO in_more_buckets VALUES (12, 'b');
--> default.in_more_buckets: snapshot 3
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO sink /*+ OPTIONS('available-now' = 'true', 'query-name' = 'one') */ SELECT * FROM later_keyed;
--> InvalidInputError: table default.later_keyed was rewritten (ALTER TABLE ... ADD PRIMARY KEY, or SET ('bucket' = ...)) after this position was taken. Start the stream again without it (a query in Spark: with a checkpoint of its own)
INSERT INTO sink /*+ OPTIONS('available-now' = 'true', 'query-name' = 'two') */ SELECT * FROM in_more_buckets;
--> default.sink: stream <uuid> runs from <warehouse>/checkpoints/two; scan.normalize=none (the key of default.in_more_buckets is the key of default.sink, and no row can drop out)
INSERT INTO sink /*+ OPTIONS('available-now' = 'true', 'query-name' = 'anew') */ SELECT * FROM later_keyed;
--> default.sink: stream <uuid> runs from <warehouse>/checkpoints/anew; scan.normalize=none (the key of default.later_keyed is the key of default.sink, and no row can drop out)
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT * FROM sink;
--> id | v
--> 1 | a
--> 11 | a
--> 12 | b
--> 2 | b

-- case: a snapshot's watermark follows the newest event, of a stream as of a batch
CREATE TABLE clicks (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE) WITH ('write-mode' = 'append-only');
--> table default.clicks created
CREATE TABLE seen (n INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (n) NOT ENFORCED);
--> table default.seen created
INSERT INTO clicks VALUES (1, TIMESTAMP_NTZ '2026-11-22 12:00:00'), (2, TIMESTAMP_NTZ '2026-11-22 11:00:00');
--> default.clicks: snapshot 1
INSERT INTO clicks VALUES (3, TIMESTAMP_NTZ '2026-11-22 11:30:00');
--> default.clicks: snapshot 2
SELECT snapshot_id, CAST(timestamp_millis(watermark) AS STRING) AS watermark FROM clicks$snapshots;
--> snapshot_id | watermark
--> 1 | 2026-11-22 11:59:00
--> 2 | 2026-11-22 11:59:00
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO seen /*+ OPTIONS('available-now' = 'true') */ SELECT * FROM clicks;
--> default.seen: stream <uuid> runs from <warehouse>/checkpoints/default.seen; rows are put back into the source's order (rows of one key come from anywhere in the source, and the last one counts)
SET 'execution.runtime-mode' = 'batch';
--> execution.runtime-mode is set
SELECT CAST(timestamp_millis(max(watermark)) AS STRING) AS watermark FROM seen$snapshots;
--> watermark
--> 2026-11-22 11:59:55

-- case: queries whose rows are made of several changes
CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
CREATE TABLE u (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.u created
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
INSERT INTO u /*+ OPTIONS('available-now' = 'true') */ SELECT DISTINCT id, v FROM t;
--> default.u: stream <uuid> runs from <warehouse>/checkpoints/default.u; each micro-batch applies what commits of default.t changed in the query's result
INSERT INTO u /*+ OPTIONS('available-now' = 'true') */ SELECT id, v FROM t LIMIT 1 OFFSET 1;
--> InvalidInputError: the query reads changes of default.t, and its rows would not tell insertions from deletions. Select the column _row_kind as well, or read one snapshot of all tables but one: hint OPTIONS('execution.runtime-mode' = 'batch'). Nor can its result be kept up to date from the commits of its tables: OFFSET skips rows that the answer does not hold, so the rows that a change removes from its result are not known. A materialized table compares the result with its own rows: CREATE MATERIALIZED TABLE ... AS SELECT
INSERT INTO u /*+ OPTIONS('available-now' = 'true') */ SELECT row_number() OVER (ORDER BY id), v FROM t;
--> InvalidInputError: the query reads changes of default.t, and its rows would not tell insertions from deletions. Select the column _row_kind as well, or read one snapshot of all tables but one: hint OPTIONS('execution.runtime-mode' = 'batch'). Nor can its result be kept up to date from the commits of its tables: a window without PARTITION BY reads all rows, so the rows that a change removes from its result are not known. A materialized table compares the result with its own rows: CREATE MATERIALIZED TABLE ... AS SELECT
INSERT INTO u /*+ OPTIONS('available-now' = 'true', 'query-name' = 'both') */ SELECT id, v FROM t UNION ALL SELECT id, v FROM t;
--> default.u: stream <uuid> runs from <warehouse>/checkpoints/both; each micro-batch applies what commits of default.t changed in the query's result
INSERT INTO u /*+ OPTIONS('available-now' = 'true') */ SELECT id, v FROM t WHERE id IN (SELECT id FROM u);
--> InvalidInputError: line 1, column 56: Invalid subquery: Streaming query is not allowed in subquery expressions
-->   INSERT INTO u /*+ OPTIONS('available-now' = 'true') */ SELECT id, v FROM t WHERE id IN (SELECT id FROM u)
-->                                                          ^
