// The results as a table for a terminal, as JSON, and as a picture for the README.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench.hpp"

namespace holdfast::bench {

namespace {

std::string goal_text(const result& r) {
  if (r.goal == 0) return "";
  return fmt::format("{} {:g}", r.higher_is_better ? "≥" : "≤", r.goal);
}

std::string verdict(const result& r) {
  if (r.goal == 0) return "";
  return r.reached() ? "reached" : "missed";
}

}  // namespace

std::string table(const std::vector<result>& all) {
  std::string out = fmt::format("{:<28} {:>12} {:>12} {:>7} {:>13} {:>9} {:<8} {}\n", "case",
                                "ours", "baseline", "ratio", "rounds", "goal", "", "unit");
  for (const auto& r : all) {
    // Two cells have characters of several bytes: pad by hand.
    const auto goal = goal_text(r);
    const auto goal_width = goal.empty() ? 0 : goal.size() - 2;
    out += fmt::format("{:<28} {:>12.5g} {:>12.5g} {:>7.2f} {:>6.2f}-{:<6.2f} {}{} {:<8} {}\n",
                       r.name, r.ours, r.baseline, r.ratio, r.ratio_low, r.ratio_high,
                       std::string(goal_width < 9 ? 9 - goal_width : 0, ' '), goal, verdict(r),
                       r.unit);
  }
  out += "\n";
  for (const auto& r : all) {
    out += fmt::format("{}: {}. Baseline: {}.\n", r.name, r.what, r.baseline_is);
  }
  return out;
}

std::string json(const std::vector<result>& all) {
  auto list = nlohmann::json::array();
  for (const auto& r : all) {
    list.push_back({{"name", r.name},
                    {"what", r.what},
                    {"baseline_is", r.baseline_is},
                    {"ours", r.ours},
                    {"baseline", r.baseline},
                    {"ratio", r.ratio},
                    {"unit", r.unit},
                    {"spread", {{"low", r.ratio_low}, {"high", r.ratio_high}}},
                    {"goal", r.goal},
                    {"higher_is_better", r.higher_is_better}});
  }
  return list.dump(2) + "\n";
}

std::string picture(const std::vector<result>& all) {
  constexpr int row = 34;
  constexpr int left = 230;
  constexpr int width = 420;
  constexpr double most = 12;  // bars beyond it are cut, and say their number
  const int height = row * static_cast<int>(all.size()) + 60;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"12\" y=\"22\" font-size=\"15\" font-weight=\"bold\">ours ÷ baseline, same run, "
      "two cores; a bar's tick is its goal</text>\n",
      left + width + 90, height);
  const auto x_of = [&](double ratio) { return left + std::min(ratio, most) / most * width; };
  int y = 40;
  for (const auto& r : all) {
    const char* colour = r.goal == 0 || r.reached() ? "#2f7d4f" : "#b4632d";
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - 8, y + 16,
                       r.name);
    svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"18\" fill=\"{}\"/>\n",
                       left, y + 2, x_of(r.ratio) - left, colour);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{:.2f} ×{}</text>\n", x_of(r.ratio) + 6, y + 16,
                       r.ratio, r.higher_is_better ? "" : " (less is better)");
    if (r.goal > 0 && r.goal <= most) {
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#111\" "
          "stroke-width=\"2\"/>\n",
          x_of(r.goal), y - 1, y + 23);
    }
    y += row;
  }
  svg += fmt::format(
      "<line x1=\"{0:.1f}\" y1=\"34\" x2=\"{0:.1f}\" y2=\"{1}\" stroke=\"#555\" "
      "stroke-dasharray=\"3,3\"/>\n<text x=\"{0:.1f}\" y=\"{2}\" "
      "text-anchor=\"middle\" fill=\"#555\">baseline = 1</text>\n</svg>\n",
      x_of(1), y, y + 14);
  return svg;
}

}  // namespace holdfast::bench
