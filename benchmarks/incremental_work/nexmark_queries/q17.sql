-- Statistics of bids by auction and day
SELECT
  auction,
  CAST(floor(created / 86400000) AS BIGINT) AS day,
  count(*) AS bids,
  count(CASE WHEN price < 10000 THEN 1 END) AS low_bids,
  count(CASE WHEN price >= 1000000 THEN 1 END) AS high_bids,
  min(price) AS lowest, max(price) AS highest, sum(price) AS total
FROM bid
GROUP BY auction, CAST(floor(created / 86400000) AS BIGINT)
