"""Tables of other formats, read where they are: Delta Lake's."""
