Streaming by SET 'execution.runtime-mode'; done or refused before Spark plans.

-- case: changes of one table flow into another, without Spark
CREATE TABLE b (id BIGINT, w STRING, PRIMARY KEY (id) NOT ENFORCED);
--> table default.b created
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
INSERT INTO b SELECT id, upper(v) FROM a;
--> InvalidInputError: table default.b: a stream into it needs a checkpoint, which records its progress: SET 'execution.checkpointing.dir' = '<directory>' for all streams of the session, or set one for this statement, INSERT INTO default.b /*+ OPTIONS('checkpoint-location' = '<directory>') */ SELECT ...
INSERT OVERWRITE b SELECT id, v FROM a;
--> InvalidInputError: table default.b: a stream never has all rows, so it can't INSERT OVERWRITE; use INSERT INTO, or SET 'execution.runtime-mode' = 'batch'

-- case: with table.dml-sync an INSERT returns when its stream has ended, without Spark
SET 'execution.real-time' = 'maybe';
--> InvalidInputError: setting execution.real-time = 'maybe'; it has to be true or false
SET 'table.dml-sync' = 'maybe';
--> InvalidInputError: setting table.dml-sync = 'maybe'; it has to be true or false

-- case: names of streams
CREATE TABLE t (id BIGINT) WITH ('write-mode' = 'append-only');
--> table default.t created
SET 'execution.runtime-mode' = 'streeming';
--> InvalidInputError: setting execution.runtime-mode = 'streeming'; did you mean 'streaming'?
SET 'execution.runtime-mode' = 'streaming';
--> execution.runtime-mode is set
SET 'execution.checkpointing.dir' = '<warehouse>/checkpoints';
--> execution.checkpointing.dir is set
INSERT INTO t /*+ OPTIONS('query-name' = '../elsewhere') */ SELECT * FROM t;
--> InvalidInputError: table default.t: the stream's name '../elsewhere' can't be the name of its checkpoint directory; choose one without '/', or add the hint 'checkpoint-location'
SET 'pipeline.name' = '..';
--> pipeline.name is set
INSERT INTO t SELECT * FROM t;
--> InvalidInputError: table default.t: the stream's name '..' can't be the name of its checkpoint directory; choose one without '/', or add the hint 'checkpoint-location'
