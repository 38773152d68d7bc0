// The family of locks: one holder, one owner again and again, many readers, so many at a time,
// all that have counted, several locks at once. Usage: family [store URL]
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include <holdfast/holdfast.hpp>

using namespace std::chrono_literals;

namespace {

std::vector<std::string> config{"default"};

void ship() { std::cout << "shipped\n"; }
void show(const std::string& what) { std::cout << what << '\n'; }
void transfer(holdfast::fencing_token from, holdfast::fencing_token to) {
  std::cout << "transferred under " << from << " and " << to << '\n';
}

void once(holdfast::client& client) {
  auto orders = client.mutex("orders/42");
  {
    std::scoped_lock guard{orders};
    ship();
  }
}

void again(holdfast::client& client) {
  auto orders = client.recursive_mutex("orders/43");
  std::scoped_lock outer{orders};
  {
    std::scoped_lock inner{orders};  // counted here: no request
    ship();
  }
}

void readers_and_a_writer(holdfast::client& client) {
  auto settings = client.shared_mutex("settings");
  {
    std::shared_lock reading{settings};
    show(config.back());
  }
  auto writing = settings.acquire(5s);
  config.push_back("changed");
  if (settings.downgrade(writing)) show(config.back());  // a reader now: others read, too
}

void so_many_at_a_time(holdfast::client& client) {
  auto encoders = client.semaphore("encoders", 4);
  auto slot = encoders.acquire(5s);     // one of four
  auto two = encoders.acquire(2U, 5s);  // two more, both or none
  show("encoding");
}

void when_all_have_counted(holdfast::client& client) {
  auto tested = client.latch("build/4711/tested", 3);
  tested.count_down("unit");  // each of three jobs, its own part
  tested.count_down("unit");  // killed after that, started again: counted once
  tested.count_down("style");
  tested.count_down("interop");
  if (tested.wait(5s)) show("tested");  // the job that goes on
}

void several(holdfast::client& client) {
  auto both = holdfast::acquire_all({client.mutex("from"), client.mutex("to")}, 5s);
  transfer(both[0].token(), both[1].token());
}

}  // namespace

int main(int count, char** words) {
  try {
    holdfast::client client{count > 1 ? words[1] : "local:"};
    once(client);
    again(client);
    readers_and_a_writer(client);
    so_many_at_a_time(client);
    when_all_have_counted(client);
    several(client);
    return 0;
  } catch (const holdfast::error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
