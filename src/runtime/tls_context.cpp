#include "runtime/tls_context.hpp"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/fail.hpp"
#include "runtime/fd.hpp"

namespace holdfast::runtime {

namespace {

using context = std::shared_ptr<ssl_ctx_st>;

// Threads of a client that outlives main() may still read while the process exits, so OpenSSL must
// not free what they use: the system does.
void prepare_openssl() {
  static const int prepared = ::OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  static_cast<void>(prepared);
}

auto unusable(const char* what, const std::string& path, const std::string& why) {
  return fail(errc::invalid_argument, std::string{what} + " " + escape(path) + " " + why);
}

// OpenSSL would only say that it cannot.
result<void> check_readable(const char* what, const std::string& path) {
  const unique_fd opened{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (opened) return {};
  return unusable(what, path, "cannot be read: " + std::generic_category().message(errno));
}

bool is_hash_link(const std::filesystem::path& file) {
  const auto name = file.stem().string();
  return name.size() == 8 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

result<void> load_authorities(SSL_CTX& into, const std::string& ca) {
  constexpr auto what = "the certificate authorities (ca=)";
  if (ca.empty()) {
    ::SSL_CTX_set_default_verify_paths(&into);
    return {};
  }
  if (auto ok = check_readable(what, ca); !ok) return ok;
  std::error_code error;
  if (!std::filesystem::is_directory(ca, error)) {
    if (::SSL_CTX_load_verify_file(&into, ca.c_str()) == 1) return {};
    return unusable(what, ca, "hold no certificate in PEM form");
  }
  // OpenSSL looks into a folder by the hashes of names, when it needs an authority.
  using iterator = std::filesystem::directory_iterator;
  const bool hashed = std::any_of(iterator{ca, error}, iterator{},
                                  [](const auto& one) { return is_hash_link(one.path()); });
  if (!hashed) {
    return unusable(what, ca,
                    "are a folder that OpenSSL finds nothing in: run `openssl rehash` on it, or "
                    "name a file");
  }
  if (::SSL_CTX_load_verify_dir(&into, ca.c_str()) == 1) return {};
  return unusable(what, ca, "cannot be used");
}

// Without this OpenSSL would ask for a passphrase on the terminal.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return 0;
}

result<void> load_own(SSL_CTX& into, const tls_settings& from) {
  if (from.cert.empty()) return {};
  constexpr auto what = "the client certificate (cert=)";
  constexpr auto key_is = "the client certificate's key (key=)";
  if (auto ok = check_readable(what, from.cert); !ok) return ok;
  if (::SSL_CTX_use_certificate_chain_file(&into, from.cert.c_str()) != 1) {
    return unusable(what, from.cert, "holds no certificate in PEM form");
  }
  const auto& key = from.key.empty() ? from.cert : from.key;
  if (auto ok = check_readable(key_is, key); !ok) return ok;
  bool asked = false;
  ::SSL_CTX_set_default_passwd_cb(&into, no_passphrase);
  ::SSL_CTX_set_default_passwd_cb_userdata(&into, &asked);
  const bool loaded = ::SSL_CTX_use_PrivateKey_file(&into, key.c_str(), SSL_FILETYPE_PEM) == 1;
  ::SSL_CTX_set_default_passwd_cb_userdata(&into, nullptr);
  if (asked) {
    return unusable(key_is, key,
                    "is encrypted, and there is nobody to ask for its passphrase: decrypt it "
                    "(openssl pkey) into a file that only this user may read");
  }
  const auto mismatch = ERR_GET_REASON(::ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
  if (!loaded && !mismatch) return unusable(key_is, key, "holds no private key in PEM form");
  if (loaded && ::SSL_CTX_check_private_key(&into) == 1) return {};
  return unusable(key_is, key, "does not belong to the certificate " + escape(from.cert));
}

result<context> load(const tls_settings& from) {
  prepare_openssl();
  context made{::SSL_CTX_new(::TLS_client_method()), &::SSL_CTX_free};
  if (!made) return fail(errc::store_refused, "OpenSSL has no memory, or no TLS");
  ::SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  ::SSL_CTX_set_mode(made.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // One system call for all that has come, instead of two for each record.
  ::SSL_CTX_set_read_ahead(made.get(), 1);
  ::SSL_CTX_set_session_cache_mode(made.get(), SSL_SESS_CACHE_OFF);
  // `ca` may name an authority that is itself below another, or the server's own certificate.
  ::X509_VERIFY_PARAM_set_flags(::SSL_CTX_get0_param(made.get()), X509_V_FLAG_PARTIAL_CHAIN);
  ::ERR_clear_error();
  auto ok = load_authorities(*made, from.ca);
  if (ok) ok = load_own(*made, from);
  ::ERR_clear_error();
  if (!ok) return fail(std::move(ok.error()));
  return made;
}

}  // namespace

tls_context::version tls_context::version_of(const std::string& path) noexcept {
  struct stat found {};
  if (path.empty() || ::stat(path.c_str(), &found) != 0) return {};
  return {static_cast<long long>(found.st_dev), static_cast<long long>(found.st_ino),
          static_cast<long long>(found.st_size), static_cast<long long>(found.st_mtim.tv_sec),
          static_cast<long long>(found.st_mtim.tv_nsec)};
}

std::vector<tls_context::version> tls_context::versions() const {
  return {version_of(settings_.ca), version_of(settings_.cert), version_of(settings_.key)};
}

result<std::shared_ptr<ssl_ctx_st>> tls_context::current() {
  const std::lock_guard guard{m_};
  // Before they are read: a change meanwhile is found the next time.
  auto now = versions();
  if (loaded_ && now == loaded_from_) return loaded_;
  auto fresh = load(settings_);
  if (fresh) {
    loaded_ = std::move(*fresh);
    loaded_from_ = std::move(now);
  } else if (!loaded_) {
    return fresh;
  }
  return loaded_;
}

}  // namespace holdfast::runtime
