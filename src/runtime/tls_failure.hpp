// What went wrong in TLS, in words: what it is, and what to do.
#pragma once

#include <string>

#include <holdfast/error.hpp>

struct ssl_st;  // OpenSSL's SSL

namespace holdfast::runtime {

// What is known of a session when it fails.
struct tls_peer {
  std::string server;            // whom it has to prove to be
  bool has_certificate = false;  // we have one to show
  std::string refusal{};         // why its certificate is refused; empty: it is not
};

// Has the reason noted in `peer` when the server's certificate is refused. `peer` has to live as
// long as the session.
void note_refusals(ssl_st& session, tls_peer& peer);

// Of a session that has just failed, by what OpenSSL has noted for this thread.
[[nodiscard]] failure tls_failure(const tls_peer& peer);

}  // namespace holdfast::runtime
