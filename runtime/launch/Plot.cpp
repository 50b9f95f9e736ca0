#include "runtime/launch/Plot.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <zlib.h>

namespace flow::runtime {
namespace {

// ---- letters: 5 x 7 points, a byte per row, the low five bits from left to right ----

struct Glyph {
  char letter;
  uint8_t rows[7];
};
constexpr Glyph kFont[] = {
    {'0', {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}},
    {'1', {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'2', {0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f}},
    {'3', {0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e}},
    {'4', {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}},
    {'5', {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e}},
    {'6', {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e}},
    {'7', {0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08}},
    {'8', {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}},
    {'9', {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c}},
    {'.', {0x00, 0x00, 0x00, 0x00, 0x00, 0x0c, 0x0c}},
    {'-', {0x00, 0x00, 0x00, 0x1f, 0x00, 0x00, 0x00}},
    {'+', {0x00, 0x04, 0x04, 0x1f, 0x04, 0x04, 0x00}},
    {'a', {0x00, 0x00, 0x0e, 0x01, 0x0f, 0x11, 0x0f}},
    {'e', {0x00, 0x00, 0x0e, 0x11, 0x1f, 0x10, 0x0e}},
    {'h', {0x10, 0x10, 0x16, 0x19, 0x11, 0x11, 0x11}},
    {'i', {0x04, 0x00, 0x0c, 0x04, 0x04, 0x04, 0x0e}},
    {'l', {0x0c, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e}},
    {'n', {0x00, 0x00, 0x16, 0x19, 0x11, 0x11, 0x11}},
    {'o', {0x00, 0x00, 0x0e, 0x11, 0x11, 0x11, 0x0e}},
    {'p', {0x00, 0x00, 0x1e, 0x11, 0x1e, 0x10, 0x10}},
    {'r', {0x00, 0x00, 0x16, 0x19, 0x10, 0x10, 0x10}},
    {'s', {0x00, 0x00, 0x0e, 0x10, 0x0e, 0x01, 0x1e}},
    {'t', {0x08, 0x08, 0x1c, 0x08, 0x08, 0x09, 0x06}},
    {'v', {0x00, 0x00, 0x11, 0x11, 0x11, 0x0a, 0x04}},
    {'c', {0x00, 0x00, 0x0e, 0x10, 0x10, 0x11, 0x0e}},
};

constexpr int kWidth = 960, kHeight = 600;
constexpr int kLeft = 90, kRight = 30, kTop = 30, kBottom = 60;

class Image {
public:
  Image() : pixels_(size_t(kWidth) * kHeight * 3, 255) {}

  void blend(int x, int y, uint32_t color, double share) {
    if (x < 0 || y < 0 || x >= kWidth || y >= kHeight)
      return;
    uint8_t *p = &pixels_[(size_t(y) * kWidth + size_t(x)) * 3];
    for (int c = 0; c < 3; ++c) {
      double to = double(color >> (16 - 8 * c) & 0xff);
      p[c] = uint8_t(p[c] + (to - p[c]) * share + 0.5);
    }
  }
  void fill(int x, int y, int w, int h, uint32_t color) {
    for (int j = y; j < y + h; ++j)
      for (int i = x; i < x + w; ++i)
        blend(i, j, color, 1);
  }
  /// Each step along the longer direction colors two pixels by their nearness.
  void line(double x0, double y0, double x1, double y1, uint32_t color) {
    bool steep = std::fabs(y1 - y0) > std::fabs(x1 - x0);
    if (steep) {
      std::swap(x0, y0);
      std::swap(x1, y1);
    }
    if (x0 > x1) {
      std::swap(x0, x1);
      std::swap(y0, y1);
    }
    double slope = x1 > x0 ? (y1 - y0) / (x1 - x0) : 0;
    for (int x = int(std::lround(x0)); x <= int(std::lround(x1)); ++x) {
      double y = y0 + slope * (x - x0), base = std::floor(y), share = y - base;
      for (int k = -1; k < 2; ++k) {
        double weight = k == -1 ? 1 - share : k == 0 ? 1 : share;
        int at = int(base) + k;
        steep ? blend(at, x, color, weight) : blend(x, at, color, weight);
      }
    }
  }
  /// Returns the width; draws nothing at x < 0.
  int text(int x, int y, const std::string &s, uint32_t color) {
    int at = x;
    for (char letter : s) {
      for (const Glyph &glyph : kFont)
        if (glyph.letter == letter && x >= 0)
          for (int row = 0; row < 7; ++row)
            for (int column = 0; column < 5; ++column)
              if (glyph.rows[row] >> (4 - column) & 1)
                fill(at + 2 * column, y + 2 * row, 2, 2, color);
      at += 12;
    }
    return at - x;
  }

  Status write(const std::string &path) const;

private:
  std::vector<uint8_t> pixels_;
};

void putBig(std::string &s, uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8)
    s += char(v >> shift & 0xff);
}

void putChunk(std::string &png, const char *type, const std::string &data) {
  putBig(png, uint32_t(data.size()));
  std::string body = type + data;
  png += body;
  putBig(png, uint32_t(crc32(0, reinterpret_cast<const Bytef *>(body.data()), uInt(body.size()))));
}

Status Image::write(const std::string &path) const {
  std::string raw;
  for (int y = 0; y < kHeight; ++y) {
    raw += '\0'; // no filter
    raw.append(reinterpret_cast<const char *>(&pixels_[size_t(y) * kWidth * 3]), kWidth * 3);
  }
  uLongf packed = compressBound(raw.size());
  std::string data(packed, '\0');
  compress2(reinterpret_cast<Bytef *>(data.data()), &packed,
            reinterpret_cast<const Bytef *>(raw.data()), raw.size(), 6);
  data.resize(packed);
  std::string header;
  putBig(header, kWidth);
  putBig(header, kHeight);
  header.append("\x08\x02\x00\x00\x00", 5); // 8 bits, RGB
  std::string png("\x89PNG\r\n\x1a\n", 8);
  putChunk(png, "IHDR", header);
  putChunk(png, "IDAT", data);
  putChunk(png, "IEND", "");
  FILE *f = fopen(path.c_str(), "wb");
  bool ok = f && fwrite(png.data(), 1, png.size(), f) == png.size();
  if (f && fclose(f) != 0)
    ok = false;
  return ok ? Status()
            : Status(kWrongInput, format("cannot write %s: %s", path.c_str(), strerror(errno)));
}

/// Ticks at multiples of 1, 2 or 5 times a power of ten.
double tickStep(double span, int atMost) {
  double raw = span / atMost, power = std::pow(10, std::floor(std::log10(raw)));
  for (double m : {1.0, 2.0, 5.0})
    if (m * power >= raw)
      return m * power;
  return 10 * power;
}

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  void widen() {
    if (!(low <= high))
      low = 0, high = 1;
    if (high - low < 1e-12 * std::max(1.0, std::fabs(high)))
      low -= 0.5, high += 0.5;
  }
};

} // namespace

