// For LD_PRELOAD: clocks shifted by offsets that a test can change while the program runs.
// HOLDFAST_CLOCK_STEP names a file of two signed 64-bit numbers in the machine's byte order:
// microseconds to add to the wall clock, and microseconds to add to CLOCK_BOOTTIME (a suspend, as
// a program sees it). CLOCK_MONOTONIC is left alone. (libfaketime keeps redis-server from
// starting.)
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* offsets_us;

__attribute__((constructor)) static void map_offsets(void) {
  const char* path = getenv("HOLDFAST_CLOCK_STEP");
  if (path == NULL) return;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* mapped = mmap(NULL, 2 * sizeof *offsets_us, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) offsets_us = mapped;
}

// The real clock by system call: this may run before libc's own function can be looked up.
static int64_t shifted_ns(clockid_t clock) {
  struct timespec now = {0, 0};
  syscall(SYS_clock_gettime, clock, &now);
  const int64_t ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  return offsets_us == NULL ? ns : ns + offsets_us[clock == CLOCK_BOOTTIME] * 1000;
}

int clock_gettime(clockid_t clock, struct timespec* to) {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE && clock != CLOCK_BOOTTIME) {
    return (int)syscall(SYS_clock_gettime, clock, to);
  }
  const int64_t ns = shifted_ns(clock);
  to->tv_sec = ns / 1000000000;
  to->tv_nsec = ns % 1000000000;
  return 0;
}

int gettimeofday(struct timeval* restrict to, void* restrict zone) {
  (void)zone;
  const int64_t ns = shifted_ns(CLOCK_REALTIME);
  to->tv_sec = ns / 1000000000;
  to->tv_usec = ns % 1000000000 / 1000;
  return 0;
}

time_t time(time_t* to) {
  const time_t seconds = shifted_ns(CLOCK_REALTIME) / 1000000000;
  if (to != NULL) *to = seconds;
  return seconds;
}
