-- Fencing inside a PostgreSQL database (13 and later): it turns away holders of a lock that have
-- been overtaken. Installed once by a role that may create schemas, and as often as one likes:
--
--   holdfast fence postgresql | psql --set ON_ERROR_STOP=1 DATABASE
--   grant usage on schema holdfast to APPLICATION;
--
--   select holdfast.admit('orders', 1795046400000001);    before the first read, as a statement of
--                                                         its own
--   select holdfast.confirm('orders', 1795046400000001);  before writes in a later transaction
--
-- Both last for their transaction: until it ends, other holders wait in their admit(). They raise
--   LF001  a later holder has been here: stop, nothing is written
--   LF002  this token was not shown before the first read: admit it, and read again
--   40001  at repeatable read or serializable: begin the transaction again, as for any other 40001
--
-- So that no write forgets it:
--   create trigger fenced before insert or update or delete or truncate on orders
--     for each statement execute function holdfast.fenced('orders');
-- or, where each row has a lock of its own, orders/1, orders/2 and so on, from its column id:
--   create trigger fenced before insert or update or delete on orders
--     for each row execute function holdfast.fenced('orders/', 'id');

begin;
set local client_min_messages = warning;  -- not a notice for each thing that is there already

create schema if not exists holdfast;

-- One row for each resource. Room beside the rows, because each is written often.
create table if not exists holdfast.fence (
  resource    text primary key,
  token       bigint not null,       -- the highest that was admitted
  admitted_in xid8 not null,         -- the transaction that showed it last
  admitted_at timestamptz not null,  -- for people
  constraint resource_bytes check (octet_length(resource) between 1 and 512),
  constraint token_range check (token between 1 and 9007199254740991)
) with (fillfactor = 50);

create or replace function holdfast.check_arguments(resource text, token bigint) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  if resource is null or octet_length(resource) not between 1 and 512 then
    raise exception 'a resource has a name of 1 to 512 bytes'
      using errcode = 'invalid_parameter_value';
  end if;
  if token is null or token not between 1 and 9007199254740991 then
    raise exception '% is no fencing token: a whole number from 1 to 9007199254740991',
      coalesce(token::text, 'null') using errcode = 'invalid_parameter_value';
  end if;
end $$;

-- Always a new version of the row, also for a token that was seen before: only then does a
-- transaction at repeatable read or serializable, whose snapshot is older, fail with 40001 instead
-- of working on what it no longer sees right.
create or replace function holdfast.admit(resource text, token bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  newest bigint;
begin
  perform holdfast.check_arguments(resource, token);
  insert into holdfast.fence as seen
    values (resource, token, pg_current_xact_id(), clock_timestamp())
    on conflict on constraint fence_pkey do update
      set token = excluded.token,
          admitted_in = excluded.admitted_in,
          admitted_at = excluded.admitted_at
      where seen.token <= excluded.token;
  if not found then
    select f.token into newest from holdfast.fence f where f.resource = admit.resource;
    raise exception 'token % for % is overtaken by the holder with token %',
      token, resource, newest
      using errcode = 'LF001', hint = 'Stop: another holder has had the lock since.';
  end if;
end $$;

create or replace function holdfast.confirm(resource text, token bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  newest bigint;
begin
  perform holdfast.check_arguments(resource, token);
  update holdfast.fence f
    set admitted_in = pg_current_xact_id(), admitted_at = clock_timestamp()
    where f.resource = confirm.resource
    returning f.token into newest;
  if newest > token then
    raise exception 'token % for % is overtaken by the holder with token %',
      token, resource, newest
      using errcode = 'LF001', hint = 'Stop: another holder has had the lock since.';
  end if;
  if newest is distinct from token then
    raise exception 'token % was not shown to % before the first read', token, resource
      using errcode = 'LF002', hint = 'Call holdfast.admit(), and read again.';
  end if;
end $$;

-- The trigger. For mistakes, not against malice.
create or replace function holdfast.fenced() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  resources text[] := '{}';
  missing text;
begin
  if tg_nargs <> (case tg_level when 'ROW' then 2 else 1 end) then
    raise exception 'trigger % on %: holdfast.fenced() takes the resource for each statement, its '
      'beginning and the column that completes it for each row', tg_name, tg_relid::regclass
      using errcode = 'invalid_parameter_value';
  end if;
  if tg_level = 'STATEMENT' then
    resources := array[tg_argv[0]];
  end if;
  if tg_level = 'ROW' and tg_op <> 'INSERT' then
    resources := resources || (tg_argv[0] || coalesce(to_jsonb(old) ->> tg_argv[1], ''));
  end if;
  if tg_level = 'ROW' and tg_op <> 'DELETE' then
    resources := resources || (tg_argv[0] || coalesce(to_jsonb(new) ->> tg_argv[1], ''));
  end if;
  select r into missing from unnest(resources) r where not exists (
    select from holdfast.fence f where f.resource = r and f.admitted_in = pg_current_xact_id());
  if found then
    raise exception 'no token was shown to % in this transaction', missing
      using errcode = 'LF002', hint = 'Call holdfast.admit() before the first read.';
  end if;
  return case when tg_op = 'DELETE' then old else new end;
end $$;

revoke all on holdfast.fence from public;
commit;
