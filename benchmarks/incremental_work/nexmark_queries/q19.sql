-- The 10 highest bids of each auction
SELECT id, auction, bidder, price, created, place
FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, id) AS place FROM bid) AS ranked
WHERE place <= 10
