-- Statistics of bids by day
SELECT
  CAST(floor(created / 86400000) AS BIGINT) AS day,
  count(*) AS bids,
  count(CASE WHEN price < 10000 THEN 1 END) AS low_bids,
  count(CASE WHEN price >= 10000 AND price < 1000000 THEN 1 END) AS middle_bids,
  count(CASE WHEN price >= 1000000 THEN 1 END) AS high_bids,
  count(DISTINCT bidder) AS bidders,
  count(DISTINCT auction) AS auctions
FROM bid
GROUP BY CAST(floor(created / 86400000) AS BIGINT)
