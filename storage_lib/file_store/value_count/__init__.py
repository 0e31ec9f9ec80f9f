"""Tables without primary key: a row is its own key, and its value is its number of occurrences."""
