#include "stores/etcd/transport.hpp"

#include <curl/curl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/fail.hpp"
#include "runtime/clock.hpp"

namespace holdfast::stores::etcd {

namespace {

using outcome = http_reply::outcome;

// A server that is gone without a word is noticed after this long on an idle stream.
constexpr long idle_seconds_before_probes = 10;
constexpr long seconds_between_probes = 5;

void initialise_curl() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(done);
}

// Not inherited by what the program executes.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* where) {
  return ::socket(where->family, where->socktype | SOCK_CLOEXEC, where->protocol);
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

class transport::engine {
 public:
  engine(std::vector<component_config::server> servers, bool has_tls, runtime::tls_settings tls)
      : servers_{std::move(servers)}, has_tls_{has_tls}, tls_{std::move(tls)} {
    initialise_curl();
    multi_ = curl_multi_init();
  }
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() {
    stop();
    for (auto* easy : idle_)
      curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_);
  }

  void stop() noexcept {
    {
      const std::lock_guard guard{m_};
      closed_ = true;
      stopping_ = true;
      curl_multi_wakeup(multi_);
    }
    if (thread_.joinable()) thread_.join();
  }

  std::uint64_t begin(http_request what, on_line line, on_reply done) {
    const bool is_stream = line != nullptr;
    {
      const std::lock_guard guard{m_};
      auto& count = is_stream ? streams_ : requests_;
      const bool has_room = count < (is_stream ? streams_max : requests_max);
      if (!closed_ && has_room && start()) {
        ++count;
        const auto id = ++last_id_;
        auto made = std::make_unique<exchange>();
        made->id = id;
        made->request = std::move(what);
        made->line = std::move(line);
        made->done = std::move(done);
        to_begin_.push_back(std::move(made));
        curl_multi_wakeup(multi_);
        return id;
      }
    }
    if (!is_stream)
      done({outcome::unsent, 0, {}, false, "the client is closed, or has too many requests"});
    return 0;
  }

  void close_stream(std::uint64_t id) noexcept {
    const std::lock_guard guard{m_};
    to_end_.push_back(id);
    curl_multi_wakeup(multi_);
  }

  void close() noexcept {
    const std::lock_guard guard{m_};
    closed_ = true;
    curl_multi_wakeup(multi_);
  }

  [[nodiscard]] const std::vector<component_config::server>& servers() const { return servers_; }

 private:
  struct exchange {
    std::uint64_t id = 0;
    http_request request;
    on_line line;  // empty: it is no stream
    on_reply done;
    CURL* easy = nullptr;
    curl_slist* headers = nullptr;
    curl_slist* connect_to = nullptr;
    bool is_begun = false;
    bool is_repeated = false;
    std::string body;  // of a stream: what is not a whole line yet
    std::array<char, CURL_ERROR_SIZE> error{};
  };
  using owned = std::unique_ptr<exchange>;

