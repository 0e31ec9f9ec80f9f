-- Calculation: time of day, and how often a letter occurs
SELECT
  id, auction, bidder, CAST(0.908 AS DECIMAL(4, 3)) * price AS price,
  CASE
    WHEN CAST(floor(created / 3600000) AS BIGINT) % 24 BETWEEN 8 AND 18 THEN 'dayTime'
    WHEN CAST(floor(created / 3600000) AS BIGINT) % 24 <= 6 OR CAST(floor(created / 3600000) AS BIGINT) % 24 >= 20 THEN 'nightTime'
    ELSE 'otherTime'
  END AS time_of_bid,
  length(url) - length(replace(url, 'c', '')) AS letters
FROM bid
WHERE price > 1000 AND price < 50000000
