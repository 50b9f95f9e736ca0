// The entry of every compiled program: reads the command line, chooses the
// plan, and runs it as a trainer or an inference.
#include "runtime/launch/Programs.h"

#include "runtime/engine/Placement.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <unistd.h>

namespace flow::runtime {

int findProgram(const flow_plan &plan, const char *name) {
  for (uint32_t p = 0; p < plan.num_programs; ++p)
    if (strcmp(plan.programs[p].name, name) == 0)
      return int(p);
  return -1;
}

/// "2 (dp=2)"
static std::string planText(const flow_plan &plan) {
  std::string axes;
  for (uint32_t i = 0; i < plan.num_axes; ++i)
    axes += format("%s%s=%lld", i ? "," : "", plan.axis_names[i],
                   static_cast<long long>(plan.axis_sizes[i]));
  if (plan.num_stages > 1)
    axes += format("%s%u stages", axes.empty() ? "" : ", ", plan.num_stages);
  std::string ranks = std::to_string(numRanks(plan));
  return axes.empty() || numRanks(plan) == 1 ? ranks : ranks + " (" + axes + ")";
}

static std::string plansText(const flow_executable &executable) {
  std::string s;
  for (uint32_t p = 0; p < executable.num_plans; ++p)
    s += (p ? ", " : "") + planText(executable.plans[p]);
  return s;
}

static Status choosePlan(const flow_executable &executable, const CommandLine &commandLine,
                         const flow_plan *&plan) {
  int64_t ranks = numRanks(executable.plans[0]);
  FLOW_RETURN_IF_ERROR(commandLine.integer("ranks", 1, ranks));
  for (uint32_t p = 0; p < executable.num_plans; ++p)
    if (numRanks(executable.plans[p]) == ranks) {
      plan = &executable.plans[p];
      return {};
    }
  return {kUsage, format("--ranks=%lld: this program was not compiled for so many ranks; legal: %s",
                         static_cast<long long>(ranks), plansText(executable).c_str())};
}

static std::string keysText(const flow_program &program, bool samples) {
  std::string s;
  for (uint32_t t = 0; t < program.num_tensors; ++t) {
    const flow_tensor &tensor = program.tensors[t];
    bool label = tensor.kind == FLOW_LABEL;
    if (tensor.kind != FLOW_INPUT && !label)
      continue;
    std::string shape = samples && tensor.rank > 0 ? "(samples" : "(";
    for (uint32_t d = samples ? 1 : 0; d < tensor.rank; ++d)
      shape +=
          format("%s%lld", shape.size() > 1 ? ", " : "", static_cast<long long>(tensor.shape[d]));
    shape += ")";
    s += format("  %-19s %s%s%s\n", label ? "label" : tensor.name,
                label && (tensor.dtype == FLOW_I32 || tensor.dtype == FLOW_I64)
                    ? "int32 or int64"
                    : dtypeName(tensor.dtype),
                shape.c_str(), tensor.optional ? ", may be left out" : "");
  }
  return s;
}

static void printHelp(const char *self, const flow_executable &executable,
                      const CommandLine &commandLine) {
  const char *name = strrchr(self, '/') ? strrchr(self, '/') + 1 : self;
  bool trainer = executable.kind == FLOW_TRAINER;
  if (trainer)
    printf("Trains %s.\n\nusage: %s --data=F.npz [flags]\n\n", executable.model, name);
  else
    printf("Runs %s.\n\nusage: %s in.npz out.npz [flags]\n\n", executable.model, name);
  printf("flags\n%s\nranks: %s\n", commandLine.help().c_str(), plansText(executable).c_str());
  const flow_plan &plan = executable.plans[0];
  int program = findProgram(plan, trainer ? "step" : "main");
  if (program >= 0)
    printf("\nkeys of the %s npz file\n%s", trainer ? "data" : "input",
           keysText(plan.programs[program], trainer).c_str());
  printf(
      "\nexit codes: 0 ran, 1 an input is wrong, 2 usage, 3 not supported, 75 a rank was lost\n");
}

static Status runMain(const flow_executable &executable, int argc, char **argv) {
  if (executable.abi_version != FLOW_ABI_VERSION)
    return {kNotSupported, format("the program has tables of version %u, its runtime is version %u",
                                  executable.abi_version, FLOW_ABI_VERSION)};
  if (executable.num_plans == 0)
    return {kNotSupported, "the program holds no plan"};
  bool trainer = executable.kind == FLOW_TRAINER;
  CommandLine commandLine;
  commandLine.add("ranks", "N",
                  "processes to run on (default: " + std::to_string(numRanks(executable.plans[0])) +
                      ")");
  trainer ? addTrainerFlags(commandLine, executable) : addInferenceFlags(commandLine);
  commandLine.add("help", nullptr, "this text");
  FLOW_RETURN_IF_ERROR(commandLine.parse(argc, argv));
  if (commandLine.has("help")) {
    printHelp(argv[0], executable, commandLine);
    return {};
  }
  Environment environment;
  FLOW_RETURN_IF_ERROR(readEnvironment(environment));
  const flow_plan *plan = nullptr;
  FLOW_RETURN_IF_ERROR(choosePlan(executable, commandLine, plan));
  Launch launch{executable, *plan, commandLine, environment};
  return trainer ? runTrainer(launch) : runInference(launch);
}

} // namespace flow::runtime

extern "C" int flow_runtime_main(const flow_executable *executable, int argc, char **argv) {
  // Memory that runs out is an end with a sentence, not a signal.
  std::set_new_handler([] {
    static const char text[] = "error: out of memory\n";
    [[maybe_unused]] ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    _exit(flow::runtime::kWrongInput);
  });
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); // writing says so instead
  flow::runtime::Status status = flow::runtime::runMain(*executable, argc, argv);
  fflush(stdout);
  if (!status.text().empty()) {
    const char *prefix = status.code() == flow::runtime::kRankLost ? "" : "error: ";
    fprintf(stderr, "%s%s\n", prefix, status.text().c_str());
  }
  return status.code();
}
