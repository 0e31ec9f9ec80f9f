-- Bids with a value of a bounded side input
SELECT b.id, b.auction, b.bidder, b.price, s.value
FROM bid AS b JOIN side_input AS s ON b.auction % 1000 = s.id
