-- Questions that SQLite, DuckDB and Spark answer alike, each up to an empty line.

SELECT count(*) AS n, min(ts) AS first_ts, max(ts) AS last_ts, sum(dur) AS total FROM slices

SELECT category, name, count(*) AS n, sum(dur) AS total FROM slices
GROUP BY category, name ORDER BY total DESC, category, name LIMIT 20

SELECT ts, dur, name, process, thread FROM slices WHERE name = 'raster tile' ORDER BY dur DESC, ts LIMIT 10

SELECT outside.name AS outer_name, inside.name AS inner_name, count(*) AS n
FROM slices inside JOIN slices outside ON inside.parent_id = outside.id
GROUP BY outside.name, inside.name ORDER BY n DESC, outer_name, inner_name

SELECT depth, count(*) AS n, sum(self_dur) AS own FROM slices WHERE depth IS NOT NULL GROUP BY depth ORDER BY depth

SELECT name, series, count(*) AS n, min(value) AS low, max(value) AS high, sum(integer) AS total
FROM counters GROUP BY name, series ORDER BY name, series

SELECT phase, count(*) AS n, count(DISTINCT flow_id) AS flows FROM flows GROUP BY phase ORDER BY phase

SELECT t.process, t.thread, count(*) AS n FROM threads t JOIN slices s ON s.thread_id = t.id
GROUP BY t.process, t.thread ORDER BY n DESC, t.process, t.thread

WITH gaps AS (
  SELECT name, ts - lag(ts) OVER (PARTITION BY thread_id, name ORDER BY ts, id) AS gap FROM slices WHERE depth = 0
)
SELECT name, count(gap) AS n, min(gap) AS shortest, max(gap) AS longest FROM gaps GROUP BY name ORDER BY name

SELECT p.name, p.generated, p.archived, p.lost, t.balanced FROM programs p CROSS JOIN traces t ORDER BY p.id
