Materialized tables: tables whose rows are the answer of a query; done or refused before Spark plans.

-- case: a life of a materialized table, without Spark
CREATE TABLE shop.orders (id BIGINT, item STRING NOT NULL, amount DECIMAL(10, 2), dt STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED);
--> table shop.orders created
USE shop;
--> database shop
SHOW MATERIALIZED TABLES IN shap;
--> NotFoundError: database shap does not exist; did you mean 'shop'?
SHOW CREATE MATERIALIZED TABLE orders;
--> InvalidInputError: table shop.orders is not a materialized table; SHOW MATERIALIZED TABLES lists those of a database
DROP MATERIALIZED TABLE orders;
--> InvalidInputError: table shop.orders is not a materialized table; SHOW MATERIALIZED TABLES lists those of a database

-- case: only refreshes change the rows and the columns, without Spark
CREATE TABLE orders (id BIGINT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.orders created
SET 'table-storage.materialized-table.definition-query' = 'SELECT 1';
--> InvalidInputError: session: option table-storage.materialized-table.definition-query is part of the definition of a materialized table, which only CREATE and ALTER MATERIALIZED TABLE set
CREATE TABLE other (id INT) WITH ('materialized-table.definition-query' = 'SELECT 1 AS id');
--> InvalidInputError: table other: option materialized-table.definition-query is part of the definition of a materialized table, which only CREATE and ALTER MATERIALIZED TABLE set
CREATE MATERIALIZED TABLE other WITH ('materialized-table.refresh-status' = 'SUSPENDED') AS SELECT id FROM orders;
--> InvalidInputError: table default.other: option materialized-table.refresh-status is part of the definition of a materialized table, which only CREATE and ALTER MATERIALIZED TABLE set
ALTER MATERIALIZED TABLE orders REFRESH;
--> InvalidInputError: table default.orders is not a materialized table; SHOW MATERIALIZED TABLES lists those of a database

-- case: its query reads tables of the catalog, without Spark
CREATE TEMPORARY TABLE scratch (id BIGINT);
--> table scratch created
CREATE MATERIALIZED TABLE m AS SELECT id FROM scratch;
--> InvalidInputError: line 1, column 47: scratch is a temporary table, which ends with the session; name a table of the catalog
-->   CREATE MATERIALIZED TABLE m AS SELECT id FROM scratch
-->                                                 ^
CREATE MATERIALIZED TABLE m AS SELECT id FROM orders VERSION AS OF 1;
--> InvalidInputError: line 1, column 47: a materialized table follows the newest rows of orders; leave the hint or AS OF out
-->   CREATE MATERIALIZED TABLE m AS SELECT id FROM orders VERSION AS OF 1
-->                                                 ^
CREATE MATERIALIZED TABLE m AS SELECT id FROM orders /*+ OPTIONS('scan.snapshot-id' = '1') */;
--> InvalidInputError: line 1, column 47: a materialized table follows the newest rows of orders; leave the hint or AS OF out
-->   CREATE MATERIALIZED TABLE m AS SELECT id FROM orders /*+ OPTIONS('scan.snapshot-id' = '1') */
-->                                                 ^
CREATE MATERIALIZED TABLE m AS SELECT * FROM orders$snapshots;
--> InvalidInputError: line 1, column 46: orders$snapshots is a branch or a system table; name the table default.orders itself
-->   CREATE MATERIALIZED TABLE m AS SELECT * FROM orders$snapshots
-->                                                ^
CREATE MATERIALIZED TABLE m AS SELECT * FROM orders$branch_dev;
--> InvalidInputError: line 1, column 46: orders$branch_dev is a branch or a system table; name the table default.orders itself
-->   CREATE MATERIALIZED TABLE m AS SELECT * FROM orders$branch_dev
-->                                                ^
