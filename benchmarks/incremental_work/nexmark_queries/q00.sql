-- Pass through
SELECT id, auction, bidder, price, created FROM bid
