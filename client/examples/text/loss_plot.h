// A loss curve as a picture.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_LOSS_PLOT_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_LOSS_PLOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace text {

struct LossPoint {
  uint64_t step = 0;
  double loss = 0;
};

// Something that happened behind `step`, shown as an upright line.
struct PlotMark {
  uint64_t step = 0;
  std::string label;
};

struct LossPlot {
  std::string title;
  std::string subtitle;
  // In ascending order of their steps; losses in nats a character. One that is no finite number is left out.
  std::vector<LossPoint> points;
  std::optional<PlotMark> mark;
};

// The mean of each point and of `reach` points on each side of it. At the beginning, where the loss falls fast, as many
// are taken behind it as there are before it; at the end, those that there are.
std::vector<LossPoint> Smoothed(const std::vector<LossPoint>& points, size_t reach);

// A whole SVG document: axes with labels, each point, a smoothed line, the mark. Texts may hold any UTF-8.
std::string LossPlotSvg(const LossPlot& plot);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_LOSS_PLOT_H_
