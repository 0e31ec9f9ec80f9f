-- The relations of INFORMATION_SCHEMA.

-- case: tables, columns and keys of the catalog are relations
CREATE TABLE shop.orders (id BIGINT COMMENT 'number of the order', dt STRING, amount DECIMAL(10, 2), double_amount AS (amount * 2), PRIMARY KEY (id, dt) NOT ENFORCED) COMMENT 'what was sold' PARTITIONED BY (dt) WITH ('fields.amount.default-value' = '0');
--> table shop.orders created
CREATE TABLE events (at TIMESTAMP(3), what STRING);
--> table default.events created
CREATE VIEW large (number, amount) COMMENT 'orders of 100 and more' AS SELECT id, amount FROM shop.orders WHERE amount >= 100;
--> view default.large created
CREATE MATERIALIZED TABLE shop.sums AS SELECT dt, sum(amount) AS amount FROM shop.orders GROUP BY dt;
--> materialized table shop.sums created, rows written: 0
SELECT * FROM information_schema.schemata ORDER BY schema_name;
--> catalog_name | schema_name
--> dynamic_tables | default
--> dynamic_tables | shop
SELECT * FROM information_schema.tables ORDER BY table_schema, table_name;
--> table_catalog | table_schema | table_name | table_type | is_insertable_into | comment
--> dynamic_tables | default | events | BASE TABLE | YES | NULL
--> dynamic_tables | default | large | VIEW | NO | orders of 100 and more
--> dynamic_tables | shop | orders | BASE TABLE | YES | what was sold
--> dynamic_tables | shop | sums | MATERIALIZED TABLE | NO | NULL
SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, comment FROM information_schema.columns ORDER BY table_schema, table_name, ordinal_position;
--> table_name | column_name | ordinal_position | column_default | is_nullable | data_type | comment
--> events | at | 1 | NULL | YES | TIMESTAMP(3) | NULL
--> events | what | 2 | NULL | YES | STRING | NULL
--> large | number | 1 | NULL | NO | BIGINT | NULL
--> large | amount | 2 | NULL | YES | DECIMAL(10, 2) | NULL
--> orders | id | 1 | NULL | NO | BIGINT | number of the order
--> orders | dt | 2 | NULL | NO | STRING | NULL
--> orders | amount | 3 | 0 | YES | DECIMAL(10, 2) | NULL
--> orders | double_amount | 4 | NULL | YES | NULL | NULL
--> sums | dt | 1 | NULL | NO | STRING | NULL
--> sums | amount | 2 | NULL | YES | DECIMAL(20, 2) | NULL
SELECT column_name, is_generated, generation_expression, partition_ordinal_position FROM dynamic_tables.INFORMATION_SCHEMA.COLUMNS WHERE table_schema = 'shop' AND table_name = 'orders' ORDER BY ordinal_position;
--> column_name | is_generated | generation_expression | partition_ordinal_position
--> id | NEVER | NULL | NULL
--> dt | NEVER | NULL | 1
--> amount | NEVER | NULL | NULL
--> double_amount | ALWAYS | amount * 2 | NULL
SELECT c.constraint_name, c.constraint_type, c.enforced, k.column_name, k.ordinal_position FROM information_schema.table_constraints c JOIN information_schema.key_column_usage k USING (constraint_schema, constraint_name) WHERE k.table_name = 'orders' ORDER BY k.ordinal_position;
--> constraint_name | constraint_type | enforced | column_name | ordinal_position
--> orders_pk | PRIMARY KEY | NO | id | 1
--> orders_pk | PRIMARY KEY | NO | dt | 2
SELECT * FROM information_schema.views;
--> table_catalog | table_schema | table_name | view_definition | check_option | is_updatable | is_insertable_into
--> dynamic_tables | default | large | SELECT id, amount FROM shop.orders WHERE amount >= 100 | NONE | NO | NO
SELECT catalog_name FROM information_schema.information_schema_catalog_name;
--> catalog_name
--> dynamic_tables
SELECT count(*) AS n FROM information_schema.tables t WHERE t.table_schema = 'shop';
--> n
--> 2

-- case: a view whose table was dropped is listed without columns
CREATE TABLE t (id INT);
--> table default.t created
CREATE VIEW lost AS SELECT id FROM t;
--> view default.lost created
DROP TABLE t;
--> table default.t dropped
SELECT table_name, table_type FROM information_schema.tables;
--> table_name | table_type
--> lost | VIEW
SELECT column_name FROM information_schema.columns;
--> column_name

-- case: rows of the catalog can be kept, but not read by what outlives a session
CREATE TABLE t (id INT);
--> table default.t created
CREATE TABLE kept AS SELECT table_name FROM information_schema.tables;
--> default.kept: snapshot 1
SELECT * FROM kept;
--> table_name
--> kept
--> t
CREATE TEMPORARY VIEW mine AS SELECT table_name FROM information_schema.tables;
--> view mine created
SELECT * FROM mine ORDER BY table_name;
--> table_name
--> kept
--> t
CREATE VIEW wrong AS SELECT table_name FROM information_schema.tables;
--> InvalidInputError: line 1, column 45: view default.wrong can't read information_schema.tables, a relation of what the catalog holds at the moment of a query; read it in a query of a session
-->   CREATE VIEW wrong AS SELECT table_name FROM information_schema.tables
-->                                               ^
CREATE MATERIALIZED TABLE wrong AS SELECT table_name FROM information_schema.tables;
--> InvalidInputError: line 1, column 59: information_schema.tables is a relation of what the catalog holds at the moment of a query; read it in a query of a session
-->   CREATE MATERIALIZED TABLE wrong AS SELECT table_name FROM information_schema.tables
-->                                                             ^
SELECT * FROM information_schema.tabels;
--> InvalidInputError: information_schema has no relation 'tabels'; did you mean 'tables'?
SELECT * FROM information_schema.tables VERSION AS OF 1;
--> InvalidInputError: information_schema.tables shows what the catalog holds now; leave hints and AS OF out
INSERT INTO information_schema.tables VALUES ('a');
--> NotFoundError: table information_schema.tables does not exist; there are none
SELECT * FROM other.information_schema.tables;
--> NotFoundError: unknown catalog 'other'; this session's catalog is 'dynamic_tables'

-- case: a database of that name hides the relations
CREATE TABLE information_schema.tables (id INT);
--> table information_schema.tables created
SELECT * FROM information_schema.tables;
--> id
SELECT * FROM information_schema.columns;
--> NotFoundError: table information_schema.columns does not exist; there are tables
