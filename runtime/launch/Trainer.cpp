// PROG --data=F.npz: epochs of the program "step", each followed by the
// program "eval" over the held-out file.
#include "runtime/data/DataSet.h"
#include "runtime/data/Permutation.h"
#include "runtime/engine/Wiring.h"
#include "runtime/launch/LocalJob.h"
#include "runtime/launch/Plot.h"
#include "runtime/launch/Programs.h"
#include "runtime/launch/Progress.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace flow::runtime {

void addTrainerFlags(CommandLine &commandLine, const flow_executable &executable) {
  commandLine.add("data", "F.npz", "samples to train on (required)");
  commandLine.add("eval-data", "F.npz", "samples to evaluate on after each epoch");
  commandLine.add("epochs", "N", "passes over the data (default: 1)");
  commandLine.add("steps", "N", "steps, instead of epochs");
  commandLine.add("seed", "N", "orders the samples (default: 0)");
  commandLine.add("no-shuffle", nullptr, "keep the order of the file");
  for (uint32_t i = 0; i < executable.num_scalars; ++i) {
    const flow_scalar_default &scalar = executable.scalars[i];
    bool rate = strcmp(scalar.name, "lr") == 0;
    commandLine.add(
        scalar.name, "X",
        format("%s (default: %g)", rate ? "learning rate" : "scalar of the model", scalar.value));
  }
  commandLine.add("out", "DIR",
                  "folder for metrics.csv, eval.csv, loss.png and model.safetensors "
                  "(default: .)");
  commandLine.add("trace", "F", "write a Chrome trace of all actors");
}

namespace {

class Trainer final : public Workload, public Observer {
public:
  explicit Trainer(const Launch &launch)
      : executable_(launch.executable), plan_(launch.plan), flags_(launch.commandLine),
        environment_(launch.environment) {}
  ~Trainer() override {
    for (FILE *f : {metrics_, evaluations_})
      if (f)
        fclose(f);
  }

  Status train();

  // ---- what the ranks run ----
  uint64_t numRuns() const override { return numRuns_; }
  Run run(uint64_t number) const override;
  double scalar(const Run &run, const flow_tensor &tensor) const override;
  Status load(const Run &run, uint32_t tensor, uint32_t microBatch, const RankPlace &place,
              void *to) const override;

  // ---- what the supervisor sees ----
  Status onRun(uint64_t number, const Job &job) override;
  Status onTick() override;
  void onEnd() override { progress_->clear(); }

private:
  Status readFlags();
  Status openInputs();
  Status planRuns();
  Status openOutputs();
  Status finish(const LocalJob &job);
  Status onStep(uint64_t number, const Run &run, const Job &job);
  Status onEvaluation(uint64_t number, const Run &run, const Job &job);
  int lossDigits() const;
  double combined(const flow_program &program, uint32_t kind, uint64_t number,
                  const Job &job) const;
  uint64_t lossTime(uint64_t number, const Job &job, bool first) const;
  Status plot() const;
  Status cannotWrite(const std::string &path) const {
    return {kWrongInput, format("cannot write %s: %s", path.c_str(), strerror(errno))};
  }
  const flow_program &step() const { return plan_.programs[step_]; }
  const flow_program &evaluation() const { return plan_.programs[evaluation_]; }
  std::string file(const char *name) const { return folder_ + "/" + name; }

  const flow_executable &executable_;
  const flow_plan &plan_;
  const CommandLine &flags_;
  const Environment &environment_;

  int64_t seed_ = 0;
  bool shuffle_ = true;
  std::vector<double> scalars_;
  std::string folder_;
  WeightsFile weights_;
  DataSet data_, evalData_;
  bool evaluates_ = false;
  int64_t evalSamples_ = 0;
  int64_t evalBatch_ = 1; /// an evaluation may take the batch of one micro-batch
  uint32_t step_ = 0, evaluation_ = 0;
  // An epoch is some steps, then some runs of the evaluation; the last one may have fewer steps.
  uint64_t steps_ = 0, stepsPerEpoch_ = 0, evaluationsPerEpoch_ = 0, epochs_ = 0, numRuns_ = 0;