  // Under m_.
  bool start() {
    if (thread_.joinable()) return true;
    if (multi_ == nullptr) return false;
    try {
      thread_ = std::thread{[this] { run(); }};
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  void run() {
    for (;;) {
      std::vector<owned> fresh;
      std::vector<std::uint64_t> over;
      bool closed = false;
      {
        const std::lock_guard guard{m_};
        if (stopping_ && to_begin_.empty() && under_way_.empty()) return;
        fresh = std::exchange(to_begin_, {});
        over = std::exchange(to_end_, {});
        closed = closed_;
      }
      for (auto& one : fresh)
        add(std::move(one));
      for (const auto id : over)
        drop(id);
      if (closed) end_all();
      int running = 0;
      curl_multi_perform(multi_, &running);
      take_finished();
      if (closed && under_way_.empty()) {
        const std::lock_guard guard{m_};
        if (stopping_ && to_begin_.empty()) return;
      }
      // Ends at once if it was woken since, and for curl's own timers.
      curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
  }

  void add(owned what) {
    auto* easy = what->easy = take_handle();
    if (easy == nullptr)
      return finish(std::move(what), {outcome::unsent, 0, {}, false, "out of memory"});
    set_up(*what);
    if (curl_multi_add_handle(multi_, easy) != CURLM_OK) {
      return finish(std::move(what),
                    {outcome::unsent, 0, {}, false, "the request could not be begun"});
    }
    under_way_[easy] = std::move(what);
  }

  CURL* take_handle() {
    if (idle_.empty()) return curl_easy_init();
    auto* easy = idle_.back();
    idle_.pop_back();
    curl_easy_reset(easy);
    return easy;
  }

  void set_up(exchange& what) {
    auto* const easy = what.easy;
    const auto& where = servers_[what.request.server];
    const bool renamed = has_tls_ && !tls_.server_name.empty();
    const auto port = std::to_string(where.port);
    const auto host = bracketed(renamed ? tls_.server_name : where.host);
    const auto url = (has_tls_ ? "https://" : "http://") + host + ":" + port + what.request.path;
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    if (renamed) {
      // The certificate is for another name than the one that is connected to.
      const auto way = host + ":" + port + ":" + bracketed(where.host) + ":" + port;
      what.connect_to = curl_slist_append(nullptr, way.c_str());
      curl_easy_setopt(easy, CURLOPT_CONNECT_TO, what.connect_to);
    }
    // Sent with the headers, in one piece: a server that has both at once answers sooner.
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(what.request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, what.request.body.c_str());
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &engine::note_sending);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, &what);
    what.headers = curl_slist_append(what.headers, "Content-Type: application/json");
    what.headers = curl_slist_append(what.headers, "Expect:");
    // A member that has lost its leader ends the stream, instead of leaving it open in silence.
    if (what.line) what.headers = curl_slist_append(what.headers, "Grpc-Metadata-hasleader: true");
    if (!what.request.token.empty()) {
      const auto header = "Authorization: " + what.request.token;
      what.headers = curl_slist_append(what.headers, header.c_str());
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, what.headers);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");  // whatever the environment says
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, idle_seconds_before_probes);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, seconds_between_probes);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &open_socket);
    // A stream's connection is gone with it: one that is open stays for the request that follows.
    if (what.line) curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, what.error.data());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &engine::take_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &what);
    if (what.request.until != core::never) {
      const auto left = what.request.until - runtime::now();
      const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
      curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(ms, 1)));
    }
    if (has_tls_) set_up_tls(easy);
  }

  void set_up_tls(CURL* easy) {
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    if (!tls_.ca.empty()) {
      // A file or a folder: the one that it is not is left out.
      curl_easy_setopt(easy, is_folder(tls_.ca) ? CURLOPT_CAPATH : CURLOPT_CAINFO, tls_.ca.c_str());
      curl_easy_setopt(easy, is_folder(tls_.ca) ? CURLOPT_CAINFO : CURLOPT_CAPATH, nullptr);
    }
    if (tls_.cert.empty()) return;
    curl_easy_setopt(easy, CURLOPT_SSLCERT, tls_.cert.c_str());
    curl_easy_setopt(easy, CURLOPT_SSLKEY, (tls_.key.empty() ? tls_.cert : tls_.key).c_str());
  }

  static bool is_folder(const std::string& path);

  // Before it is sent, on whichever connection: more than once if one was found to be gone.
  static int note_sending(void* user, char*, char*, int, int) {
    auto& what = *static_cast<exchange*>(user);
    what.is_repeated = std::exchange(what.is_begun, true);
    return CURL_PREREQFUNC_OK;
  }

  static std::size_t take_bytes(char* bytes, std::size_t, std::size_t count, void* user) {
    auto& to = *static_cast<exchange*>(user);
    if (to.body.size() + count > answer_bytes_max) return 0;
    to.body.append(bytes, count);
    if (!to.line) return count;
    std::size_t from = 0;
    for (std::size_t end; (end = to.body.find('\n', from)) != std::string::npos; from = end + 1)
      to.line(std::string_view{to.body}.substr(from, end - from));
    to.body.erase(0, from);
    return count;
  }

  void take_finished() {
    int left = 0;
    while (const auto* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const auto code = message->data.result;
      auto* const easy = message->easy_handle;
      const auto at = under_way_.find(easy);
      if (at == under_way_.end()) continue;
      auto what = std::move(at->second);
      under_way_.erase(at);
      auto reply = reply_of(*what, code);
      curl_multi_remove_handle(multi_, easy);
      finish(std::move(what), std::move(reply));
    }
  }

  http_reply reply_of(exchange& what, CURLcode code) {
    http_reply reply;
    reply.is_repeated = what.is_repeated;
    if (code == CURLE_OK) {
      reply.how = outcome::answered;
      curl_easy_getinfo(what.easy, CURLINFO_RESPONSE_CODE, &reply.status);
      reply.body = std::move(what.body);
      return reply;
    }
    reply.why = escape(what.error[0] != '\0' ? what.error.data() : curl_easy_strerror(code));
    long sent = 0;
    curl_easy_getinfo(what.easy, CURLINFO_REQUEST_SIZE, &sent);
    reply.how = sent > 0 || what.is_repeated ? outcome::unanswered : outcome::unsent;
    // With TLS 1.3 a server refuses our certificate after we took the connection for made.
    const bool refused = reply.why.find("alert") != std::string::npos;
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CERTPROBLEM ||
        code == CURLE_SSL_CACERT_BADFILE || (has_tls_ && refused)) {
      reply.how = outcome::untrusted;
    }
    return reply;
  }

  void drop(std::uint64_t id) {
    const auto at = std::find_if(under_way_.begin(), under_way_.end(),
                                 [&](const auto& one) { return one.second->id == id; });
    if (at == under_way_.end()) return;
    auto what = std::move(at->second);
    under_way_.erase(at);
    curl_multi_remove_handle(multi_, what->easy);
    what->done = nullptr;
    finish(std::move(what), {});
  }

  void end_all() {
    while (!under_way_.empty()) {
      auto what = std::move(under_way_.begin()->second);
      under_way_.erase(under_way_.begin());
      curl_multi_remove_handle(multi_, what->easy);
      finish(std::move(what), {outcome::unanswered, 0, {}, false, "the client was closed"});
    }
  }

  void finish(owned what, http_reply reply) {
    curl_slist_free_all(what->headers);
    curl_slist_free_all(what->connect_to);
    if (what->easy != nullptr) idle_.push_back(what->easy);
    {
      const std::lock_guard guard{m_};
      --(what->line ? streams_ : requests_);
    }
    if (what->done) what->done(std::move(reply));
  }

  const std::vector<component_config::server> servers_;
  const bool has_tls_;
  const runtime::tls_settings tls_;
  CURLM* multi_ = nullptr;

  std::mutex m_;
  // Protected by m_.
  std::thread thread_;
  std::vector<owned> to_begin_;
  std::vector<std::uint64_t> to_end_;
  std::size_t requests_ = 0;
  std::size_t streams_ = 0;
  std::uint64_t last_id_ = 0;
  bool closed_ = false;
  bool stopping_ = false;

  // Of the thread.
  std::map<CURL*, owned> under_way_;
  std::vector<CURL*> idle_;
};

bool transport::engine::is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

transport::transport(std::vector<component_config::server> servers, bool has_tls,
                     runtime::tls_settings tls)
    : engine_{std::make_unique<engine>(std::move(servers), has_tls, std::move(tls))} {}

transport::~transport() = default;

void transport::send(http_request what, on_reply done) {
  static_cast<void>(engine_->begin(std::move(what), nullptr, std::move(done)));
}

std::uint64_t transport::open_stream(http_request what, on_line line, on_reply end) {
  return engine_->begin(std::move(what), std::move(line), std::move(end));
}

void transport::close_stream(std::uint64_t id) noexcept { engine_->close_stream(id); }
void transport::close() noexcept { engine_->close(); }
void transport::stop() noexcept { engine_->stop(); }
std::size_t transport::servers() const noexcept { return engine_->servers().size(); }

std::string transport::name_of(std::size_t server) const {
  const auto& where = engine_->servers()[server];
  return escape(bracketed(where.host)) + ":" + std::to_string(where.port);
}

}  // namespace holdfast::stores::etcd
