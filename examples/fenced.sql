-- One addition to a number that a lock protects, in one transaction. Run by psql as a lock's holder:
--
--   holdfast fence postgresql | psql shop; psql --file fenced_table.sql shop    (once)
--   holdfast run counter -- psql --set ON_ERROR_STOP=1 --file fenced.sql shop
\getenv token HOLDFAST_TOKEN
begin;
select holdfast.admit('counter', :token);  -- before the first read; LF001: overtaken, stop
select value from counter;
update counter set value = value + 1;
commit;
