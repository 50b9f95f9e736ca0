#include "runtime/launch/CommandLine.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace flow::runtime {

void CommandLine::add(const char *name, const char *value, std::string help) {
  flags_.push_back({name, value, std::move(help), false, {}});
}

CommandLine::Flag *CommandLine::find(const std::string &name) {
  for (Flag &flag : flags_)
    if (flag.name == name)
      return &flag;
  return nullptr;
}
const CommandLine::Flag *CommandLine::find(const std::string &name) const {
  return const_cast<CommandLine *>(this)->find(name);
}

/// How many letters have to change.
static size_t distance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

Status CommandLine::unknown(const std::string &dashes, const std::string &name) const {
  const Flag *nearest = nullptr;
  size_t best = std::max<size_t>(2, name.size() / 3) + 1;
  for (const Flag &flag : flags_)
    if (size_t d = distance(name, flag.name); d < best) {
      best = d;
      nearest = &flag;
    }
  if (nearest)
    return {kUsage, format("unknown flag %s%s; did you mean --%s?", dashes.c_str(), name.c_str(),
                           nearest->name.c_str())};
  return {kUsage,
          format("unknown flag %s%s; --help lists all flags", dashes.c_str(), name.c_str())};
}

Status CommandLine::parse(int argc, char **argv) {
  bool onlyArguments = false;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "-h")
      word = "--help";
    if (onlyArguments || word.size() < 2 || word[0] != '-') {
      arguments_.push_back(word);
      continue;
    }
    if (word == "--") {
      onlyArguments = true;
      continue;
    }
    size_t equals = word.find('=');
    size_t dashes = word[1] == '-' ? 2 : 1;
    std::string name = word.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
    Flag *flag = dashes == 2 ? find(name) : nullptr;
    if (!flag)
      return unknown(word.substr(0, dashes), name);
    if (flag->given)
      return {kUsage, format("flag --%s is given twice", name.c_str())};
    flag->given = true;
    if (!flag->value) {
      if (equals != std::string::npos)
        return {kUsage, format("flag --%s takes no value", name.c_str())};
      continue;
    }
    if (equals != std::string::npos)
      flag->text = word.substr(equals + 1);
    else if (i + 1 < argc && (argv[i + 1][0] != '-' || argv[i + 1][1] == '\0'))
      flag->text = argv[++i];
    if (flag->text.empty())
      return {kUsage,
              format("flag --%s needs a value: --%s=%s", name.c_str(), name.c_str(), flag->value)};
  }
  return {};
}

bool CommandLine::has(const char *name) const {
  const Flag *flag = find(name);
  return flag && flag->given;
}

std::string CommandLine::text(const char *name, const char *otherwise) const {
  return has(name) ? find(name)->text : otherwise;
}

Status CommandLine::integer(const char *name, int64_t least, int64_t &out) const {
  if (!has(name))
    return {};
  std::string value = text(name);
  char *end;
  errno = 0;
  long long v = strtoll(value.c_str(), &end, 10);
  if (*end || errno || v < least)
    return {kUsage, format("--%s=%s: a whole number of at least %lld is expected", name,
                           value.c_str(), static_cast<long long>(least))};
  out = v;
  return {};
}

Status CommandLine::number(const char *name, double &out) const {
  if (!has(name))
    return {};
  std::string value = text(name);
  char *end;
  double v = strtod(value.c_str(), &end);
  if (*end || !std::isfinite(v) || v < 0)
    return {kUsage, format("--%s=%s: a number of at least 0 is expected", name, value.c_str())};
  out = v;
  return {};
}

std::string CommandLine::help() const {
  std::string s;
  for (const Flag &flag : flags_) {
    std::string left = "  --" + flag.name + (flag.value ? std::string("=") + flag.value : "");
    left.resize(std::max<size_t>(left.size() + 1, 22), ' ');
    s += left + flag.help + "\n";
  }
  return s;
}

} // namespace flow::runtime
