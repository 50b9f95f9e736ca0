// The arrays of an npz file bound to the inputs and labels of a program, and
// the part of them that a rank loads.
#ifndef FLOW_RUNTIME_DATA_DATASET_H
#define FLOW_RUNTIME_DATA_DATASET_H

#include "include/flow/Runtime/abi.h"
#include "runtime/data/Npz.h"
#include "runtime/data/WeightsFile.h"
#include "runtime/engine/Placement.h"

#include <memory>

namespace flow::runtime {

class DataSet {
public:
  /// How the first dimension of an array relates to the tensor's.
  enum class Rows {
    exact,   /// equal: inference
    samples, /// any number of samples: a trainer
  };

  Status open(const std::string &path) { return file_.open(path); }
  /// Finds and checks the array of every input and label. `weights` holds the defaults of inputs
  /// that the file may leave out.
  Status bind(const flow_program &program, Rows rows, const WeightsFile &weights);

  const std::string &path() const { return file_.path(); }
  int64_t samples() const { return samples_; }

  /// Writes a rank's part of a tensor. `row(i)` is the sample of row i of the tensor, or -1 for a
  /// row of zeros; without it rows are taken as they are.
  template <typename RowOf>
  void load(const flow_plan &plan, const flow_program &program, uint32_t tensor,
            const RankPlace &place, RowOf row, void *to) const;

private:
  struct Source {
    Array array;
    bool bySample = false;
  };
  Status bindTensor(const flow_tensor &tensor, Rows rows, const WeightsFile &weights,
                    Source &source);
  Status checkLabels(const flow_tensor &tensor, Source &source);
  Status countSamples(const flow_program &program);
  bool prepareLoad(const flow_plan &plan, const flow_tensor &tensor, const RankPlace &place,
                   Box &box, void *to) const;
  static void copyRow(const flow_tensor &tensor, const Source &source, const Box &box,
                      const std::vector<int64_t> &strides, int64_t row, char *to);

  NpzReader file_;
  std::vector<Source> sources_;
  std::vector<std::unique_ptr<char[]>> converted_;
  int64_t samples_ = -1;
};

template <typename RowOf>
void DataSet::load(const flow_plan &plan, const flow_program &program, uint32_t index,
                   const RankPlace &place, RowOf row, void *to) const {
  const flow_tensor &tensor = program.tensors[index];
  const Source &source = sources_[index];
  Box box;
  if (!prepareLoad(plan, tensor, place, box, to))
    return;
  std::vector<int64_t> strides = rowMajorStrides(box.sizes);
  size_t size = dtypeBytes(tensor.dtype);
  char *out = static_cast<char *>(to);
  if (!source.bySample) {
    const char *from = source.array.data;
    for (uint32_t d = 0; d < tensor.rank; ++d)
      from += box.offsets[d] * source.array.strides[d] * int64_t(size);
    copyStrided(out, strides.data(), from, source.array.strides.data(), box.sizes.data(),
                tensor.rank, size);
    return;
  }
  for (int64_t i = 0; i < box.sizes[0]; ++i)
    copyRow(tensor, source, box, strides, row(box.offsets[0] + i),
            out + i * strides[0] * int64_t(size));
}

} // namespace flow::runtime

#endif
