// What a user may ask of the compiler, already parsed and checked for form.
#pragma once
#include "lib/Target/CPU/Link.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flow {

/// The parts of the walk, in order. `--emit=mlir:NAME` stops after one.
enum class PhaseName { Import, Legalize, Step, Distribute, Localize, Kernels, Schedule, LLVM };

struct TrainingRequest {
  std::string loss = "softmax_cross_entropy";
  std::string optimizer = "sgd,lr=0.01";
  int64_t batch = 0;
};

/// Gradients as extra outputs of an inference program.
struct GradientRequest {
  std::string of;               ///< an output, or `loss`
  std::vector<std::string> wrt; ///< inputs and initializers, shell patterns
};

struct CompileOptions {
  enum class Emit { Mlir, Object, Executable };

  std::string model;
  std::string output;
  std::optional<TrainingRequest> training;
  /// A loss for gradients without training.
  std::string loss;
  std::optional<GradientRequest> gradient;
  std::vector<std::string> meshes; ///< `dp=2,tp=2`; none: one rank
  std::vector<std::string> sbp;    ///< `NAME=[B,S(0)]`
  std::vector<std::string> stages; ///< `PATTERN=K`
  int64_t microBatches = 1;
  /// `template=gpipe,comm=late,seed=1`: another order of the same work.
  std::string schedule;
  std::vector<std::pair<std::string, int64_t>> dims;
  /// Shapes of inputs by name, where a data file has them; fix dynamic dims.
  std::vector<std::pair<std::string, std::vector<int64_t>>> inputShapes;
  Emit emit = Emit::Executable;
  PhaseName phase = PhaseName::LLVM;
  std::string targetCpu = "native";
  unsigned optLevel = 3;
  Linker linker = Linker::Lld;
  /// Folder of libflow_runtime.a.
  std::string libraries;
  std::string tool = "flow-compile";
};

} // namespace flow
