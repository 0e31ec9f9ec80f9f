Materialized tables: tables whose rows are the answer of a query.

-- case: a table that is refreshed with those that read it
CREATE TABLE shop.orders (id BIGINT NOT NULL, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED);
--> table shop.orders created
INSERT INTO shop.orders VALUES (1, 5), (2, 7);
--> shop.orders: snapshot 1
USE shop;
--> database shop
CREATE MATERIALIZED TABLE large AS SELECT id, amount FROM orders WHERE amount > 4;
--> materialized table shop.large created, rows written: 2
ALTER MATERIALIZED TABLE large SET TARGET_LAG = DOWNSTREAM;
--> InvalidInputError: table shop.large: TARGET_LAG = DOWNSTREAM, but no materialized table reads it, so only a request would refresh it; create a materialized table that reads it first, or give it FRESHNESS = INTERVAL '5' MINUTE
CREATE MATERIALIZED TABLE total AS SELECT count(*) AS n, sum(amount) AS amount FROM large;
--> materialized table shop.total created, rows written: 1
ALTER MATERIALIZED TABLE large SET TARGET_LAG = DOWNSTREAM;
--> materialized table shop.large: freshness DOWNSTREAM
DELETE FROM orders WHERE id = 1;
--> shop.orders: snapshot 2
ALTER MATERIALIZED TABLE total REFRESH;
--> shop.total: incremental refresh, snapshot 2, rows written: 2, rows read: shop.large 1; refreshed first: shop.large (snapshot 2)
SELECT * FROM total;
--> n | amount
--> 1 | 7
CREATE MATERIALIZED TABLE ids TARGET_LAG = DOWNSTREAM AS SELECT id FROM orders;
--> materialized table shop.ids created, rows written: 1; a refresh of a materialized table that reads it refreshes it first; until there is one, nothing does
SHOW MATERIALIZED TABLES;
--> database | table | freshness | refresh_mode | status
--> shop | ids | DOWNSTREAM | AUTO | ACTIVATED
--> shop | large | DOWNSTREAM | AUTO | ACTIVATED
--> shop | total | NULL | AUTO | ACTIVATED
SELECT table_name, definition, freshness, refresh_status FROM information_schema.materialized_tables WHERE table_name = 'ids';
--> table_name | definition | freshness | refresh_status
--> ids | SELECT id FROM `shop`.orders | DOWNSTREAM | ACTIVATED

-- case: a life of a materialized table
CREATE TABLE shop.orders (id BIGINT, item STRING NOT NULL, amount DECIMAL(10, 2), dt STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED);
--> table shop.orders created
INSERT INTO shop.orders VALUES (1, 'pen', 2.50, 'mon'), (2, 'ink', 9.90, 'mon'), (3, 'pen', 2.50, 'tue');
--> shop.orders: snapshot 1
USE shop;
--> database shop
CREATE MATERIALIZED TABLE daily (PRIMARY KEY (dt, item) NOT ENFORCED)
  COMMENT 'what sells' PARTITIONED BY (dt) WITH ('bucket' = '2') FRESHNESS = INTERVAL '90' SECOND REFRESH_MODE = AUTO
