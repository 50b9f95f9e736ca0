#include "runtime/data/DataSet.h"

#include "runtime/comm/Reduce.h"

#include <cstring>

namespace flow::runtime {

static std::string keyOf(const flow_tensor &tensor) {
  return tensor.kind == FLOW_LABEL ? "label" : tensor.name;
}

static bool isInteger(uint32_t dtype) {
  return dtype == FLOW_I32 || dtype == FLOW_I64;
}

Status DataSet::bind(const flow_program &program, Rows rows, const WeightsFile &weights) {
  sources_.resize(program.num_tensors);
  for (uint32_t t = 0; t < program.num_tensors; ++t) {
    const flow_tensor &tensor = program.tensors[t];
    if (tensor.kind == FLOW_INPUT || tensor.kind == FLOW_LABEL)
      FLOW_RETURN_IF_ERROR(bindTensor(tensor, rows, weights, sources_[t]));
  }
  return rows == Rows::samples ? countSamples(program) : Status();
}

Status DataSet::bindTensor(const flow_tensor &tensor, Rows rows, const WeightsFile &weights,
                           Source &source) {
  std::string key = keyOf(tensor);
  std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.rank);
  if (tensor.optional && !file_.has(key)) {
    source.array.dtype = tensor.dtype;
    source.array.shape = shape;
    source.array.strides = rowMajorStrides(shape);
    size_t bytes = dtypeBytes(tensor.dtype);
    for (int64_t s : shape)
      bytes *= size_t(s);
    return weights.find(tensor.name, tensor.default_offset, bytes, source.array.data);
  }
  Array &array = source.array;
  FLOW_RETURN_IF_ERROR(file_.read(key, array));
  source.bySample = rows == Rows::samples && tensor.rank > 0;
  size_t first = source.bySample ? 1 : 0;
  bool fits = array.shape.size() == shape.size();
  for (size_t d = first; fits && d < shape.size(); ++d)
    fits = array.shape[d] == shape[d];
  if (!fits) {
    std::string expected = shapeText(shape.data(), shape.size());
    if (source.bySample) {
      expected = "(samples";
      for (size_t d = 1; d < shape.size(); ++d)
        expected += ", " + std::to_string(shape[d]);
      expected += shape.size() == 1 ? ",)" : ")";
    }
    return {kWrongInput,
            format("key '%s' of %s has shape %s, expected %s", key.c_str(), path().c_str(),
                   shapeText(array.shape.data(), array.shape.size()).c_str(), expected.c_str())};
  }
  bool labels = tensor.kind == FLOW_LABEL && isInteger(tensor.dtype);
  if (array.dtype != tensor.dtype && !(labels && isInteger(array.dtype)))
    return {kWrongInput,
            format("key '%s' of %s has dtype %s, expected %s", key.c_str(), path().c_str(),
                   dtypeName(array.dtype), labels ? "int32 or int64" : dtypeName(tensor.dtype))};
  return labels ? checkLabels(tensor, source) : Status();
}

Status DataSet::checkLabels(const flow_tensor &tensor, Source &source) {
  // Dense and in the program's width, once: the check needs to see every label anyway.
  Array &array = source.array;
  int64_t n = 1;
  for (int64_t s : array.shape)
    n *= s;
  std::vector<int64_t> dense = rowMajorStrides(array.shape);
  size_t from = dtypeBytes(array.dtype), to = dtypeBytes(tensor.dtype);
  auto copy = std::make_unique<char[]>(size_t(n) * from + 1);
  copyStrided(copy.get(), dense.data(), array.data, array.strides.data(), array.shape.data(),
              array.shape.size(), from);
  auto out = std::make_unique<char[]>(size_t(n) * to + 1);
  int64_t perSample = array.shape.empty() || array.shape[0] == 0 ? 1 : n / array.shape[0];
  for (int64_t i = 0; i < n; ++i) {
    int64_t label = 0;
    if (from == 8) {
      memcpy(&label, copy.get() + i * 8, 8);
    } else {
      int32_t narrow;
      memcpy(&narrow, copy.get() + i * 4, 4);
      label = narrow;
    }
    if (tensor.classes > 0 && (label < 0 || label >= tensor.classes))
      return {kWrongInput,
              format("label %lld of sample %lld of %s is outside the classes 0 to %lld",
                     static_cast<long long>(label),
                     static_cast<long long>(i / (perSample ? perSample : 1)), path().c_str(),
                     static_cast<long long>(tensor.classes - 1))};
    if (to == 8) {
      memcpy(out.get() + i * 8, &label, 8);
    } else {
      int32_t narrow = int32_t(label);
      memcpy(out.get() + i * 4, &narrow, 4);
    }
  }
  array.data = out.get();
  array.dtype = tensor.dtype;
  array.strides = dense;
  converted_.push_back(std::move(out));
  return {};
}

Status DataSet::countSamples(const flow_program &program) {
  std::string first;
  for (uint32_t t = 0; t < program.num_tensors; ++t) {
    const flow_tensor &tensor = program.tensors[t];
    if (tensor.kind != FLOW_INPUT || !sources_[t].bySample)
      continue;
    int64_t n = sources_[t].array.shape[0];
    if (samples_ >= 0 && n != samples_)
      return {kWrongInput, format("key '%s' of %s has %lld samples, key '%s' has %lld", tensor.name,
                                  path().c_str(), static_cast<long long>(n), first.c_str(),
                                  static_cast<long long>(samples_))};
    samples_ = n;
    first = tensor.name;
  }
  for (uint32_t t = 0; t < program.num_tensors; ++t) {
    if (program.tensors[t].kind != FLOW_LABEL || !sources_[t].bySample)
      continue;
    int64_t n = sources_[t].array.shape[0];
    if (n < samples_)
      return {kWrongInput,
              format("%s has fewer labels than samples: %lld labels, %lld samples", path().c_str(),
                     static_cast<long long>(n), static_cast<long long>(samples_))};
    if (samples_ < 0)
      samples_ = n;
  }
  if (samples_ <= 0)
    return {kWrongInput, format("%s has no samples", path().c_str())};
  return {};
}

bool DataSet::prepareLoad(const flow_plan &plan, const flow_tensor &tensor, const RankPlace &place,
                          Box &box, void *to) const {
  box = localBox(plan, tensor.shape, tensor.rank, tensor.sbp, place);
  if (holdsValue(plan, tensor.sbp, place))
    return box.elements() > 0;
  for (uint32_t i = 0; i < plan.num_axes; ++i)
    if (tensor.sbp[i].kind == FLOW_PARTIAL && place.coordinates[i] != 0)
      fillNeutral(to, size_t(box.elements()), tensor.dtype, tensor.sbp[i].monoid);
  return false;
}

void DataSet::copyRow(const flow_tensor &tensor, const Source &source, const Box &box,
                      const std::vector<int64_t> &strides, int64_t row, char *to) {
  size_t size = dtypeBytes(tensor.dtype);
  if (row < 0) {
    memset(to, 0, size_t(strides[0]) * size);
    return;
  }
  const char *from = source.array.data + row * source.array.strides[0] * int64_t(size);
  for (uint32_t d = 1; d < tensor.rank; ++d)
    from += box.offsets[d] * source.array.strides[d] * int64_t(size);
  copyStrided(to, strides.data() + 1, from, source.array.strides.data() + 1, box.sizes.data() + 1,
              tensor.rank - 1, size);
}

} // namespace flow::runtime
