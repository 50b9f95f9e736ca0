// What a call of the runtime returns: an exit code and one sentence for the user.
#ifndef FLOW_RUNTIME_DEVICE_STATUS_H
#define FLOW_RUNTIME_DEVICE_STATUS_H

#include <string>
#include <utility>

namespace flow::runtime {

enum ExitCode { kOk = 0, kWrongInput = 1, kUsage = 2, kNotSupported = 3, kRankLost = 75 };

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(ExitCode code, std::string text) : code_(code), text_(std::move(text)) {}
  bool ok() const { return code_ == kOk; }
  ExitCode code() const { return code_; }
  const std::string &text() const { return text_; }

private:
  ExitCode code_ = kOk;
  std::string text_;
};

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *fmt, ...);

} // namespace flow::runtime

#define FLOW_RETURN_IF_ERROR(expr)                                                                 \
  do {                                                                                             \
    if (::flow::runtime::Status status_ = (expr); !status_.ok())                                   \
      return status_;                                                                              \
  } while (0)

#endif
