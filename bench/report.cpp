// The results as a table for a terminal, as JSON, and as a picture for the README.
#include <algorithm>
#include <fstream>

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

std::vector<result> read_json(const std::string& path) {
  std::vector<result> all;
  for (const auto& one : nlohmann::json::parse(std::ifstream{path})) {
    all.push_back({.name = one.at("name"),
                   .what = one.at("what"),
                   .unit = one.at("unit"),
                   .baseline_is = one.at("baseline_is"),
                   .ours = one.at("ours"),
                   .baseline = one.at("baseline"),
                   .ratio = one.at("ratio"),
                   .ratio_low = one.at("spread").at("low"),
                   .ratio_high = one.at("spread").at("high"),
                   .goal = one.at("goal"),
                   .higher_is_better = one.at("higher_is_better")});
  }
  return all;
}

namespace {

constexpr int row = 34;
constexpr int left = 250;
constexpr int width = 420;
constexpr double most = 12;  // bars beyond it are cut, and say their number

// Its own ground, so that it is readable whatever page it is on.
constexpr const char* style = R"(<style>
.ground { fill: #ffffff; stroke: #d0d7de; }
text { fill: #1f2328; font: 13px sans-serif; }
.title { font-weight: bold; font-size: 14px; }
.quiet { fill: #59636e; }
.reached { fill: #2f7d4f; }
.missed { fill: #b4632d; }
.none { fill: #8c959f; }
.goal { stroke: #1f2328; stroke-width: 2; }
.one { stroke: #59636e; stroke-dasharray: 3,3; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117; stroke: #3d444d; }
  text { fill: #f0f6fc; }
  .quiet { fill: #9198a1; }
  .goal { stroke: #f0f6fc; }
  .one { stroke: #9198a1; }
}
</style>
)";

double x_of(double ratio) { return left + std::min(ratio, most) / most * width; }

std::string bar(const result& r, int y) {
  const char* kind = r.goal == 0 ? "none" : r.reached() ? "reached" : "missed";
  std::string svg = fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n"
      "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"18\"/>\n"
      "<text x=\"{:.1f}\" y=\"{}\">{:.2f}</text>\n",
      left - 8, y + 16, r.name, kind, left, y + 2, x_of(r.ratio) - left,
      x_of(std::max(r.ratio, r.goal)) + 8, y + 16, r.ratio);
  if (r.goal > 0 && r.goal <= most) {
    svg +=
        fmt::format("<line class=\"goal\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n",
                    x_of(r.goal), y - 1, y + 23);
  }
  return svg;
}

// The cases of one direction, from `y` on, which moves below them.
std::string panel(const std::vector<result>& all, bool higher_is_better, int& y) {
  std::string bars;
  const int top = y + 34;
  int next = top + 6;
  for (const auto& r : all) {
    if (r.higher_is_better != higher_is_better) continue;
    bars += bar(r, next);
    next += row;
  }
  if (bars.empty()) return {};
  std::string svg = fmt::format(
      "<text class=\"title\" x=\"16\" y=\"{0}\">{1} is better</text>\n"
      "<text class=\"quiet\" x=\"{2:.1f}\" y=\"{0}\" text-anchor=\"middle\">1</text>\n"
      "<line class=\"one\" x1=\"{2:.1f}\" y1=\"{3}\" x2=\"{2:.1f}\" y2=\"{4}\"/>\n",
      y + 22, higher_is_better ? "More" : "Less", x_of(1), top, next);
  y = next;
  return svg + bars;
}

}  // namespace

std::string picture(const std::vector<result>& all) {
  int y = 30;
  const auto more = panel(all, true, y);
  const auto less = panel(all, false, y);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
             "{0} {1}\">\n{2}<rect class=\"ground\" x=\"0.5\" y=\"0.5\" width=\"{3}\" "
             "height=\"{4}\" rx=\"6\"/>\n<text class=\"title\" x=\"16\" y=\"26\">Ours ÷ "
             "baseline, in the same run; the upright mark is the goal</text>\n",
             left + width + 90, y + 12, style, left + width + 89, y + 11) +
         more + less + "</svg>\n";
}

}  // namespace holdfast::bench
