"""One operator per file; each calls one thing of the library and returns a small JSON value."""
