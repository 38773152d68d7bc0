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

# For zookeeper:// only, if it is there (Debian: libzookeeper-mt-dev, which has no CMake package).
# Programs that use it need libzookeeper-mt2.
find_path(HOLDFAST_ZOOKEEPER_INCLUDE zookeeper/zookeeper.h)
find_library(HOLDFAST_ZOOKEEPER_LIBRARY zookeeper_mt)
mark_as_advanced(HOLDFAST_ZOOKEEPER_INCLUDE HOLDFAST_ZOOKEEPER_LIBRARY)
if(HOLDFAST_ZOOKEEPER_INCLUDE AND HOLDFAST_ZOOKEEPER_LIBRARY)
  add_library(holdfast_zookeeper_mt INTERFACE IMPORTED GLOBAL)
  target_include_directories(holdfast_zookeeper_mt INTERFACE "${HOLDFAST_ZOOKEEPER_INCLUDE}")
  target_link_libraries(holdfast_zookeeper_mt INTERFACE "${HOLDFAST_ZOOKEEPER_LIBRARY}")
endif()
