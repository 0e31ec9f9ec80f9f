"""Stream reads and writes as Spark's data source API asks for them, what a stream keeps in its checkpoint, and the
driver's work alongside a stream.
"""
