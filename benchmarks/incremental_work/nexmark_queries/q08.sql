-- Users that create an auction in the window of 10 s in which they joined
SELECT DISTINCT p.id, p.name, p.period
FROM (SELECT id, name, CAST(floor(created / 10000) AS BIGINT) AS period FROM person) AS p
JOIN (SELECT seller, CAST(floor(created / 10000) AS BIGINT) AS period FROM auction) AS a
  ON p.id = a.seller AND p.period = a.period