Status writePlot(const std::string &path, const std::vector<Series> &series, const char *xLabel,
                 const char *yLabel) {
  Range xs, ys;
  for (const Series &s : series)
    for (size_t i = 0; i < s.x.size(); ++i)
      if (std::isfinite(s.y[i])) {
        xs.add(s.x[i]);
        ys.add(s.y[i]);
      }
  if (ys.low > 0 && ys.low < 0.5 * ys.high)
    ys.low = 0;
  xs.widen();
  ys.widen();
  auto px = [&](double x) {
    return kLeft + (x - xs.low) / (xs.high - xs.low) * (kWidth - kLeft - kRight);
  };
  auto py = [&](double y) {
    return kHeight - kBottom - (y - ys.low) / (ys.high - ys.low) * (kHeight - kTop - kBottom);
  };
  constexpr uint32_t kInk = 0x333333, kGrid = 0xe4e4e4;
  Image image;
  double step = tickStep(xs.high - xs.low, 8);
  for (double v = std::ceil(xs.low / step) * step; v <= xs.high + 1e-9 * step; v += step) {
    std::string label = format("%g", std::fabs(v) < 1e-9 * step ? 0 : v);
    image.fill(int(px(v)), kTop, 1, kHeight - kTop - kBottom, kGrid);
    image.text(int(px(v)) - image.text(-1, 0, label, 0) / 2, kHeight - kBottom + 8, label, kInk);
  }
  step = tickStep(ys.high - ys.low, 8);
  for (double v = std::ceil(ys.low / step) * step; v <= ys.high + 1e-9 * step; v += step) {
    std::string label = format("%g", std::fabs(v) < 1e-9 * step ? 0 : v);
    image.fill(kLeft, int(py(v)), kWidth - kLeft - kRight, 1, kGrid);
    image.text(std::max(0, kLeft - 8 - image.text(-1, 0, label, 0)), int(py(v)) - 7, label, kInk);
  }
  image.fill(kLeft, kTop, 1, kHeight - kTop - kBottom, kInk);
  image.fill(kLeft, kHeight - kBottom, kWidth - kLeft - kRight, 1, kInk);
  image.text((kWidth + kLeft) / 2 - 24, kHeight - 24, xLabel, kInk);
  image.text(8, 6, yLabel, kInk);
  int legend = kTop + 10;
  for (const Series &s : series) {
    for (size_t i = 0; i < s.x.size(); ++i) {
      if (!std::isfinite(s.y[i]))
        continue;
      if (i > 0 && std::isfinite(s.y[i - 1]))
        image.line(px(s.x[i - 1]), py(s.y[i - 1]), px(s.x[i]), py(s.y[i]), s.color);
      if (s.marked || s.x.size() == 1)
        image.fill(int(px(s.x[i])) - 3, int(py(s.y[i])) - 3, 7, 7, s.color);
    }
    if (s.name.empty())
      continue;
    image.fill(kWidth - 150, legend + 5, 24, 4, s.color);
    image.text(kWidth - 118, legend, s.name, kInk);
    legend += 22;
  }
  return image.write(path);
}

} // namespace flow::runtime
