"""Options of tables, columns and catalogs: known keys, spellings, allowed changes and secrets."""
