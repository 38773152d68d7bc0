#include "support/certificates.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

namespace holdfast::test {

namespace {

using key_ptr = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
using x509_ptr = std::unique_ptr<X509, void (*)(X509*)>;
using file_ptr = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

constexpr long day_s = 24L * 3600;

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error{std::string{"certificates: "} + what};
}

key_ptr fresh_key() {
  key_ptr key{::EVP_EC_gen("P-256"), &::EVP_PKEY_free};
  check(key != nullptr, "no key");
  return key;
}

file_ptr opened(const std::string& path) {
  file_ptr file{std::fopen(path.c_str(), "we"), &std::fclose};
  check(file != nullptr, "a file cannot be written");
  return file;
}

void extend(X509& one, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, &one, &one, nullptr, nullptr, 0);
  X509_EXTENSION* made = ::X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  check(made != nullptr && ::X509_add_ext(&one, made, -1) == 1, "an extension is refused");
  ::X509_EXTENSION_free(made);
}

// `issuer`, `by`: null for one that is signed by itself.
x509_ptr certificate(const std::string& name, EVP_PKEY& key, const certificate_terms& terms,
                     const X509* issuer, EVP_PKEY* by, bool is_authority) {
  static std::atomic<long> serial{1};
  x509_ptr made{::X509_new(), &::X509_free};
  check(made != nullptr, "no memory");
  ::X509_set_version(made.get(), X509_VERSION_3);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(made.get()), serial++);
  ::X509_gmtime_adj(::X509_getm_notBefore(made.get()), terms.first_day * day_s);
  ::X509_gmtime_adj(::X509_getm_notAfter(made.get()), terms.last_day * day_s);
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  ::X509_set_issuer_name(made.get(),
                         ::X509_get_subject_name(issuer != nullptr ? issuer : made.get()));
  ::X509_set_pubkey(made.get(), &key);
  extend(*made, NID_basic_constraints, is_authority ? "critical,CA:TRUE" : "CA:FALSE");
  if (!is_authority) extend(*made, NID_subject_alt_name, terms.hosts);
  check(::X509_sign(made.get(), by != nullptr ? by : &key, ::EVP_sha256()) > 0, "not signed");
  return made;
}

void write(const std::string& path, X509& one) {
  check(::PEM_write_X509(opened(path).get(), &one) == 1, "a certificate is not written");
}

void write(const std::string& path, EVP_PKEY& key) {
  check(
      ::PEM_write_PrivateKey(opened(path).get(), &key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
      "a key is not written");
}

}  // namespace

authority::authority(const std::string& name)
    : key_{fresh_key()},
      certificate_{certificate(name, *key_, {}, nullptr, nullptr, true)},
      own_{folder_.file("authority.pem"), folder_.file("authority.key")} {
  write(own_.cert, *certificate_);
  write(own_.key, *key_);
}

authority::~authority() = default;

std::string authority::folder() const {
  const auto made = folder_.path() / "authorities";
  std::filesystem::create_directories(made);
  std::array<char, 16> hash{};
  std::snprintf(hash.data(), hash.size(), "%08lx.0", ::X509_subject_name_hash(certificate_.get()));
  write((made / hash.data()).string(), *certificate_);
  return made.string();
}

certificate_files authority::issue(const std::string& name, const certificate_terms& terms) const {
  const auto key = fresh_key();
  certificate_files files{folder_.file(name + ".pem"), folder_.file(name + ".key")};
  write(files.cert, *certificate(name, *key, terms, certificate_.get(), key_.get(), false));
  write(files.key, *key);
  return files;
}

certificate_files authority::self_signed(const std::string& name) const {
  const auto key = fresh_key();
  certificate_files files{folder_.file(name + ".pem"), folder_.file(name + ".key")};
  write(files.cert, *certificate(name, *key, {}, nullptr, nullptr, false));
  write(files.key, *key);
  return files;
}

std::string authority::encrypted(const certificate_files& of) const {
  const file_ptr from{std::fopen(of.key.c_str(), "re"), &std::fclose};
  check(from != nullptr, "a key cannot be read");
  const key_ptr key{::PEM_read_PrivateKey(from.get(), nullptr, nullptr, nullptr), &::EVP_PKEY_free};
  check(key != nullptr, "a key cannot be read");
  const auto path = of.key + ".encrypted";
  constexpr std::array<unsigned char, 6> passphrase{'s', 'e', 'c', 'r', 'e', 't'};
  check(
      ::PEM_write_PrivateKey(opened(path).get(), key.get(), ::EVP_aes_128_cbc(), passphrase.data(),
                             static_cast<int>(passphrase.size()), nullptr, nullptr) == 1,
      "a key is not written");
  return path;
}

}  // namespace holdfast::test
