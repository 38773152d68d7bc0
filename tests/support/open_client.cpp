#include "support/open_client.hpp"

#include <string_view>
#include <utility>

#include "client/make_client.hpp"
#include "support/session_store.hpp"

namespace holdfast::test {

client open_client(const std::string& url, client_options options) {
  constexpr std::string_view session = "session:";
  if (url.starts_with(session)) {
    return detail::make_client(make_session_store(url.substr(session.size())), std::move(options));
  }
  return client{url, std::move(options)};
}

}  // namespace holdfast::test
