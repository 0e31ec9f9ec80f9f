"""Tables of other formats as data frames of Spark."""
