// A resource that turns an overtaken holder away: it hears the token before the first read.
//
//   fencing [store URL, default memory:]
#include <iostream>
#include <string>

#include <holdfast/holdfast.hpp>

namespace {

holdfast::fence::gate gate;
std::string stored = "a";

std::string read() { return stored; }
void write(std::string row) { stored = std::move(row); }
std::string change(std::string row) { return row + "b"; }
void overtaken() { std::cout << "a later holder has been here: nothing written\n"; }

void update(const holdfast::lease& lease) {
  if (!gate.accept(lease.token())) return overtaken();
  auto row = read();
  if (!gate.run(lease.token(), [&] { write(change(row)); })) return overtaken();
  std::cout << "written with token " << to_string(lease.token()) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  holdfast::client client{argc > 1 ? argv[1] : "memory:"};
  auto rows = client.mutex("rows");
  auto early = rows.acquire();
  client.break_lock("rows", early.token());  // as if its holder had been paused for too long
  auto late = rows.acquire();
  update(late);
  update(early);
}
