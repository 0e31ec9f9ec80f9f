"""The systems that the FileStore is measured against, each behind the same verbs (``system.py``)."""
