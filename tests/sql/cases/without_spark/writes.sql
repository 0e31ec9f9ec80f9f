INSERT INTO and OVERWRITE; done or refused before Spark plans.

-- case: rows that do not fit, without Spark
INSERT INTO t PARTITION (dt = 'x', dt = 'y') VALUES (1, 'a', 1);
--> SqlSyntaxError: line 1, column 36: partition column 'dt' is given twice
-->   INSERT INTO t PARTITION (dt = 'x', dt = 'y') VALUES (1, 'a', 1)
-->                                      ^
INSERT INTO t /*+ BROADCAST(t) */ VALUES (1, 'a', 1, 'x');
--> SqlSyntaxError: line 1, column 19: expected OPTIONS, found 'BROADCAST'
-->   INSERT INTO t /*+ BROADCAST(t) */ VALUES (1, 'a', 1, 'x')
-->                     ^
INSERT INTO t;
--> SqlSyntaxError: line 1, column 14: the statement ends where '(', BY, FROM, PARTITION, SELECT, VALUES, WITH or a hint /*+ OPTIONS(...) */ was expected
-->   INSERT INTO t
-->                ^
INSERT t VALUES (1);
--> SqlSyntaxError: line 1, column 8: expected INTO or OVERWRITE, found 't'
-->   INSERT t VALUES (1)
-->          ^
