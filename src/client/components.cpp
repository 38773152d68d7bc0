#include "client/components.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <string>

#include <holdfast/version.hpp>

#include "core/fail.hpp"

// Null where the program has no such component.
extern "C" {
[[gnu::weak]] const holdfast::stores::component* holdfast_component_etcd();
[[gnu::weak]] const holdfast::stores::component* holdfast_component_zookeeper();
}

namespace holdfast::detail {

namespace {

using stores::component;
using entry_point = const component* (*)();

// Of a component that was linked into the program: its target makes the linker ask for the symbol.
entry_point linked_in(std::string_view name) noexcept {
  if (name == "etcd") return &holdfast_component_etcd;
  if (name == "zookeeper") return &holdfast_component_zookeeper;
  return nullptr;
}

// A program without a dynamic linker would get a second C library with the component.
bool is_static_program() noexcept {
  const auto look = [](dl_phdr_info* info, std::size_t, void* found) {
    const auto* const end = info->dlpi_phdr + info->dlpi_phnum;
    *static_cast<bool*>(found) = std::any_of(
        info->dlpi_phdr, end, [](const auto& header) { return header.p_type == PT_INTERP; });
    return 1;  // the first one is the program itself
  };
  bool has_interpreter = false;
  ::dl_iterate_phdr(look, &has_interpreter);
  return !has_interpreter;
}

tl::unexpected<failure> missing(const std::string& name, const std::string& why) {
  return fail(errc::unsupported, "the store " + name + ":// is in a part of Holdfast that is not " +
                                     "here (" + why + "): install libholdfast_" + name +
                                     ", or link the program with holdfast::" + name + "_static");
}

result<const component*> checked(const std::string& name, const component* found) {
  if (std::string_view{found->version} == HOLDFAST_VERSION) return found;
  return fail(errc::unsupported, "libholdfast_" + name + " is of version " +
                                     escape(found->version) + ", and this is Holdfast " +
                                     HOLDFAST_VERSION + ": both must be the same");
}

std::string words_of_loader() {
  const char* const words = ::dlerror();
  return escape(words != nullptr ? words : "no reason given");
}

}  // namespace

result<const component*> find_component(std::string_view store) {
  const std::string name{store};
  if (const auto entry = linked_in(name)) return checked(name, entry());
  if (is_static_program()) return missing(name, "and a static program cannot load it");

  const auto file = "libholdfast_" + name + ".so." + std::to_string(HOLDFAST_VERSION_MAJOR) + "." +
                    std::to_string(HOLDFAST_VERSION_MINOR);
  // Never unloaded: its threads end with its stores, its code is called until then.
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return missing(name, words_of_loader());
  void* const symbol = ::dlsym(library, ("holdfast_component_" + name).c_str());
  if (symbol == nullptr) return missing(name, words_of_loader());
  return checked(name, reinterpret_cast<entry_point>(symbol)());
}

}  // namespace holdfast::detail
