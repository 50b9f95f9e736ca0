// Flags and arguments of a program. A mistake is one sentence that names the
// nearest flag.
#ifndef FLOW_RUNTIME_LAUNCH_COMMANDLINE_H
#define FLOW_RUNTIME_LAUNCH_COMMANDLINE_H

#include "runtime/device/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace flow::runtime {

class CommandLine {
public:
  /// `value` names the value in the help, such as "N"; null: a flag without one.
  void add(const char *name, const char *value, std::string help);
  Status parse(int argc, char **argv);

  bool has(const char *name) const;
  std::string text(const char *name, const char *otherwise = "") const;
  /// A whole number of at least `least`; `out` keeps its value if the flag is missing.
  Status integer(const char *name, int64_t least, int64_t &out) const;
  Status number(const char *name, double &out) const;
  const std::vector<std::string> &arguments() const { return arguments_; }
  /// A line per flag.
  std::string help() const;

private:
  struct Flag {
    std::string name;
    const char *value;
    std::string help;
    bool given = false;
    std::string text;
  };
  Flag *find(const std::string &name);
  const Flag *find(const std::string &name) const;
  Status unknown(const std::string &dashes, const std::string &name) const;

  std::vector<Flag> flags_;
  std::vector<std::string> arguments_;
};

} // namespace flow::runtime

#endif
