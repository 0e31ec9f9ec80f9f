"""Systems that the file store is compared with, each behind the interface in ``system.py``."""
