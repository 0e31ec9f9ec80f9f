-- Average price of the winning bids of a category
SELECT category, sum(final) AS total, count(*) AS auctions
FROM (
  SELECT a.id AS auction, a.category, max(b.price) AS final
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.created BETWEEN a.created AND a.expires
  GROUP BY a.id, a.category
) AS winning
GROUP BY category