  FILE *metrics_ = nullptr, *evaluations_ = nullptr;
  std::unique_ptr<Progress> progress_;
  uint64_t lastLossNs_ = 0;
  bool lastWasStep_ = false;
  double evalLoss_ = 0, evalCorrect_ = 0, accuracy_ = NAN, epochLoss_ = 0;
  uint64_t epochSteps_ = 0;
  std::string epochLine_;
  Series trainCurve_{"", 0xa9c8e8, false, {}, {}}, smoothCurve_{"train", 0x1f5fa8, false, {}, {}},
      evalCurve_{"eval", 0xd9541e, true, {}, {}};
};

// ---- before the ranks start ----

Status Trainer::readFlags() {
  if (!flags_.arguments().empty())
    return {kUsage, format("unexpected argument '%s'; --help lists the flags",
                           flags_.arguments()[0].c_str())};
  if (!flags_.has("data"))
    return {kUsage, "--data=F.npz is missing: the samples to train on"};
  if (flags_.has("epochs") && flags_.has("steps"))
    return {kUsage, "give --epochs or --steps, not both"};
  FLOW_RETURN_IF_ERROR(flags_.integer("seed", 0, seed_));
  shuffle_ = !flags_.has("no-shuffle");
  for (uint32_t i = 0; i < executable_.num_scalars; ++i) {
    scalars_.push_back(executable_.scalars[i].value);
    FLOW_RETURN_IF_ERROR(flags_.number(executable_.scalars[i].name, scalars_.back()));
  }
  folder_ = flags_.text("out", ".");
  evaluates_ = flags_.has("eval-data");
  return {};
}

Status Trainer::openInputs() {
  int step = findProgram(plan_, "step"), evaluation = findProgram(plan_, "eval");
  if (step < 0)
    return {kNotSupported, "the program holds no training step"};
  step_ = uint32_t(step);
  if (evaluates_ && evaluation < 0)
    return {kNotSupported, "--eval-data: the program holds no evaluation"};
  evaluation_ = uint32_t(std::max(evaluation, 0));
  FLOW_RETURN_IF_ERROR(weights_.open(executable_.weights_file));
  FLOW_RETURN_IF_ERROR(checkStates(plan_, weights_));
  FLOW_RETURN_IF_ERROR(data_.open(flags_.text("data")));
  FLOW_RETURN_IF_ERROR(data_.bind(this->step(), DataSet::Rows::samples, weights_));
  if (evaluates_) {
    FLOW_RETURN_IF_ERROR(evalData_.open(flags_.text("eval-data")));
    FLOW_RETURN_IF_ERROR(evalData_.bind(this->evaluation(), DataSet::Rows::samples, weights_));
  }
  return {};
}

/// Samples that one run of a program takes.
static int64_t batchOf(const flow_program &program) {
  for (uint32_t t = 0; t < program.num_tensors; ++t) {
    const flow_tensor &tensor = program.tensors[t];
    if ((tensor.kind == FLOW_INPUT || tensor.kind == FLOW_LABEL) && tensor.rank > 0 &&
        !tensor.optional)
      return std::max<int64_t>(1, tensor.shape[0] * program.micro_batches);
  }
  return 1;
}

Status Trainer::planRuns() {
  int64_t batch = executable_.batch, samples = data_.samples();
  if (samples < batch)
    return {kWrongInput, format("%s has %lld samples, which is less than one batch of %lld",
                                data_.path().c_str(), static_cast<long long>(samples),
                                static_cast<long long>(batch))};
  if (int64_t own = batchOf(step()); own != batch)
    return {kNotSupported, format("the step takes %lld samples, the program says %lld",
                                  static_cast<long long>(own), static_cast<long long>(batch))};
  stepsPerEpoch_ = uint64_t(samples / batch);
  int64_t epochs = 1, steps = 0;
  FLOW_RETURN_IF_ERROR(flags_.integer("epochs", 1, epochs));
  FLOW_RETURN_IF_ERROR(flags_.integer("steps", 1, steps));
  steps_ = steps > 0 ? uint64_t(steps) : uint64_t(epochs) * stepsPerEpoch_;
  epochs_ = (steps_ + stepsPerEpoch_ - 1) / stepsPerEpoch_;
  if (evaluates_) {
    evalBatch_ = batchOf(evaluation());
    evalSamples_ = evalData_.samples();
    // A loss that is an output of the model takes whole batches only.
    if (executable_.loss == FLOW_LOSS_OUTPUT)
      evalSamples_ -= evalSamples_ % evalBatch_;
    if (evalSamples_ == 0)
      return {kWrongInput,
              format("%s has %lld samples, which is less than one batch of %lld",
                     evalData_.path().c_str(), static_cast<long long>(evalData_.samples()),
                     static_cast<long long>(evalBatch_))};
    evaluationsPerEpoch_ = uint64_t((evalSamples_ + evalBatch_ - 1) / evalBatch_);
  }
  numRuns_ = steps_ + epochs_ * evaluationsPerEpoch_;
  return {};
}

Status Trainer::openOutputs() {
  // Missing folders on the way are made too.
  for (size_t at = 1; at <= folder_.size(); ++at)
    if (at == folder_.size() || folder_[at] == '/')
      if (mkdir(folder_.substr(0, at).c_str(), 0777) != 0 && errno != EEXIST)
        return {kWrongInput,
                format("cannot make the folder %s: %s", folder_.c_str(), strerror(errno))};
  metrics_ = fopen(file("metrics.csv").c_str(), "w");
  if (!metrics_)
    return cannotWrite(file("metrics.csv"));
  fprintf(metrics_, "step,epoch,loss,samples_per_s\n");
  if (evaluates_) {
    evaluations_ = fopen(file("eval.csv").c_str(), "w");
    if (!evaluations_)
      return cannotWrite(file("eval.csv"));
    fprintf(evaluations_, "epoch,loss,accuracy\n");
    fflush(evaluations_);
  }
  if (fflush(metrics_) != 0)
    return cannotWrite(file("metrics.csv"));
  if (flags_.has("trace")) {
    FILE *trace = fopen(flags_.text("trace").c_str(), "w");
    if (!trace)
      return cannotWrite(flags_.text("trace"));
    fclose(trace);
  }
  return {};
}

Status Trainer::train() {
  FLOW_RETURN_IF_ERROR(readFlags());
  FLOW_RETURN_IF_ERROR(openInputs());
  FLOW_RETURN_IF_ERROR(planRuns());
  FLOW_RETURN_IF_ERROR(openOutputs());
  LocalJob job(plan_, environment_, flags_.has("trace"));
  FLOW_RETURN_IF_ERROR(job.create());
  progress_ = std::make_unique<Progress>(steps_, stepsPerEpoch_, epochs_, executable_.batch);
  if (int64_t dropped = data_.samples() % executable_.batch)
    progress_->line(format("each epoch drops %lld of %lld samples: they fill no batch of %lld",
                           static_cast<long long>(dropped), static_cast<long long>(data_.samples()),
                           static_cast<long long>(executable_.batch)));
  if (evaluates_ && evalSamples_ < evalData_.samples())
    progress_->line(format("each evaluation drops %lld of %lld samples: the model's own loss takes "
                           "whole batches of %lld",
                           static_cast<long long>(evalData_.samples() - evalSamples_),
                           static_cast<long long>(evalData_.samples()),
                           static_cast<long long>(evalBatch_)));
  FLOW_RETURN_IF_ERROR(job.run(*this, weights_, *this));
  return finish(job);
}

// ---- the runs ----

Run Trainer::run(uint64_t number) const {
  uint64_t perEpoch = stepsPerEpoch_ + evaluationsPerEpoch_;
  uint64_t epoch = std::min(number / perEpoch, epochs_ - 1), at = number - epoch * perEpoch;
  uint64_t steps = std::min(stepsPerEpoch_, steps_ - epoch * stepsPerEpoch_);
  Run run;
  run.epoch = epoch;
  bool evaluating = at >= steps;
  uint64_t index = evaluating ? at - steps : at;
  run.program = evaluating ? evaluation_ : step_;
  run.index = index + epoch * (evaluating ? evaluationsPerEpoch_ : stepsPerEpoch_);
  run.samples = evaluating ? evalBatch_ : executable_.batch;
  run.position = int64_t(index) * run.samples;
  if (evaluating)
    run.samples = std::min(run.samples, evalSamples_ - run.position);
  return run;
}

double Trainer::scalar(const Run &run, const flow_tensor &tensor) const {
  for (uint32_t i = 0; i < executable_.num_scalars; ++i)
    if (strcmp(executable_.scalars[i].name, tensor.name) == 0)
      return scalars_[i];
  return strcmp(tensor.name, "count") == 0 ? double(run.samples) : 0;
}

Status Trainer::load(const Run &run, uint32_t tensor, uint32_t microBatch, const RankPlace &place,
                     void *to) const {
  const flow_program &program = plan_.programs[run.program];
  const flow_tensor &table = program.tensors[tensor];
  int64_t first = table.rank > 0 ? int64_t(microBatch) * table.shape[0] : 0;
  if (run.program == evaluation_ && evaluates_) {
    auto row = [&](int64_t i) { return first + i < run.samples ? run.position + first + i : -1; };
    evalData_.load(plan_, program, tensor, place, row, to);
  } else if (shuffle_) {
    Permutation order(uint64_t(data_.samples()), uint64_t(seed_), run.epoch);
    auto row = [&](int64_t i) { return int64_t(order(uint64_t(run.position + first + i))); };
    data_.load(plan_, program, tensor, place, row, to);
  } else {
    auto row = [&](int64_t i) { return run.position + first + i; };
    data_.load(plan_, program, tensor, place, row, to);
  }
  return {};
}

// ---- reports ----

double Trainer::combined(const flow_program &program, uint32_t kind, uint64_t number,
                         const Job &job) const {
  double value = 0;
  for (uint32_t t = 0; t < program.num_tensors; ++t) {
    const flow_tensor &tensor = program.tensors[t];
    if (tensor.kind != kind)
      continue;
    for (int rank = 0, n = int(numRanks(plan_)); rank < n; ++rank)
      if (isReported(plan_, tensor, placeOf(plan_, rank))) {
        const Report &report = job.report(number, rank);
        value += kind == FLOW_LOSS ? report.loss : report.correct;
      }
    if (std::isnan(value))
      return NAN; // printed without a sign
    return tensor.dtype == FLOW_F64 || kind == FLOW_CORRECT ? value : double(float(value));
  }
  return NAN;
}

/// 9 digits tell every float32 apart, 17 every float64.
int Trainer::lossDigits() const {
  for (uint32_t t = 0; t < step().num_tensors; ++t)
    if (step().tensors[t].kind == FLOW_LOSS)
      return step().tensors[t].dtype == FLOW_F64 ? 17 : 9;
  return 9;
}

uint64_t Trainer::lossTime(uint64_t number, const Job &job, bool first) const {
  const flow_program &program = step();
  uint64_t begin = UINT64_MAX, end = 0;
  for (uint32_t t = 0; t < program.num_tensors; ++t)
    for (int rank = 0, n = int(numRanks(plan_)); rank < n; ++rank)
      if (program.tensors[t].kind == FLOW_LOSS &&
          isReported(plan_, program.tensors[t], placeOf(plan_, rank))) {
        begin = std::min(begin, job.report(number, rank).startNs);
        end = std::max(end, job.report(number, rank).lossNs);
      }
  return first ? begin : end;
}

Status Trainer::onTick() {
  if (fflush(metrics_) != 0)
    return cannotWrite(file("metrics.csv"));
  progress_->tick();
  return {};
}

Status Trainer::onRun(uint64_t number, const Job &job) {
  Run run = this->run(number);
  return run.program == step_ ? onStep(number, run, job) : onEvaluation(number, run, job);
}

Status Trainer::onStep(uint64_t number, const Run &run, const Job &job) {
  double loss = combined(step(), FLOW_LOSS, number, job);
  uint64_t end = lossTime(number, job, false);
  uint64_t begin = lastWasStep_ ? lastLossNs_ : lossTime(number, job, true);
  lastLossNs_ = end;
  lastWasStep_ = true;
  double rate = double(executable_.batch) / (double(std::max(end, begin + 1) - begin) * 1e-9);
  uint64_t step = run.index + 1;
  fprintf(metrics_, "%llu,%llu,%.*g,%.6g\n", static_cast<unsigned long long>(step),
          static_cast<unsigned long long>(run.epoch + 1), lossDigits(), loss, rate);
  trainCurve_.x.push_back(double(step));
  trainCurve_.y.push_back(loss);
  double last = smoothCurve_.y.empty() ? loss : smoothCurve_.y.back();
  smoothCurve_.x.push_back(double(step));
  smoothCurve_.y.push_back(std::isfinite(last) ? 0.95 * last + 0.05 * loss : loss);
  progress_->step(step, loss, rate);
  epochLoss_ += loss;
  ++epochSteps_;
  bool ends = step == steps_ || step % stepsPerEpoch_ == 0;
  if (ends) {
    epochLine_ = format("epoch %llu/%llu  loss %.4g  %.0f samples/s",
                        static_cast<unsigned long long>(run.epoch + 1),
                        static_cast<unsigned long long>(epochs_), epochLoss_ / double(epochSteps_),
                        progress_->samplesPerSecond());
    epochLoss_ = 0;
    epochSteps_ = 0;
    if (!evaluates_)
      progress_->line(epochLine_);
  }
  return {};
}

Status Trainer::onEvaluation(uint64_t number, const Run &run, const Job &job) {
  lastWasStep_ = false;
  evalLoss_ += combined(evaluation(), FLOW_LOSS, number, job);
  evalCorrect_ += combined(evaluation(), FLOW_CORRECT, number, job);
  if (run.position + run.samples < evalSamples_)
    return {};
  // A sample may have several labels, or a target of several elements.
  double values = double(evalSamples_);
  for (uint32_t t = 0; t < evaluation().num_tensors; ++t)
    if (const flow_tensor &tensor = evaluation().tensors[t]; tensor.kind == FLOW_LABEL) {
      for (uint32_t d = 1; d < tensor.rank; ++d)
        values *= double(tensor.shape[d]);
      break;
    }
  // The loss of a sample is already the mean over them.
  double loss = evalLoss_ / double(evalSamples_);
  accuracy_ = evalCorrect_ / values;
  evalLoss_ = evalCorrect_ = 0;
  bool classes = !std::isnan(accuracy_);
  unsigned long long epoch = run.epoch + 1;
  fprintf(evaluations_, "%llu,%.*g,", epoch, lossDigits(), loss);
  fprintf(evaluations_, classes ? "%.9g\n" : "\n", accuracy_);
  if (fflush(evaluations_) != 0)
    return cannotWrite(file("eval.csv"));
  evalCurve_.x.push_back(double(std::min((run.epoch + 1) * stepsPerEpoch_, steps_)));
  evalCurve_.y.push_back(loss);
  progress_->line(epochLine_ + format("  eval loss %.4g", loss) +
                  (classes ? format("  accuracy %.4f", accuracy_) : ""));
  return {};
}

// ---- after the ranks have ended ----

Status Trainer::plot() const {
  std::vector<Series> series{trainCurve_, smoothCurve_};
  if (evaluates_)
    series.push_back(evalCurve_);
  return writePlot(file("loss.png"), series, "step", "loss");
}

Status Trainer::finish(const LocalJob &job) {
  FLOW_RETURN_IF_ERROR(saveModel(file("model.safetensors"), plan_, job.memory()));
  FLOW_RETURN_IF_ERROR(plot());
  if (flags_.has("trace")) {
    bool cut;
    FLOW_RETURN_IF_ERROR(writeTrace(flags_.text("trace"), plan_, job.traceFds(), cut));
    if (cut)
      progress_->line(
          format("the trace holds the first %zu events of each stream", kMaxTraceEventsPerStream));
  }
  progress_->line("saved " + file("model.safetensors"));
  if (!std::isnan(accuracy_))
    progress_->line(format("accuracy %.4f", accuracy_));
  return {};
}

} // namespace

Status runTrainer(const Launch &launch) {
  return Trainer(launch).train();
}

} // namespace flow::runtime
