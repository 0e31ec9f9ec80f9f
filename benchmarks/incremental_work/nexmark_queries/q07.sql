-- Highest bid of each window of 10 s
SELECT b.id, b.auction, b.price, b.bidder, b.created
FROM bid AS b
JOIN (
  SELECT CAST(floor(created / 10000) AS BIGINT) AS period, max(price) AS highest
  FROM bid GROUP BY CAST(floor(created / 10000) AS BIGINT)
) AS m ON b.price = m.highest AND CAST(floor(b.created / 10000) AS BIGINT) = m.period
