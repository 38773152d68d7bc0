# Everything the library itself needs. The command line and the tests find their own.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# TLS (Debian: libssl-dev).
find_package(OpenSSL 3.0 REQUIRED)

# The result type of the public headers (Debian: libexpected-dev).
find_package(tl-expected CONFIG REQUIRED)
