-- Winning bid of each auction
SELECT id, item_name, seller, category, bid_id, bidder, price, bid_created
FROM (
  SELECT
    a.id, a.item_name, a.seller, a.category, b.id AS bid_id, b.bidder, b.price, b.created AS bid_created,
    row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.created, b.id) AS place
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.created BETWEEN a.created AND a.expires
) AS ranked
WHERE place = 1
