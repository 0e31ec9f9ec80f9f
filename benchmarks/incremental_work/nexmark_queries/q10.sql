-- Bids with the day and the minute by which files would be partitioned
SELECT
  id, auction, bidder, price, created,
  CAST(floor(created / 86400000) AS BIGINT) AS day,
  CAST(floor(created / 60000) AS BIGINT) % 1440 AS minute
FROM bid
