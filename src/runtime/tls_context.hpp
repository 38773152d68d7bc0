// What a client's TLS connections have in common: whom it believes, and what it proves itself by.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <holdfast/result.hpp>

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace holdfast::runtime {

// Paths; a message may show them. The files' contents are never shown.
struct tls_settings {
  std::string ca{};           // the authorities believed: a file or a folder; empty: the system's
  std::string cert{};         // ours, with the authorities between it and the root; empty: none
  std::string key{};          // of `cert`; empty: it is in the same file
  std::string server_name{};  // whom a server has to prove to be; empty: the host connected to
  friend bool operator==(const tls_settings&, const tls_settings&) = default;
};

// Thread-safe. There is no setting that leaves out verification: `ca` may be the one certificate of
// a server that signed its own, and `server_name` is for servers reached by another name.
class tls_context {
 public:
  explicit tls_context(tls_settings settings) : settings_{std::move(settings)} {}
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;

  // For the next connection: files that were replaced are read again. If those cannot be used, what
  // was read before stays in force: a certificate that is just being written must not cut off a
  // client whose old one is still good. errc::invalid_argument: nothing usable was read yet.
  [[nodiscard]] result<std::shared_ptr<ssl_ctx_st>> current();

  // Whom the server at `host` has to prove to be.
  [[nodiscard]] const std::string& name_of(const std::string& host) const noexcept {
    return settings_.server_name.empty() ? host : settings_.server_name;
  }
  [[nodiscard]] bool is_default() const noexcept { return settings_ == tls_settings{}; }
  [[nodiscard]] bool has_certificate() const noexcept { return !settings_.cert.empty(); }

 private:
  struct version {  // of a file, as far as one can tell without reading it
    long long device = 0, inode = 0, size = 0, changed_s = 0, changed_ns = 0;
    friend bool operator==(const version&, const version&) = default;
  };
  [[nodiscard]] static version version_of(const std::string& path) noexcept;
  [[nodiscard]] std::vector<version> versions() const;

  const tls_settings settings_;
  std::mutex m_;
  // Protected by m_.
  std::shared_ptr<ssl_ctx_st> loaded_;
  std::vector<version> loaded_from_;
};

}  // namespace holdfast::runtime
