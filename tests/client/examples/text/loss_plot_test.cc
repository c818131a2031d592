#include "client/examples/text/loss_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <string>
#include <vector>

namespace text {
namespace {

LossPlot Example() {
  LossPlot plot;
  plot.title = "a < b & \"c\"";
  plot.subtitle = "subtitle";
  for (uint64_t step = 1; step <= 100; ++step) {
    plot.points.push_back({.step = step, .loss = 1 + 3 * std::exp(-static_cast<double>(step) / 30)});
  }
  plot.mark = PlotMark{.step = 40, .label = "killed"};
  return plot;
}

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Every element is closed, in order, there is one root, and no '&' or '<' is left bare. Returns what is wrong.
std::string CheckXml(const std::string& document) {
  std::vector<std::string> open;
  int num_roots = 0;
  const std::regex tag(R"(<(/?)([a-zA-Z]+)((?:\s+[a-zA-Z0-9:-]+="[^"<]*")*)\s*(/?)>)");
  const std::regex entity("&(?!(amp|lt|gt|quot);)");
  if (std::regex_search(document, entity)) return "a bare '&'";
  size_t at = 0;
  while ((at = document.find('<', at)) != std::string::npos) {
    std::smatch match;
    if (!std::regex_search(document.begin() + static_cast<ptrdiff_t>(at), document.end(), match, tag,
                           std::regex_constants::match_continuous)) {
      return "not a tag: " + document.substr(at, 80);
    }
    if (match[1].length() > 0) {
      if (open.empty() || open.back() != match[2]) return "closed in the wrong place: " + match.str();
      open.pop_back();
    } else if (match[4].length() == 0) {
      if (open.empty()) ++num_roots;
      open.push_back(match[2]);
    }
    at += match.str().size();
  }
  if (!open.empty()) return "not closed: " + open.back();
  return num_roots == 1 ? "" : "not one root";
}

TEST(LossPlotTest, Svg_IsWellFormed_AndShowsEverything) {
  const std::string svg = LossPlotSvg(Example());
  EXPECT_EQ(CheckXml(svg), "");
  // The points, and one dot in the legend.
  EXPECT_EQ(Count(svg, "<circle"), 101u);
  EXPECT_EQ(Count(svg, "<polyline"), 1u);
  EXPECT_EQ(Count(svg, "class=\"mark\""), 1u);
  for (const char* text : {"a &lt; b &amp; &quot;c&quot;", "subtitle", ">killed<", ">step<", ">loss, nats a character<",
                           ">100<", ">4<", ">1<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

TEST(LossPlotTest, Svg_EveryPointIsWithinTheAxes) {
  const std::string svg = LossPlotSvg(Example());
  const std::regex dot("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
  size_t count = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), dot), end; it != end; ++it, ++count) {
    EXPECT_GE(std::stod((*it)[1]), 76);
    EXPECT_LE(std::stod((*it)[1]), 920);
    EXPECT_GE(std::stod((*it)[2]), 92);
    EXPECT_LE(std::stod((*it)[2]), 474);
  }
  EXPECT_EQ(count, 101u);
}

TEST(LossPlotTest, Svg_NoPointsOrOne_IsWellFormed) {
  LossPlot plot;
  EXPECT_EQ(CheckXml(LossPlotSvg(plot)), "");
  plot.points.push_back({.step = 1, .loss = 2});
  const std::string svg = LossPlotSvg(plot);
  EXPECT_EQ(CheckXml(svg), "");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(LossPlotTest, Svg_LossThatIsNoNumber_IsLeftOut) {
  LossPlot plot = Example();
  plot.points[50].loss = std::numeric_limits<double>::quiet_NaN();
  plot.points[51].loss = std::numeric_limits<double>::infinity();
  const std::string svg = LossPlotSvg(plot);
  EXPECT_EQ(Count(svg, "<circle"), 99u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(LossPlotTest, Smoothed_IsTheMeanAround) {
  const std::vector<LossPoint> points = {{1, 0}, {2, 3}, {3, 6}, {4, 3}};
  const std::vector<LossPoint> smoothed = Smoothed(points, 1);
  ASSERT_EQ(smoothed.size(), 4u);
  EXPECT_DOUBLE_EQ(smoothed[0].loss, 0);
  EXPECT_DOUBLE_EQ(smoothed[1].loss, 3);
  EXPECT_DOUBLE_EQ(smoothed[2].loss, 4);
  EXPECT_DOUBLE_EQ(smoothed[3].loss, 4.5);
  EXPECT_EQ(smoothed[2].step, 3u);
}

}  // namespace
}  // namespace text
