// For LD_PRELOAD: a wall clock that stands at what a test says. HOLDFAST_CLOCK_SET names a file of
// one signed 64-bit number in the machine's byte order, microseconds since 1970. Other clocks are
// left alone, so that the program still runs.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* wall_us;

__attribute__((constructor)) static void map_clock(void) {
  const char* path = getenv("HOLDFAST_CLOCK_SET");
  if (path == NULL) return;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void* mapped = mmap(NULL, sizeof *wall_us, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) wall_us = mapped;
}

int clock_gettime(clockid_t clock, struct timespec* to) {
  const int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (wall_us == NULL || !is_wall) return (int)syscall(SYS_clock_gettime, clock, to);
  to->tv_sec = *wall_us / 1000000;
  to->tv_nsec = *wall_us % 1000000 * 1000;
  return 0;
}

int gettimeofday(struct timeval* restrict to, void* restrict zone) {
  (void)zone;
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_REALTIME, &now);
  to->tv_sec = now.tv_sec;
  to->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* to) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != NULL) *to = now.tv_sec;
  return now.tv_sec;
}
