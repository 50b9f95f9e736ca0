#include "runtime/launch/Progress.h"

#include "runtime/device/Status.h"
#include "runtime/device/Wait.h"

#include <algorithm>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace flow::runtime {

Progress::Progress(uint64_t steps, uint64_t stepsPerEpoch, uint64_t epochs, int64_t batch)
    : steps_(steps), stepsPerEpoch_(stepsPerEpoch), epochs_(epochs), batch_(batch),
      terminal_(isatty(STDOUT_FILENO)), startNs_(nowNs()), lastNs_(startNs_) {}

void Progress::step(uint64_t step, double loss, double samplesPerSecond) {
  if (done_ == 0)
    startNs_ = nowNs() - uint64_t(double(batch_) / std::max(samplesPerSecond, 1e-9) * 1e9);
  done_ = step;
  loss_ = loss;
  rate_ = rate_ == 0 ? samplesPerSecond : 0.95 * rate_ + 0.05 * samplesPerSecond;
}

static std::string clock(double seconds) {
  uint64_t s = uint64_t(seconds + 0.5);
  if (s >= 3600)
    return format("%llu:%02llu:%02llu", static_cast<unsigned long long>(s / 3600),
                  static_cast<unsigned long long>(s / 60 % 60),
                  static_cast<unsigned long long>(s % 60));
  return format("%llu:%02llu", static_cast<unsigned long long>(s / 60),
                static_cast<unsigned long long>(s % 60));
}

std::string Progress::status() const {
  double left = double(nowNs() - startNs_) * 1e-9 / double(done_) * double(steps_ - done_);
  uint64_t epoch = (done_ - 1) / stepsPerEpoch_ + 1;
  return format("epoch %llu/%llu  step %llu/%llu  loss %.4g  %.0f samples/s  %s left",
                static_cast<unsigned long long>(epoch), static_cast<unsigned long long>(epochs_),
                static_cast<unsigned long long>(done_), static_cast<unsigned long long>(steps_),
                loss_, rate_, clock(left).c_str());
}

void Progress::tick() {
  if (done_ == 0 || done_ == printed_)
    return;
  if (!terminal_) {
    constexpr uint64_t kQuietNs = 10'000'000'000;
    if (nowNs() - lastNs_ > kQuietNs)
      line(status());
    return;
  }
  constexpr uint64_t kRedrawNs = 100'000'000;
  if (nowNs() - lastNs_ < kRedrawNs && drawn_ && done_ < steps_)
    return;
  lastNs_ = nowNs();
  // The line must not wrap: a wrapped one cannot be redrawn.
  winsize window{};
  size_t columns =
      ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col ? window.ws_col : 80;
  std::string text = status();
  size_t bar = columns > text.size() + 10 ? std::min<size_t>(24, columns - text.size() - 4) : 0;
  if (bar > 0) {
    size_t full = size_t(done_ * bar / std::max<uint64_t>(1, steps_));
    std::string drawn = std::string(full, '=') + (full < bar ? ">" : "");
    drawn.resize(bar, ' ');
    text = "[" + drawn + "] " + text;
  }
  text.resize(std::min(text.size(), columns - 1));
  printf("\r%s\033[K", text.c_str());
  fflush(stdout);
  drawn_ = true;
  printed_ = done_;
}

void Progress::line(const std::string &text) {
  clear();
  printf("%s\n", text.c_str());
  fflush(stdout);
  lastNs_ = nowNs();
  printed_ = done_;
}

void Progress::clear() {
  if (drawn_) {
    printf("\r\033[K");
    fflush(stdout);
  }
  drawn_ = false;
}

} // namespace flow::runtime
