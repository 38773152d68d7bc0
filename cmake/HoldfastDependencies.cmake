# Everything the library itself needs. The command line and the tests find their own.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# The result type of the public headers (Debian: libexpected-dev).
find_package(tl-expected CONFIG REQUIRED)

# The Redis protocol (Debian: libhiredis-dev, which has no CMake package).
find_package(PkgConfig REQUIRED)
pkg_check_modules(HOLDFAST_HIREDIS REQUIRED IMPORTED_TARGET hiredis>=0.14)
