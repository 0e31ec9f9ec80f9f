-- Bids with the auction's columns, of one category
SELECT
  b.id, b.auction, b.bidder, b.price, b.channel, b.created,
  a.item_name, a.initial_bid, a.reserve, a.created AS auction_created, a.expires, a.seller
FROM bid AS b JOIN auction AS a ON b.auction = a.id
WHERE a.category = 10
