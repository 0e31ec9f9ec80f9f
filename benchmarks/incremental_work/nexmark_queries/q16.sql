-- Statistics of bids by channel and day
SELECT
  channel,
  CAST(floor(created / 86400000) AS BIGINT) AS day,
  max(CAST(floor(created / 60000) AS BIGINT) % 1440) AS last_minute,
  count(*) AS bids,
  count(CASE WHEN price < 10000 THEN 1 END) AS low_bids,
  count(DISTINCT bidder) AS bidders,
  count(DISTINCT CASE WHEN price >= 1000000 THEN bidder END) AS high_bidders,
  count(DISTINCT auction) AS auctions
FROM bid
GROUP BY channel, CAST(floor(created / 86400000) AS BIGINT)
