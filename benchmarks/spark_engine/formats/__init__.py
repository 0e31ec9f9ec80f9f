"""The measured table formats, each behind the interface in ``table_format.py``; importable without pyarrow."""
