Reading: hints, moments, system tables, names; done or refused before Spark plans.

-- case: questions that have no answer, without Spark
SELECT id FROM orders WHERE;
--> SqlSyntaxError: line 1, column 23: in the query: 'WHERE' is incomplete
-->   SELECT id FROM orders WHERE
-->                         ^
SELECT id FROM orders GROUP item;
--> SqlSyntaxError: line 1, column 29: in the query: Invalid expression / Unexpected token, at 'item'
-->   SELECT id FROM orders GROUP item
-->                               ^
SELECT id /*+ OPTIONS('log.scan' = 'latest') */ FROM orders;
--> SqlSyntaxError: line 1, column 11: a hint /*+ OPTIONS(...) */ has to follow the name of a table
-->   SELECT id /*+ OPTIONS('log.scan' = 'latest') */ FROM orders
-->             ^
SELECT id FROM orders /*+ OPTIONS(log.scan) */;
--> SqlSyntaxError: line 1, column 43: expected '=', a name, a number or a quoted text, found ')'
-->   SELECT id FROM orders /*+ OPTIONS(log.scan) */
-->                                             ^
SELECT 1 FROM orders; SELECT 2;
--> SqlSyntaxError: line 1, column 23: one statement was expected; use execute_script for several
-->                         SELECT 2
-->                         ^
INSRT INTO orders VALUES (1);
--> SqlSyntaxError: line 1, column 1: expected '(', ALTER, ANALYZE, CALL, COMMENT, CREATE, DELETE, DESC, DESCRIBE, DROP, EXPLAIN, FROM, INSERT, MERGE, RESET, SELECT, SET, SHOW, TRUNCATE, UPDATE, USE, VALUES or WITH, found 'INSRT'; did you mean INSERT?
-->   INSRT INTO orders VALUES (1)
-->   ^
SELECT 'no end FROM orders;
--> SqlSyntaxError: line 1, column 8: the text that begins here has no closing '
-->   SELECT 'no end FROM orders;
-->          ^

-- case: temporary views, without Spark
CREATE TEMPORARY VIEW a.b AS SELECT 1;
--> InvalidInputError: temporary view a.b: temporary views have no database; name it b
