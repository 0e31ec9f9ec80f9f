-- Bids of each session of a bidder; a session ends after 10 s without a bid
SELECT bidder, session, count(*) AS bids, min(created) AS starts, max(created) AS ends
FROM (
  SELECT bidder, created, sum(begins) OVER (PARTITION BY bidder ORDER BY created, id) AS session
  FROM (
    SELECT
      bidder, created, id,
      CASE WHEN created - lag(created) OVER (PARTITION BY bidder ORDER BY created, id) < 10000 THEN 0 ELSE 1 END AS begins
    FROM bid
  ) AS gaps
) AS numbered
GROUP BY bidder, session
