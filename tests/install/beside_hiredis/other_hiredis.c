// The parser's symbols of a hiredis that is not compatible with any: it reads nothing.
#include <stddef.h>

static int reader;

void* redisReaderCreate(void) { return &reader; }
void* redisReaderCreateWithFunctions(void* functions) {
  (void)functions;
  return &reader;
}
void redisReaderFree(void* which) { (void)which; }
int redisReaderFeed(void* which, const char* bytes, size_t count) {
  (void)which;
  (void)bytes;
  (void)count;
  return -1;
}
int redisReaderGetReply(void* which, void** reply) {
  (void)which;
  *reply = NULL;
  return -1;
}
void freeReplyObject(void* reply) { (void)reply; }
