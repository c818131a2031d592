#include "client/examples/text/loss_plot.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace text {
namespace {

// Lengths are SVG user units.
constexpr double kWidth = 960, kHeight = 540;
constexpr double kLeft = 76, kRight = 920, kTop = 92, kBottom = 474;
constexpr size_t kSmoothingReach = 8;

constexpr char kStyle[] = R"(<style>
text { font-family: "DejaVu Sans", "Helvetica", "Arial", sans-serif; font-size: 13px; fill: #444; }
.title { font-size: 19px; font-weight: bold; fill: #1b1f24; }
.subtitle { font-size: 13px; fill: #667; }
.grid { stroke: #e6e8eb; }
.axis { stroke: #8a9099; }
.raw { fill: #2f6fde; fill-opacity: 0.38; }
.smooth { fill: none; stroke: #1c4fb0; stroke-width: 2.5; stroke-linejoin: round; }
.end { fill: #1c4fb0; font-weight: bold; }
.mark { stroke: #c5372c; stroke-width: 1.5; stroke-dasharray: 6 4; }
.marktext { fill: #c5372c; }
</style>
)";

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Text(double x, double y, const std::string& anchor, const std::string& style, const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", x, y, anchor, style,
                         Escaped(text));
}

std::string Line(double x1, double y1, double x2, double y2, const std::string& style) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2,
                         style);
}

std::string Dot(double x, double y, double radius, const std::string& style) {
  return absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" class=\"%s\"/>\n", x, y, radius, style);
}

// One axis: from `low` to `high` in the data, with a tick at each multiple of `tick`.
struct Scale {
  double low, high, tick;
  double at_low, at_high;

  // Widened to whole ticks, of which there are at most `num_ticks`, each 1, 2 or 5 times a power of ten.
  static Scale Covering(double low, double high, double num_ticks, double at_low, double at_high) {
    const double rough = std::max(high - low, 1e-6) / num_ticks;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double tick = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0}) {
      if (factor * power >= rough) tick = factor * power;
    }
    const double first = std::floor(low / tick) * tick;
    return {first, std::max(std::ceil(high / tick) * tick, first + tick), tick, at_low, at_high};
  }

  double At(double value) const { return at_low + (value - low) / (high - low) * (at_high - at_low); }
  int num_ticks() const { return static_cast<int>(std::lround((high - low) / tick)); }
  double Tick(int i) const { return low + i * tick; }
};

std::string Axes(const Scale& x, const Scale& y) {
  std::string svg;
  for (int i = 0; i <= y.num_ticks(); ++i) {
    const double at = y.At(y.Tick(i));
    absl::StrAppend(&svg, Line(kLeft, at, kRight, at, "grid"),
                    Text(kLeft - 10, at + 4.5, "end", "", absl::StrFormat("%g", y.Tick(i))));
  }
  for (int i = 0; i <= x.num_ticks(); ++i) {
    const double at = x.At(x.Tick(i));
    absl::StrAppend(&svg, Line(at, kBottom, at, kBottom + 5, "axis"),
                    Text(at, kBottom + 22, "middle", "", absl::StrFormat("%g", x.Tick(i))));
  }
  absl::StrAppend(
      &svg, Line(kLeft, kBottom, kRight, kBottom, "axis"), Line(kLeft, kTop, kLeft, kBottom, "axis"),
      Text((kLeft + kRight) / 2, kBottom + 48, "middle", "", "step"),
      absl::StrFormat("<text transform=\"translate(24 %.1f) rotate(-90)\" text-anchor=\"middle\">loss, nats "
                      "a character</text>\n",
                      (kTop + kBottom) / 2));
  return svg;
}

std::string Curve(const std::vector<LossPoint>& points, const Scale& x, const Scale& y) {
  std::string svg;
  for (const LossPoint& point : points) {
    absl::StrAppend(&svg, Dot(x.At(static_cast<double>(point.step)), y.At(point.loss), 2.2, "raw"));
  }
  const std::vector<LossPoint> smoothed = Smoothed(points, kSmoothingReach);
  absl::StrAppend(&svg, "<polyline class=\"smooth\" points=\"");
  for (const LossPoint& point : smoothed) {
    absl::StrAppendFormat(&svg, "%.1f,%.1f ", x.At(static_cast<double>(point.step)), y.At(point.loss));
  }
  const LossPoint& end = smoothed.back();
  absl::StrAppend(&svg, "\"/>\n",
                  Text(x.At(static_cast<double>(end.step)) - 4, y.At(end.loss) - 16, "end", "end",
                       absl::StrFormat("%.2f", end.loss)));
  return svg;
}

std::string Mark(const PlotMark& mark, const Scale& x) {
  const double at = x.At(static_cast<double>(mark.step));
  // The label is on the side that has more room.
  const bool on_left = at > (kLeft + kRight) / 2;
  return absl::StrCat(Line(at, kTop, at, kBottom, "mark"),
                      Text(at + (on_left ? -10 : 10), kTop + 78, on_left ? "end" : "start", "marktext", mark.label));
}

std::string Legend() {
  const double left = kRight - 210, top = kTop + 14;
  return absl::StrCat(
      Dot(left + 14, top, 3, "raw"), Text(left + 36, top + 4.5, "start", "", "each step, mean of ranks"),
      Line(left, top + 22, left + 28, top + 22, "smooth"),
      Text(left + 36, top + 26.5, "start", "", absl::StrCat("mean over ", 2 * kSmoothingReach + 1, " steps")));
}

}  // namespace

std::vector<LossPoint> Smoothed(const std::vector<LossPoint>& points, size_t reach) {
  std::vector<LossPoint> smoothed;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t around = std::min(reach, i);
    const auto first = points.begin() + static_cast<ptrdiff_t>(i - around);
    const auto last = points.begin() + static_cast<ptrdiff_t>(std::min(points.size(), i + around + 1));
    const double sum =
        std::accumulate(first, last, 0.0, [](double sum, const LossPoint& point) { return sum + point.loss; });
    smoothed.push_back({.step = points[i].step, .loss = sum / static_cast<double>(last - first)});
  }
  return smoothed;
}

std::string LossPlotSvg(const LossPlot& plot) {
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\">\n",
      kWidth, kHeight, kWidth, kHeight);
  absl::StrAppend(&svg, "<title>", Escaped(plot.title), "</title>\n", kStyle,
                  "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
                  Text(kLeft, 40, "start", "title", plot.title), Text(kLeft, 64, "start", "subtitle", plot.subtitle));
  std::vector<LossPoint> points;
  std::copy_if(plot.points.begin(), plot.points.end(), std::back_inserter(points),
               [](const LossPoint& point) { return std::isfinite(point.loss); });
  if (!points.empty()) {
    const auto [least, most] = std::minmax_element(
        points.begin(), points.end(), [](const LossPoint& a, const LossPoint& b) { return a.loss < b.loss; });
    const Scale x = Scale::Covering(0, static_cast<double>(points.back().step), 8, kLeft, kRight);
    const Scale y = Scale::Covering(least->loss, most->loss, 8, kBottom, kTop);
    absl::StrAppend(&svg, Axes(x, y), Legend());
    if (plot.mark.has_value()) absl::StrAppend(&svg, Mark(*plot.mark, x));
    absl::StrAppend(&svg, Curve(points, x, y));
  }
  return svg + "</svg>\n";
}

}  // namespace text
