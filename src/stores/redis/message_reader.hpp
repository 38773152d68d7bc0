// How callers wait for the messages of one or several connections.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/types.hpp"
#include "runtime/parker.hpp"
#include "runtime/wake_fd.hpp"
#include "stores/pause.hpp"

namespace holdfast::stores::redis {

// A connection on which messages come. One thread at a time reads: see message_reader.
class message_source {
 public:
  message_source() = default;
  message_source(const message_source&) = delete;
  message_source& operator=(const message_source&) = delete;
  virtual ~message_source() = default;

  [[nodiscard]] virtual int fd() const noexcept = 0;
  // There may be something to receive already: not to be waited for at fd().
  [[nodiscard]] virtual bool has_buffered() const noexcept = 0;
  // Receives once, and never blocks. False: there was nothing, or it is over.
  virtual bool receive() = 0;
};

// Thread-safe; must outlive its waits. There is no thread behind it: of the threads that wait, one
// reads for all, because a thread of its own would be woken first, and then wake another. Over
// streams that tell, read_now() is called for each that has something, and nobody has to read.
class message_reader {
 public:
  using sources = std::vector<std::shared_ptr<message_source>>;
  // Called under no lock of the reader's.
  struct hooks {
    // What is to be read, as of now.
    std::function<sources()> open;
    // This one may have messages, or may be over: takes them from it, and ends the waits that are
    // for them. By one thread at a time. `from` was open a moment ago, and may not be any more.
    std::function<void(message_source& from)> received;
  };

  explicit message_reader(hooks from) : hooks_{std::move(from)} {}
  message_reader(const message_reader&) = delete;
  message_reader& operator=(const message_reader&) = delete;

  // A wait, to be handed to its caller. It lasts until `until`, or until `received` ends it.
  [[nodiscard]] std::shared_ptr<pause> wait(core::time_point until, std::function<void()> done);

  // Reads what has come, and never blocks. False: another thread reads.
  bool read_now();
  // There are other sources to read than before.
  void look_again() const noexcept { wake_.wake(); }

 private:
  class message_wait;
  using lock = std::unique_lock<std::mutex>;

  void wait_on_thread(message_wait& mine);
  void sleep_and_read(message_wait& mine);
  void pass_on(lock& held);

  const hooks hooks_;
  const runtime::wake_fd wake_;  // wakes the thread that reads
  std::mutex m_;
  // Protected by m_.
  bool someone_reads_ = false;
  std::vector<std::shared_ptr<runtime::parker>> threads_;  // that wait
};

}  // namespace holdfast::stores::redis