AS SELECT dt, item, count(*) AS orders, sum(amount) AS turnover FROM orders GROUP BY dt, item;
--> materialized table shop.daily created, rows written: 3
SELECT * FROM daily;
--> dt | item | orders | turnover
--> mon | ink | 1 | 9.90
--> mon | pen | 1 | 2.50
--> tue | pen | 1 | 2.50
CREATE MATERIALIZED TABLE daily AS SELECT * FROM orders;
--> AlreadyExistsError: table shop.daily already exists; drop it first, or write CREATE MATERIALIZED TABLE IF NOT EXISTS
CREATE MATERIALIZED TABLE IF NOT EXISTS daily AS SELECT * FROM orders;
--> table shop.daily already exists; WARNING: it differs from the statement and was not changed: query, freshness
CREATE MATERIALIZED TABLE IF NOT EXISTS daily FRESHNESS = INTERVAL '90' SECOND
AS SELECT dt, item, count(*) AS orders, sum(amount) AS turnover FROM orders GROUP BY dt, item;
--> table shop.daily already exists
CREATE MATERIALIZED TABLE IF NOT EXISTS orders AS SELECT 1 AS one;
--> table shop.orders already exists; WARNING: it is not a materialized table and was not changed
ALTER MATERIALIZED TABLE daily REFRESH;
--> shop.daily: nothing to refresh: no source has changed
UPDATE orders SET amount = 3.00 WHERE id = 1;
--> shop.orders: snapshot 2
DELETE FROM orders WHERE id = 3;
--> shop.orders: snapshot 3
INSERT INTO orders VALUES (4, 'cup', 7.00, 'tue');
--> shop.orders: snapshot 4
SELECT * FROM daily;
--> dt | item | orders | turnover
--> mon | ink | 1 | 9.90
--> mon | pen | 1 | 2.50
--> tue | pen | 1 | 2.50
ALTER MATERIALIZED TABLE shop.daily REFRESH;
--> shop.daily: incremental refresh, snapshot 2, rows written: 3, rows read: shop.orders 4
SELECT * FROM daily;
--> dt | item | orders | turnover
--> mon | ink | 1 | 9.90
--> mon | pen | 1 | 3.00
--> tue | cup | 1 | 7.00
ALTER MATERIALIZED TABLE daily SET FRESHNESS = INTERVAL '2' HOUR;
--> materialized table shop.daily: freshness INTERVAL '2' HOUR
ALTER MATERIALIZED TABLE daily SET REFRESH_MODE = FULL;
--> materialized table shop.daily: refresh mode FULL
ALTER MATERIALIZED TABLE daily SUSPEND;
--> materialized table shop.daily suspended
SHOW MATERIALIZED TABLES;
--> database | table | freshness | refresh_mode | status
--> shop | daily | INTERVAL '2' HOUR | FULL | SUSPENDED
SHOW MATERIALIZED TABLES IN shop LIKE 'x*';
--> database | table | freshness | refresh_mode | status
SHOW CREATE MATERIALIZED TABLE daily;
--> statement
--> CREATE MATERIALIZED TABLE `shop`.`daily` (
-->   PRIMARY KEY (`dt`, `item`) NOT ENFORCED
--> )
--> COMMENT 'what sells'
--> PARTITIONED BY (`dt`)
--> WITH (
-->   'bucket' = '2',
-->   'log.system' = 'none',
-->   'partition.legacy-name' = 'false',
-->   'snapshot.num-retained.max' = '2147483647',
-->   'snapshot.num-retained.min' = '2147483647'
--> )
--> FRESHNESS = INTERVAL '2' HOUR
--> REFRESH_MODE = FULL
--> -- settings: {"spark.sql.session.timeZone": "UTC"}
--> AS SELECT dt, item, count(*) AS orders, sum(amount) AS turnover FROM `shop`.orders GROUP BY dt, item
SHOW CREATE TABLE daily;
--> statement
--> CREATE MATERIALIZED TABLE `shop`.`daily` (
-->   PRIMARY KEY (`dt`, `item`) NOT ENFORCED
--> )
--> COMMENT 'what sells'
--> PARTITIONED BY (`dt`)
--> WITH (
-->   'bucket' = '2',
-->   'log.system' = 'none',
-->   'partition.legacy-name' = 'false',
-->   'snapshot.num-retained.max' = '2147483647',
-->   'snapshot.num-retained.min' = '2147483647'
--> )
--> FRESHNESS = INTERVAL '2' HOUR
--> REFRESH_MODE = FULL
--> -- settings: {"spark.sql.session.timeZone": "UTC"}
--> AS SELECT dt, item, count(*) AS orders, sum(amount) AS turnover FROM `shop`.orders GROUP BY dt, item
ALTER MATERIALIZED TABLE daily RESUME;
--> materialized table shop.daily resumed
INSERT INTO orders VALUES (5, 'cup', 7.00, 'tue');
--> shop.orders: snapshot 5
ALTER MATERIALIZED TABLE daily REFRESH PARTITION (dt = 'tue');
--> shop.daily: full refresh (refresh mode FULL), snapshot 3, rows written: 1, rows read: shop.orders 4
SELECT * FROM daily;
--> dt | item | orders | turnover
--> mon | ink | 1 | 9.90
--> mon | pen | 1 | 3.00
--> tue | cup | 2 | 14.00
ALTER MATERIALIZED TABLE daily AS
SELECT dt, item, count(*) AS orders, sum(amount) AS turnover, max(amount) AS highest FROM orders GROUP BY dt, item;
--> materialized table shop.daily has a new query; the next refresh is a full one
ALTER MATERIALIZED TABLE daily REFRESH;
--> shop.daily: full refresh (the query was changed), snapshot 4, rows written: 3, rows read: shop.orders 4
SELECT * FROM daily;
--> dt | item | orders | turnover | highest
--> mon | ink | 1 | 9.90 | 9.90
--> mon | pen | 1 | 3.00 | 3.00
--> tue | cup | 2 | 14.00 | 7.00
DESCRIBE daily;
--> name | type | nullable | key | comment
--> dt | STRING | false | primary key, partition | NULL
--> item | STRING | false | primary key | NULL
--> orders | BIGINT | true |  | NULL
--> turnover | DECIMAL(20, 2) | true |  | NULL
--> highest | DECIMAL(10, 2) | true |  | NULL
DROP TABLE daily;
--> InvalidInputError: table shop.daily is a materialized table; write DROP MATERIALIZED TABLE shop.daily
DROP MATERIALIZED TABLE daily;
--> materialized table shop.daily dropped
DROP MATERIALIZED TABLE daily;
--> NotFoundError: table shop.daily does not exist; there are orders
DROP MATERIALIZED TABLE IF EXISTS daily;
--> materialized table shop.daily does not exist
SHOW MATERIALIZED TABLES;
--> database | table | freshness | refresh_mode | status

