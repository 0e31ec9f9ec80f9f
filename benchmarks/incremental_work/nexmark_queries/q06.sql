-- Average selling price of the last 10 closed auctions of a seller
SELECT
  id, seller, expires,
  sum(final) OVER (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS total,
  count(*) OVER (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS auctions
FROM (
  SELECT a.id, a.seller, a.expires, max(b.price) AS final
  FROM auction AS a JOIN bid AS b ON a.id = b.auction
  WHERE b.created BETWEEN a.created AND a.expires
  GROUP BY a.id, a.seller, a.expires
) AS winning
