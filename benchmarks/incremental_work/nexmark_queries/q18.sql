-- Last bid of each bidder in an auction
SELECT id, auction, bidder, price, channel, url, created
FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY created DESC, id DESC) AS place FROM bid
) AS ranked
WHERE place <= 1
