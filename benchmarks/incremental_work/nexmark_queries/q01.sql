-- Currency conversion
SELECT id, auction, bidder, CAST(0.908 AS DECIMAL(4, 3)) * price AS price, created FROM bid
