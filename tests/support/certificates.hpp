// Certificates of a test's own, in files.
#pragma once

#include <memory>
#include <string>

#include "support/temp_dir.hpp"

struct evp_pkey_st;  // OpenSSL's EVP_PKEY
struct x509_st;      // X509

namespace holdfast::test {

struct certificate_files {
  std::string cert;
  std::string key;
};

struct certificate_terms {
  std::string hosts = "DNS:localhost,IP:127.0.0.1";  // as OpenSSL writes them
  int first_day = -1;                                // counted from today
  int last_day = 1;
};

// An authority and what it issues, in a folder that goes with it. Not thread-safe.
class authority {
 public:
  explicit authority(const std::string& name);
  authority(const authority&) = delete;
  authority& operator=(const authority&) = delete;
  ~authority();

  [[nodiscard]] const std::string& file() const noexcept { return own_.cert; }
  // A folder with this authority in it, as `openssl rehash` makes it.
  [[nodiscard]] std::string folder() const;
  // A certificate and its key; what was issued by this name before is replaced.
  [[nodiscard]] certificate_files issue(const std::string& name,
                                        const certificate_terms& terms = {}) const;
  // One that is signed by itself.
  [[nodiscard]] certificate_files self_signed(const std::string& name) const;
  // The key, encrypted with a passphrase.
  [[nodiscard]] std::string encrypted(const certificate_files& of) const;
  [[nodiscard]] const temp_dir& where() const noexcept { return folder_; }

 private:
  temp_dir folder_;
  std::unique_ptr<evp_pkey_st, void (*)(evp_pkey_st*)> key_;
  std::unique_ptr<x509_st, void (*)(x509_st*)> certificate_;
  certificate_files own_;
};

}  // namespace holdfast::test
