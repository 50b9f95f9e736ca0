// Small questions to the runtime's data formats and placement.
//   data-formats copy IN.npz OUT.npz KEY..   reads arrays and writes them densely
//   data-formats boxes                      balanced splits, nested and with units
//   data-formats order N SEED EPOCH         the order of samples
#include "runtime/data/Npz.h"
#include "runtime/data/Permutation.h"
#include "runtime/engine/Placement.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace flow::runtime;

static int fail(const Status &status) {
  fprintf(stderr, "%s\n", status.text().c_str());
  return status.code();
}

static int copy(int argc, char **argv) {
  NpzReader in;
  NpzWriter out;
  if (Status s = in.open(argv[2]); !s.ok())
    return fail(s);
  if (Status s = out.open(argv[3]); !s.ok())
    return fail(s);
  for (int i = 4; i < argc; ++i) {
    Array array;
    if (Status s = in.read(argv[i], array); !s.ok())
      return fail(s);
    size_t bytes = dtypeBytes(array.dtype);
    for (int64_t n : array.shape)
      bytes *= size_t(n);
    std::vector<char> dense(bytes);
    copyStrided(dense.data(), rowMajorStrides(array.shape).data(), array.data, array.strides.data(),
                array.shape.data(), array.shape.size(), dtypeBytes(array.dtype));
    if (Status s = out.add(argv[i], array.dtype, array.shape, dense.data()); !s.ok())
      return fail(s);
  }
  Status s = out.commit();
  return s.ok() ? 0 : fail(s);
}

static void printBoxes(int64_t extent, int64_t unit, std::vector<int64_t> axes) {
  flow_plan plan{};
  plan.num_axes = uint32_t(axes.size());
  plan.axis_sizes = axes.data();
  plan.num_stages = 1;
  std::vector<flow_sbp> sbp(axes.size(), flow_sbp{FLOW_SPLIT, 0, 0, unit});
  printf("%lld in units of %lld:", static_cast<long long>(extent), static_cast<long long>(unit));
  for (int64_t r = 0; r < meshSize(plan); ++r) {
    Box box = localBox(plan, &extent, 1, sbp.data(), placeOf(plan, r));
    printf(" %lld+%lld", static_cast<long long>(box.offsets[0]),
           static_cast<long long>(box.sizes[0]));
  }
  printf("\n");
}

int main(int argc, char **argv) {
  if (!strcmp(argv[1], "copy"))
    return copy(argc, argv);
  if (!strcmp(argv[1], "order")) {
    uint64_t n = strtoull(argv[2], nullptr, 10);
    Permutation order(n, strtoull(argv[3], nullptr, 10), strtoull(argv[4], nullptr, 10));
    for (uint64_t i = 0; i < n; ++i)
      printf("%llu\n", static_cast<unsigned long long>(order(i)));
    return 0;
  }
  printBoxes(10, 1, {4});
  printBoxes(10, 1, {2, 4});
  printBoxes(10, 1, {8});
  printBoxes(12, 3, {3});
  printBoxes(2, 1, {3});
  printBoxes(12, 4, {2, 2});
}