-- case: only refreshes change the rows and the columns
CREATE TABLE orders (id BIGINT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.orders created
CREATE MATERIALIZED TABLE big AS SELECT id, amount FROM orders WHERE amount > 5;
--> materialized table default.big created, rows written: 0
INSERT INTO big VALUES (1, 10);
--> InvalidInputError: table default.big is a materialized table: its rows are the answer of its query, so INSERT is refused. Change the tables that it reads and run ALTER MATERIALIZED TABLE default.big REFRESH, or change its query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
INSERT OVERWRITE big SELECT 1, 10;
--> InvalidInputError: table default.big is a materialized table: its rows are the answer of its query, so INSERT is refused. Change the tables that it reads and run ALTER MATERIALIZED TABLE default.big REFRESH, or change its query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
DELETE FROM big;
--> InvalidInputError: table default.big is a materialized table: its rows are the answer of its query, so DELETE is refused. Change the tables that it reads and run ALTER MATERIALIZED TABLE default.big REFRESH, or change its query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
UPDATE big SET amount = 0;
--> InvalidInputError: table default.big is a materialized table: its rows are the answer of its query, so UPDATE is refused. Change the tables that it reads and run ALTER MATERIALIZED TABLE default.big REFRESH, or change its query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
MERGE INTO big USING orders o ON big.id = o.id WHEN MATCHED THEN DELETE;
--> InvalidInputError: table default.big is a materialized table: its rows are the answer of its query, so MERGE is refused. Change the tables that it reads and run ALTER MATERIALIZED TABLE default.big REFRESH, or change its query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
TRUNCATE TABLE big;
--> InvalidInputError: table default.big is a materialized table: its rows are the answer of its query, so TRUNCATE is refused. Change the tables that it reads and run ALTER MATERIALIZED TABLE default.big REFRESH, or change its query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
ALTER TABLE big ADD COLUMN note STRING;
--> InvalidInputError: table default.big is a materialized table: its query gives its columns. Change the query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
ALTER TABLE big DROP COLUMN amount;
--> InvalidInputError: table default.big is a materialized table: its query gives its columns. Change the query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
ALTER TABLE big RENAME COLUMN amount TO price;
--> InvalidInputError: table default.big is a materialized table: its query gives its columns. Change the query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
ALTER TABLE big MODIFY amount DECIMAL(20, 0);
--> InvalidInputError: table default.big is a materialized table: its query gives its columns. Change the query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
ALTER TABLE big ADD PRIMARY KEY (amount) NOT ENFORCED;
--> InvalidInputError: table default.big is a materialized table: its query gives its columns. Change the query: ALTER MATERIALIZED TABLE default.big AS SELECT ...
ALTER TABLE big SET ('materialized-table.refresh-status' = 'SUSPENDED');
--> InvalidInputError: table default.big: option materialized-table.refresh-status is part of the definition of a materialized table, which only CREATE and ALTER MATERIALIZED TABLE set
ALTER TABLE big RESET ('materialized-table.definition-query');
--> InvalidInputError: table default.big: option materialized-table.definition-query is part of the definition of a materialized table, which only CREATE and ALTER MATERIALIZED TABLE set
COMMENT ON TABLE big IS 'big orders';
--> table default.big altered
ALTER TABLE big SET ('num-sorted-run.compaction-trigger' = '3');
--> table default.big altered
ALTER TABLE big COMPACT;
--> default.big: nothing to write
CREATE TABLE plain LIKE big;
--> table default.plain created
INSERT INTO plain VALUES (1, 10);
--> default.plain: snapshot 1
SHOW MATERIALIZED TABLES;
--> database | table | freshness | refresh_mode | status
--> default | big | NULL | AUTO | ACTIVATED
ALTER MATERIALIZED TABLE order REFRESH;
--> NotFoundError: table default.order does not exist; did you mean 'orders'?

-- case: its query reads tables of the catalog
CREATE TABLE orders (id BIGINT, amount BIGINT);
--> table default.orders created
CREATE TEMPORARY TABLE scratch (id BIGINT);
--> table scratch created
CREATE TEMPORARY VIEW big AS SELECT * FROM orders WHERE amount > 5;
--> view big created
CREATE MATERIALIZED TABLE m AS
SELECT id
FROM big;
--> InvalidInputError: line 3, column 6: big is a temporary view, which ends with the session; write its query as a common table expression: WITH big AS (SELECT ...)
-->   FROM big
-->        ^
CREATE MATERIALIZED TABLE m AS SELECT id FROM
  ordrs;
--> NotFoundError: line 2, column 3: table default.ordrs does not exist; did you mean 'orders'?
-->     ordrs
-->     ^
CREATE MATERIALIZED TABLE m AS SELECT id,
  amout FROM orders;
--> InvalidInputError: line 2, column 3: A column, variable, or function parameter with name `amout` cannot be resolved. Did you mean one of the following? [`amount`, `id`]
-->     amout FROM orders
-->     ^
CREATE MATERIALIZED TABLE m AS SELECT id, id FROM orders;
--> InvalidInputError: line 1, column 32: two columns of the result are called id; give one of them another alias
-->   CREATE MATERIALIZED TABLE m AS SELECT id, id FROM orders
-->                                  ^
CREATE MATERIALIZED TABLE m AS SELECT id, amount + 'x' FROM orders;
--> InvalidInputError: line 1, column 32: column 2 of the result has no name; give it one with AS
-->   CREATE MATERIALIZED TABLE m AS SELECT id, amount + 'x' FROM orders
-->                                  ^
CREATE MATERIALIZED TABLE m AS SELECT o.id FROM other_catalog.shop.orders o;
--> NotFoundError: line 1, column 49: unknown catalog 'other_catalog'; this session's catalog is 'dynamic_tables'
-->   CREATE MATERIALIZED TABLE m AS SELECT o.id FROM other_catalog.shop.orders o
-->                                                   ^
CREATE MATERIALIZED TABLE m AS SELECT o.id FROM dynamic_tables.default.orders o;
--> materialized table default.m created, rows written: 0
ALTER MATERIALIZED TABLE m AS SELECT id FROM m;
--> InvalidInputError: line 1, column 46: materialized table default.m can't read itself: the query reads default.m
-->   ALTER MATERIALIZED TABLE m AS SELECT id FROM m
-->                                                ^
ALTER MATERIALIZED TABLE m AS SELECT id FROM orders WHERE
  amout > 3;
--> InvalidInputError: line 2, column 3: A column, variable, or function parameter with name `amout` cannot be resolved. Did you mean one of the following? [`amount`, `id`]
-->     amout > 3
-->     ^
CREATE MATERIALIZED TABLE big AS SELECT id FROM orders;
--> AlreadyExistsError: big is a temporary view, which would hide the table; drop the view first

-- case: modes and keys
CREATE TABLE orders (id BIGINT, amount BIGINT);
--> table default.orders created
INSERT INTO orders VALUES (1, 10), (2, 10), (2, 10);
--> default.orders: snapshot 1
CREATE MATERIALIZED TABLE m REFRESH_MODE = INCREMENTAL AS SELECT id, rand() AS chance FROM orders;
--> InvalidInputError: table default.m: refresh mode INCREMENTAL does not fit its query: RAND() differs from run to run. Use AUTO or FULL
CREATE MATERIALIZED TABLE m (PRIMARY KEY (id) NOT ENFORCED) AS SELECT id, amount FROM orders;
--> InvalidInputError: table default.m: two rows of the query share the key {'id': 2}: the query gives two rows for it. Nothing of this commit was written. Choose a key for the table that tells the rows of the query apart, such as one with the source's key in it, or write into a table without a primary key; a stream that starts again needs an empty table
CREATE MATERIALIZED TABLE m (PRIMARY KEY (number) NOT ENFORCED) AS SELECT id, amount FROM orders;
--> InvalidInputError: table default.m: PRIMARY KEY (number): the query has no column 'number'; there are id, amount
SHOW TABLES;
--> database | table | temporary
--> default | orders | false
CREATE MATERIALIZED TABLE bag AS SELECT id, amount FROM orders;
--> materialized table default.bag created, rows written: 2
SELECT * FROM bag;
--> id | amount
--> 1 | 10
--> 2 | 10
--> 2 | 10
DELETE FROM orders WHERE id = 1;
--> default.orders: snapshot 2
ALTER MATERIALIZED TABLE bag REFRESH;
--> default.bag: incremental refresh, snapshot 2, rows written: 1, rows read: default.orders 1
SELECT * FROM bag;
--> id | amount
--> 2 | 10
--> 2 | 10

-- case: explaining a refresh
CREATE TABLE orders (id BIGINT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED);
--> table default.orders created
CREATE MATERIALIZED TABLE big AS SELECT id FROM orders WHERE amount > 5;
--> materialized table default.big created, rows written: 0
INSERT INTO orders VALUES (2, 10);
--> default.orders: snapshot 1
EXPLAIN REFRESH big;
--> plan
--> == Next refresh ==
--> incremental
--> by DuckDB in this process, if it is small
-->
--> == Sources ==
--> default.orders (id, amount): the empty table, the newest is snapshot 1
-->
--> == Operators ==
--> incremental: filter orders.amount > 5 (applied to the rows that changed)
--> incremental: scan default.orders (id, amount) (reads the rows that changed)
-->
--> == Delta ==
--> SELECT
-->   default_orders_delta.id AS id,
-->   default_orders_delta._weight AS _weight
--> FROM default_orders_delta
--> WHERE
-->   default_orders_delta.amount > 5
EXPLAIN REFRESH orders;
--> InvalidInputError: table default.orders is not a materialized table; SHOW MATERIALIZED TABLES lists those of a database
