#include "stores/redis/promises.hpp"

namespace holdfast::stores::redis {

guarantees promises_of_server(reach from) {
  guarantees all;
  all.storage = guarantees::storage_kind::single;
  all.shared_between_processes = true;
  all.shared_between_hosts = from == reach::network;
  all.tokens_survive_data_loss = true;
  all.fifo = true;
  all.summary =
      "one Redis server: exclusion while it keeps its data and clocks run alike; tokens increase "
      "also when it comes back empty or with old data";
  return all;
}

guarantees promises_of_cluster() {
  auto all = promises_of_server(reach::network);
  all.summary =
      "a Redis cluster: exclusion while masters keep their data and clocks run alike; a master "
      "that "
      "is replaced takes with it what its replica had not got yet; tokens increase all the same";
  return all;
}

guarantees promises_of_master() {
  auto all = promises_of_server(reach::network);
  all.summary =
      "one Redis master with replicas: exclusion while no failover loses what the master had not "
      "sent to the replica that takes over; tokens increase across failovers";
  return all;
}

}  // namespace holdfast::stores::redis
