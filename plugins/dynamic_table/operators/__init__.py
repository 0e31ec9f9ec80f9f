"""One operator per file; each calls one verb of the library and returns a small JSON value."""
