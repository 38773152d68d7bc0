#include "runtime/tls_failure.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <memory>
#include <vector>

#include "core/fail.hpp"

namespace holdfast::runtime {

namespace {

// A certificate may be for thousands.
constexpr std::size_t names_shown_max = 8;

int peer_index() {
  static const int index = ::SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

std::string time_text(const ASN1_TIME* time) {
  std::tm parts{};
  std::array<char, 32> text{};
  if (::ASN1_TIME_to_tm(time, &parts) != 1) return "a time that cannot be read";
  const auto size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text.data(), size};
}

std::string text_of(const ASN1_STRING* from) {
  return escape({reinterpret_cast<const char*>(::ASN1_STRING_get0_data(from)),
                 static_cast<std::size_t>(::ASN1_STRING_length(from))});
}

// The common name, or all of it where there is none.
std::string name_text(const X509_NAME* name) {
  const int at = ::X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at >= 0) return text_of(::X509_NAME_ENTRY_get_data(::X509_NAME_get_entry(name, at)));
  std::array<char, 256> all{};
  ::X509_NAME_oneline(name, all.data(), static_cast<int>(all.size()));
  return escape(all.data());
}

std::string address_text(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_v6 = ::ASN1_STRING_length(address) == 16;
  if (!is_v6 && ::ASN1_STRING_length(address) != 4) return "?";
  ::inet_ntop(is_v6 ? AF_INET6 : AF_INET, ::ASN1_STRING_get0_data(address), text.data(),
              text.size());
  return text.data();
}

// The hosts that a certificate is for.
std::string hosts_of(const X509* certificate) {
  std::vector<std::string> all;
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names{
      static_cast<GENERAL_NAMES*>(
          ::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      &::GENERAL_NAMES_free};
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* one = sk_GENERAL_NAME_value(names.get(), i);
    if (one->type == GEN_DNS) all.push_back(text_of(one->d.dNSName));
    if (one->type == GEN_IPADD) all.push_back(address_text(one->d.iPAddress));
  }
  if (all.empty()) all.push_back(name_text(::X509_get_subject_name(certificate)));
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < names_shown_max; ++i)
    text += (i == 0 ? "" : ", ") + all[i];
  return all.size() > names_shown_max ? text + ", …" : text;
}

std::string refusal_of(const X509_STORE_CTX& looking, const std::string& server) {
  const int error = ::X509_STORE_CTX_get_error(&looking);
  const X509* const refused = ::X509_STORE_CTX_get_current_cert(&looking);
  const std::string which =
      ::X509_STORE_CTX_get_error_depth(&looking) == 0 || refused == nullptr
          ? "the server's certificate"
          : "the authority's certificate \"" + name_text(::X509_get_subject_name(refused)) + "\"";
  const std::string believe = "name its file with ca= (HOLDFAST_TLS_CA)";
  const auto from_unknown = [&](const X509_NAME* authority) {
    return "the server's certificate comes from the authority \"" + name_text(authority) +
           "\", which this client does not know: if it is the right one, " + believe;
  };
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return which + " expired on " + time_text(::X509_get0_notAfter(refused)) +
             ": it has to be renewed, or this host's clock is wrong";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return which + " is not valid before " + time_text(::X509_get0_notBefore(refused)) +
             ": wait until then, or correct this host's clock";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return which + " is for " + hosts_of(refused) + ", and not for " + escape(server) +
             ": connect by a name that it is for, or give one with server_name= "
             "(HOLDFAST_TLS_SERVER_NAME)";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return which + " is signed by itself, and this client does not know it: if it is the right " +
             "one, " + believe;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      if (refused == nullptr) break;
      return from_unknown(::X509_get_subject_name(refused));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      if (refused == nullptr) break;
      return from_unknown(::X509_get_issuer_name(refused));
    default:
      break;
  }
  return which + " is refused: " + ::X509_verify_cert_error_string(error);
}

int note(int good, X509_STORE_CTX* looking) {
  if (good == 1) return 1;
  const auto* session = static_cast<SSL*>(
      ::X509_STORE_CTX_get_ex_data(looking, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* peer = static_cast<tls_peer*>(::SSL_get_ex_data(session, peer_index()));
  peer->refusal = refusal_of(*looking, peer->server);
  return 0;
}

}  // namespace

void note_refusals(ssl_st& session, tls_peer& peer) {
  ::SSL_set_ex_data(&session, peer_index(), &peer);
  ::SSL_set_verify(&session, SSL_VERIFY_PEER, note);
}

failure tls_failure(const tls_peer& peer) {
  if (!peer.refusal.empty()) return {errc::not_trusted, peer.refusal, {}};
  const auto error = ::ERR_peek_last_error();
  switch (ERR_GET_REASON(error)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
      return {errc::incompatible,
              "the server does not speak TLS at this port: name its TLS port, or write redis:// "
              "(redlock://) for a server without TLS",
              {}};
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return {errc::incompatible,
              "the server speaks no TLS of version 1.2 or newer: allow that on the server",
              {}};
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    // What servers of TLS 1.2 say of a certificate that is missing.
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      if (peer.has_certificate) break;
      return {errc::not_trusted,
              "the server ended the handshake, as servers do that want a client certificate: give "
              "one with cert= and key= (HOLDFAST_TLS_CERT, HOLDFAST_TLS_KEY)",
              {}};
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return {errc::not_trusted,
              "the server refuses this client's certificate (cert=), because its authority is not "
              "the one that the server believes, or because of what is in it",
              {}};
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return {errc::not_trusted,
              "the server refuses this client's certificate (cert=): it has expired",
              {}};
    default:
      break;
  }
  const char* const reason = ::ERR_reason_error_string(error);
  return {errc::store_unreachable,
          std::string{"TLS failed: "} + (reason != nullptr ? reason : "no reason is known"),
          {}};
}

}  // namespace holdfast::runtime
