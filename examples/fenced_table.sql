-- A table that is written only by holders of the lock `counter`: what fenced.sql works on. Needs
-- the schema that `holdfast fence postgresql` prints.
create table counter (value bigint not null);
insert into counter values (0);

create trigger fenced before insert or update or delete or truncate on counter
  for each statement execute function holdfast.fenced('counter');
