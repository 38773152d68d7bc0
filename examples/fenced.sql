-- One addition to a number that a lock protects, in one transaction. Run by psql as a lock's holder:
--
--   holdfast run counter -- psql --set ON_ERROR_STOP=1 --file fenced.sql shop
--
-- Once before: `holdfast fence postgresql | psql shop`, and the table with its trigger:
--   create table counter (value bigint not null);
--   create trigger fenced before insert or update or delete or truncate on counter
--     for each statement execute function holdfast.fenced('counter');
\getenv token HOLDFAST_TOKEN
begin;
select holdfast.admit('counter', :token);  -- before the first read; LF001: overtaken, stop
select value from counter;
update counter set value = value + 1;
commit;
