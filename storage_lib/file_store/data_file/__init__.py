"""One data file: its layout, writer, reader and metadata."""
