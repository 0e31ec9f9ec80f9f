"""Tables without primary key: a row is its own key, and its value is how often it occurs."""
