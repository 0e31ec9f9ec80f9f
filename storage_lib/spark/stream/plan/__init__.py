"""Analysis of streaming queries: how they transform changes, and which normalization their sink needs."""
