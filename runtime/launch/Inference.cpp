// PROG in.npz out.npz: one run of the program "main".
#include "runtime/data/DataSet.h"
#include "runtime/launch/LocalJob.h"
#include "runtime/launch/Programs.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace flow::runtime {

void addInferenceFlags(CommandLine &commandLine) {
  commandLine.add("dump-local", "DIR", "also write rank-K.npz: the outputs as rank K holds them");
  commandLine.add("trace", "F", "write a Chrome trace of all actors");
}

namespace {

class Inference final : public Workload, public Observer {
public:
  explicit Inference(const Launch &launch) : launch_(launch) {}

  Status run();

  uint64_t numRuns() const override { return 1; }
  Run run(uint64_t) const override {
    Run run;
    run.program = program_;
    return run;
  }
  double scalar(const Run &, const flow_tensor &tensor) const override {
    for (uint32_t i = 0; i < launch_.executable.num_scalars; ++i)
      if (strcmp(launch_.executable.scalars[i].name, tensor.name) == 0)
        return launch_.executable.scalars[i].value;
    return 0;
  }
  Status load(const Run &, uint32_t tensor, uint32_t, const RankPlace &place,
              void *to) const override {
    data_.load(launch_.plan, table(), tensor, place, [](int64_t i) { return i; }, to);
    return {};
  }
  Status onRun(uint64_t, const Job &) override { return {}; }

private:
  const flow_program &table() const { return launch_.plan.programs[program_]; }
  const char *part(const flow_tensor &tensor, int rank, const LocalJob &job) const;
  Status writeOutputs(const std::string &path, const LocalJob &job) const;
  Status dumpLocal(const std::string &folder, const LocalJob &job) const;

  const Launch &launch_;
  uint32_t program_ = 0;
  WeightsFile weights_;
  DataSet data_;
};

bool isWritten(const flow_tensor &tensor) {
  return tensor.kind == FLOW_OUTPUT || tensor.kind == FLOW_LOSS || tensor.kind == FLOW_CORRECT;
}

std::vector<int64_t> shapeOf(const flow_tensor &tensor) {
  return std::vector<int64_t>(tensor.shape, tensor.shape + tensor.rank);
}

const char *Inference::part(const flow_tensor &tensor, int rank, const LocalJob &job) const {
  RankPlace place = placeOf(launch_.plan, rank);
  const flow_class *cls = classOf(launch_.plan, table(), place);
  if (!cls || place.stage != tensor.stage)
    return nullptr;
  return registerAddress(launch_.plan, *cls, tensor.reg, job.memory()[size_t(rank)], program_, 0);
}

Status Inference::writeOutputs(const std::string &path, const LocalJob &job) const {
  NpzWriter out;
  FLOW_RETURN_IF_ERROR(out.open(path));
  for (uint32_t t = 0; t < table().num_tensors; ++t) {
    const flow_tensor &tensor = table().tensors[t];
    if (!isWritten(tensor))
      continue;
    if (!part(tensor, int(tensor.stage * meshSize(launch_.plan)), job))
      return {kNotSupported, format("the program computes no output '%s'", tensor.name)};
    std::vector<char> whole =
        assemble(launch_.plan, tensor.dtype, tensor.shape, tensor.rank, tensor.sbp, tensor.stage,
                 [&](int rank) { return part(tensor, rank, job); });
    FLOW_RETURN_IF_ERROR(out.add(tensor.name, tensor.dtype, shapeOf(tensor), whole.data()));
  }
  return out.commit();
}

Status Inference::dumpLocal(const std::string &folder, const LocalJob &job) const {
  for (int rank = 0, n = int(numRanks(launch_.plan)); rank < n; ++rank) {
    NpzWriter out;
    FLOW_RETURN_IF_ERROR(out.open(folder + format("/rank-%d.npz", rank)));
    for (uint32_t t = 0; t < table().num_tensors; ++t) {
      const flow_tensor &tensor = table().tensors[t];
      const char *data = isWritten(tensor) ? part(tensor, rank, job) : nullptr;
      if (!data)
        continue;
      Box box = localBox(launch_.plan, tensor.shape, tensor.rank, tensor.sbp,
                         placeOf(launch_.plan, rank));
      FLOW_RETURN_IF_ERROR(out.add(tensor.name, tensor.dtype, box.sizes, data));
    }
    FLOW_RETURN_IF_ERROR(out.commit());
  }
  return {};
}

Status Inference::run() {
  const CommandLine &flags = launch_.commandLine;
  if (flags.arguments().size() != 2)
    return {kUsage, format("two file names are expected, in.npz and out.npz; got %zu",
                           flags.arguments().size())};
  int program = findProgram(launch_.plan, "main");
  if (program < 0)
    return {kNotSupported, "the program holds no inference"};
  program_ = uint32_t(program);
  FLOW_RETURN_IF_ERROR(weights_.open(launch_.executable.weights_file));
  FLOW_RETURN_IF_ERROR(checkStates(launch_.plan, weights_));
  FLOW_RETURN_IF_ERROR(data_.open(flags.arguments()[0]));
  FLOW_RETURN_IF_ERROR(data_.bind(table(), DataSet::Rows::exact, weights_));
  {
    NpzWriter probe; // an output that cannot be written is found before the work
    FLOW_RETURN_IF_ERROR(probe.open(flags.arguments()[1]));
  }
  std::string folder = flags.text("dump-local");
  if (!folder.empty() && mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return {kWrongInput, format("cannot make the folder %s: %s", folder.c_str(), strerror(errno))};
  LocalJob job(launch_.plan, launch_.environment, flags.has("trace"));
  FLOW_RETURN_IF_ERROR(job.create());
  FLOW_RETURN_IF_ERROR(job.run(*this, weights_, *this));
  FLOW_RETURN_IF_ERROR(writeOutputs(flags.arguments()[1], job));
  if (!folder.empty())
    FLOW_RETURN_IF_ERROR(dumpLocal(folder, job));
  bool cut;
  if (flags.has("trace"))
    FLOW_RETURN_IF_ERROR(writeTrace(flags.text("trace"), launch_.plan, job.traceFds(), cut));
  return {};
}

} // namespace

Status runInference(const Launch &launch) {
  return Inference(launch).run();
}

} // namespace flow::runtime
