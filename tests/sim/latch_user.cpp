#include "sim/latch_user.hpp"

#include <utility>

namespace holdfast::sim {

namespace {

using verb = core::counter_request::verb;

// Longer than any wait in a world that works.
constexpr core::duration patience = std::chrono::seconds{60};

}  // namespace

latch_user::latch_user(world& in, process& of, std::size_t process_index, std::uint32_t part,
                       std::uint64_t seed)
    : in_{in},
      of_{of},
      process_{process_index},
      part_{part},
      name_{of.name + ".l" + std::to_string(part)},
      random_{seed, 22} {}

void latch_user::start() {
  if (run_ < in_.the.latches) think();
}

template <class What>
void latch_user::soon(What what) {
  of_.at(of_.now() + core::duration{random_.spread(10 * microsecond, in_.the.latch_think)},
         std::move(what));
}

void latch_user::think() {
  soon([this] { count(); });
}

template <class Again>
void latch_user::failed(const failure& why, bool in_calm, Again again) {
  if (in_.trace.wanted()) in_.trace.line(name_, "hears: " + why.message);
  if (in_calm) {
    in_.judge.broken("liveness", name_ + " failed, though nothing went wrong: " + why.message);
  }
  soon(std::move(again));
}

void latch_user::count() {
  const auto before = in_.latches.begins_to_count(run_, part_);
  if (in_.trace.wanted()) in_.trace.line(name_, "counts at latch" + std::to_string(run_));
  in_.client_of(process_).count(
      run_, {verb::subtract, 1, "part" + std::to_string(part_)}, {},
      in_.unless_over([this, before, in_calm = in_.is_calm()](const auto& got) {
        if (!got) return failed(got.error(), in_calm, [this] { count(); });
        in_.latches.counted(before, part_, got->last.value);
        if (random_.chance(150)) return think();  // it counts once more
        if (random_.chance(200)) return look();
        wait();
      }));
}

void latch_user::look() {
  const auto before = in_.latches.looks(run_);
  in_.client_of(process_).count(
      run_, {verb::look, 0, {}}, {},
      in_.unless_over([this, before, in_calm = in_.is_calm()](const auto& got) {
        if (!got) return failed(got.error(), in_calm, [this] { look(); });
        in_.latches.looked(before, got->last.value);
        wait();
      }));
}

void latch_user::wait() {
  const bool impatient = random_.chance(in_.the.impatient);
  const auto most = impatient ? core::duration{random_.spread(millisecond, second)} : patience;
  in_.client_of(process_).count(
      run_, {verb::watch, 0, {}}, most,
      in_.unless_over([this, since = in_.time.now(), in_calm = in_.is_calm()](const auto& got) {
        waited(got, since, in_calm);
      }));
}

void latch_user::waited(const result<detail::counted>& got, instant since, bool in_calm) {
  if (!got) return failed(got.error(), in_calm, [this] { wait(); });
  if (got->ended != detail::counted::how::done) {
    if (in_.time.now() - since >= patience.count() && in_calm) {
      in_.judge.broken("liveness", name_ + " waited in vain, though nothing went wrong any more");
    }
    return soon([this] { wait(); });
  }
  in_.latches.told_open(run_, part_, since, in_calm);
  if (in_.trace.wanted()) in_.trace.line(name_, "sees latch" + std::to_string(run_) + " open");
  if (++run_ == in_.the.latches) return in_.worker_done();
  think();
}

}  // namespace holdfast::sim
