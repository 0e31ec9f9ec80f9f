"""Analysis of streaming queries: their effect on changes, and the normalization that their sink needs."""
