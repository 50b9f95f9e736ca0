// What a training prints: a bar that is redrawn on a terminal, plain lines elsewhere.
#ifndef FLOW_RUNTIME_LAUNCH_PROGRESS_H
#define FLOW_RUNTIME_LAUNCH_PROGRESS_H

#include <cstdint>
#include <string>

namespace flow::runtime {

class Progress {
public:
  Progress(uint64_t steps, uint64_t stepsPerEpoch, uint64_t epochs, int64_t batch);

  /// A step has ended; the rate is printed as an average of the last steps.
  void step(uint64_t step, double loss, double samplesPerSecond);
  double samplesPerSecond() const { return rate_; }
  /// Redraws the bar, or prints a line when nothing was printed for a while.
  void tick();
  /// A line of its own.
  void line(const std::string &text);
  void clear();

private:
  std::string status() const;

  uint64_t steps_, stepsPerEpoch_, epochs_;
  int64_t batch_;
  bool terminal_;
  bool drawn_ = false;
  uint64_t done_ = 0, printed_ = 0;
  double loss_ = 0, rate_ = 0;
  uint64_t startNs_, lastNs_;
};

} // namespace flow::runtime

#endif
