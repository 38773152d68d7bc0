-- Says what a counter of Redisson's is: a semaphore's permits that are to be had, or how many a
-- latch still waits for. One that is not there is zero.
--
-- KEYS  1 the counter
-- Gives {1 if it is zero, otherwise 0; the value}; the error HOLDFAST_KIND: it is something else
-- include parts/redisson_number.lua
return {number == 0 and 1 or 0, number}
