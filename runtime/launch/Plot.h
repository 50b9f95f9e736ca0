// A line chart as a PNG file: axes, ticks with numbers, a legend.
#ifndef FLOW_RUNTIME_LAUNCH_PLOT_H
#define FLOW_RUNTIME_LAUNCH_PLOT_H

#include "runtime/device/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace flow::runtime {

struct Series {
  std::string name; /// lower-case letters; empty: not in the legend
  uint32_t color;   /// 0xRRGGBB
  bool marked;      /// a square at each point
  std::vector<double> x, y;
};

Status writePlot(const std::string &path, const std::vector<Series> &series, const char *xLabel,
                 const char *yLabel);

} // namespace flow::runtime

#endif
