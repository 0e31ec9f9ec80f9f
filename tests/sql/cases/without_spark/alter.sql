ALTER TABLE and maintenance; done or refused before Spark plans.

-- case: options
CREATE TABLE t (id BIGINT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.t created
ALTER TABLE t SET ('num-sorted-run.compaction-trigger' = '7', 'write-only' = 'true');
--> table default.t altered
SHOW OPTIONS FROM t LIKE '%o%';
--> option | value
--> log.system | none
--> num-sorted-run.compaction-trigger | 7
--> partition.legacy-name | false
--> snapshot.num-retained.max | 2147483647
--> snapshot.num-retained.min | 2147483647
--> write-only | true
ALTER TABLE t RESET ('write-only');
--> table default.t altered
ALTER TABLE t SET TBLPROPERTIES ('write-only' = 'true');
--> table default.t altered
ALTER TABLE t UNSET TBLPROPERTIES ('write-only');
--> table default.t altered
SHOW TBLPROPERTIES t LIKE 'w*';
--> option | value
ALTER TABLE t SET ('wrte-only' = 'true');
--> InvalidInputError: table default.t: unknown option 'wrte-only'; did you mean 'write-only'?
ALTER TABLE t SET ('merge-engine' = 'first-row');
--> InvalidInputError: table default.t: option merge-engine was fixed when the table was created, for its files and its log depend on it; create a new table
ALTER TABLE t ADD PRIMARY KEY (id) NOT ENFORCED;
--> table default.t is unchanged: it already has these properties
ALTER TABLE t SET ('bucket' = '4', 'write-only' = 'true');
--> InvalidInputError: table default.t: option bucket rewrites the whole table, option write-only changes nothing that is there; set them by two statements

-- case: other buckets, without Spark
CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2');
--> table default.t created
ALTER TABLE t SET ('bucket' = '4');
--> table default.t rewritten
ALTER TABLE t RESET ('bucket');
--> table default.t rewritten
CALL sys.rollback_to('t', snapshot => 1);
--> InvalidInputError: table default.t was rewritten after snapshot 1 was made, into other buckets or with a key, so its files can't come back. Overwrite the table with the rows of VERSION AS OF 1
ALTER TABLE t SET ('bucket' = 'many');
--> InvalidInputError: table default.t: option bucket is 'many'; set it to a number of at least 1

-- case: compaction and partitions, without Spark
CREATE TABLE t (id BIGINT, dt STRING, PRIMARY KEY (id, dt) NOT ENFORCED) PARTITIONED BY (dt) WITH ('write-only' = 'true');
--> table default.t created
ALTER TABLE t PARTITION (dtt = 'a') COMPACT;
--> InvalidInputError: table default.t has no partition column 'dtt'; did you mean 'dt'?
ALTER TABLE t PARTITION (dt) COMPACT;
--> InvalidInputError: table default.t: PARTITION (dt) lacks a value; write dt = ...
ALTER TABLE t DROP PARTITION (dt = 'a');
--> NotFoundError: table default.t has no partition {'dt': 'a'}; partitions() lists those it has. Nothing was dropped

-- case: procedures, without Spark
CREATE TABLE t (id BIGINT, dt STRING, PRIMARY KEY (id, dt) NOT ENFORCED) PARTITIONED BY (dt);
--> table default.t created
ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS (idd);
--> InvalidInputError: table default.t has no column 'idd'; did you mean 'id'?
CALL sys.tier_log('t');
--> InvalidInputError: table default.t: files and log are written together, so there is nothing to tier; tier_log is for tables with log.consistency=eventual
CALL sys.compcat('t');
--> NotFoundError: unknown procedure sys.compcat; did you mean 'compact'?
CALL sys.create_tag('t');
--> InvalidInputError: CALL create_tag(table, tag, snapshot, time_retained) lacks argument 'tag'
CALL sys.create_tag('t', 'x', snapshot => 'one');
--> InvalidInputError: CALL create_tag(table, tag, snapshot, time_retained): snapshot = 'one' is not a whole number
CALL sys.create_tag('t', 'x', 1, '1 d', 2);
--> InvalidInputError: CALL create_tag(table, tag, snapshot, time_retained) takes 4 arguments, not 5
CALL sys.create_tag('t', tga => 'x');
--> InvalidInputError: CALL create_tag(table, tag, snapshot, time_retained) has no argument 'tga'; did you mean 'tag'?
CALL sys.create_tag(tag => 'x', 't');
--> SqlSyntaxError: line 1, column 33: positional arguments have to precede named ones
-->   CALL sys.create_tag(tag => 'x', 't')
-->                                   ^
CALL sys.compact('t', 'dt:a');
--> InvalidInputError: table default.t: invalid partition 'dt:a'; write 'dt=2024-05-14,hr=1;dt=2024-05-15'

-- case: unknown options
CREATE TABLE t (id BIGINT);
--> table default.t created
ALTER TABLE t RESET ('bukcet');
--> InvalidInputError: table default.t: unknown option 'bukcet'; did you mean 'bucket'?
ALTER TABLE t RESET ('of.somebody.else');
--> table default.t altered
