-- Hot items: the auctions with the most bids in each window of 10 s that begins every 2 s
WITH counted AS (
  SELECT auction, starts, count(*) AS bids
  FROM (SELECT b.auction, CAST(floor(b.created / 2000) AS BIGINT) - h.hop AS starts FROM bid AS b CROSS JOIN hop AS h) AS hopped
  GROUP BY auction, starts
)
SELECT c.auction, c.starts, c.bids
FROM counted AS c
JOIN (SELECT starts, max(bids) AS most FROM counted GROUP BY starts) AS m ON c.starts = m.starts
WHERE c.bids >= m.most
