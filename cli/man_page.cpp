#include "man_page.hpp"

#include <cctype>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace holdfast::cli {
namespace {

// Text that roff shows as it is, line by line.
std::string literal(const std::string& text) {
  std::string shown = ".nf\n";
  bool starts_line = true;
  for (const char c : text) {
    if (starts_line && (c == '.' || c == '\'')) shown += "\\&";
    starts_line = c == '\n';
    if (c == '\\') {
      shown += "\\e";
    } else if (c == '-') {
      shown += "\\-";
    } else {
      shown += c;
    }
  }
  return shown + (starts_line ? "" : "\n") + ".fi\n";
}

void add_verbs(const CLI::App& app, const std::string& path, std::string& page) {
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string name = path + " " + verb->get_name();
    std::string title = name;
    for (char& c : title)
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    page += fmt::format(".SH \"{}\"\n", title) + literal(verb->help(path));
    add_verbs(*verb, name, page);
  }
}

}  // namespace

std::string man_page(const CLI::App& app, const std::string& version) {
  std::string page = fmt::format(".TH HOLDFAST 1 \"\" \"holdfast {}\"\n", version);
  page += ".SH NAME\nholdfast \\- locks between processes and machines\n.SH DESCRIPTION\n";
  page += literal(app.help());
  add_verbs(app, "holdfast", page);
  return page;
}

}  // namespace holdfast::cli
