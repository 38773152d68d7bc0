# Everything the library itself needs. The command line and the tests find their own.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# TLS (Debian: libssl-dev).
find_package(OpenSSL 3.0 REQUIRED)

# The result type of the public headers (Debian: libexpected-dev).
find_package(tl-expected CONFIG REQUIRED)

# For etcd:// only, if they are there (Debian: libcurl4-openssl-dev, nlohmann-json3-dev). Programs
# that use it need libcurl4.
find_package(CURL 7.74 QUIET)
find_package(nlohmann_json CONFIG QUIET)
