// Factors: the dims and loops that can only be split together.
#include "dialects/Flow/Rules/Factors.h"
#include "dialects/Flow/Rules/Access.h"
#include "dialects/Flow/Rules/SliceDims.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace flow;

static void reduce(int64_t &numerator, int64_t &denominator) {
  int64_t g = std::gcd(numerator, denominator);
  numerator /= g;
  denominator /= g;
}

unsigned Factors::node(const void *owner, unsigned index) {
  auto [it, isNew] = ids.try_emplace({owner, index}, nodes.size());
  if (isNew)
    nodes.push_back({static_cast<unsigned>(nodes.size())});
  return it->second;
}

Factors::Membership Factors::resolve(unsigned n) const {
  Membership m{n};
  while (nodes[m.factor].parent != m.factor) {
    m.numerator *= nodes[m.factor].numerator;
    m.denominator *= nodes[m.factor].denominator;
    reduce(m.numerator, m.denominator);
    m.factor = nodes[m.factor].parent;
  }
  return m;
}

void Factors::join(unsigned a, unsigned b, int64_t numerator, int64_t denominator) {
  Membership x = resolve(a), y = resolve(b);
  // units(a) = xn/xd root(a), units(b) = yn/yd root(b), units(a) = n/d units(b)
  // => root(a) = n/d * yn/yd * xd/xn root(b)
  int64_t num = numerator * y.numerator * x.denominator;
  int64_t den = denominator * y.denominator * x.numerator;
  reduce(num, den);
  if (x.factor == y.factor) {
    if (num != den)
      nodes[x.factor].broken = true;
    return;
  }
  // The older node stays the root, so that factors() is in order of appearance.
  if (x.factor < y.factor) {
    std::swap(x, y);
    std::swap(num, den);
  }
  nodes[y.factor].broken |= nodes[x.factor].broken;
  nodes[x.factor].parent = y.factor;
  nodes[x.factor].numerator = num;
  nodes[x.factor].denominator = den;
}

void Factors::joinDims(Value a, unsigned dimA, Value b, unsigned dimB, int64_t ratio) {
  unsigned x = node(a.getAsOpaquePointer(), dimA), y = node(b.getAsOpaquePointer(), dimB);
  join(x, y, ratio);
}

void Factors::tie(Value a, Value b) {
  auto type = dyn_cast<RankedTensorType>(a.getType());
  for (int64_t d = 0; type && d < type.getRank(); ++d)
    joinDims(a, d, b, d);
}

void Factors::addLinalg(Operation *op, function_ref<bool(Value)> isFree) {
  auto l = cast<linalg::LinalgOp>(op);
  for (unsigned loop = 0; loop < l.getNumLoops(); ++loop)
    node(op, loop);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    for (int64_t d = 0; type && d < type.getRank(); ++d) {
      auto loop = loopOfDim(l, operand, d);
      if (!loop)
        continue;
      auto tieTo = [&](Value v) {
        unsigned x = node(v.getAsOpaquePointer(), d), y = node(op, loop->first);
        join(x, y, loop->second);
      };
      if (!isFree(operand.get()))
        tieTo(operand.get());
      if (l.isDpsInit(&operand))
        tieTo(l.getTiedOpResult(&operand));
    }
  }
}

void Factors::addReshape(Operation *op) {
  bool expands = isa<tensor::ExpandShapeOp>(op);
  auto groups = expands ? cast<tensor::ExpandShapeOp>(op).getReassociationIndices()
                        : cast<tensor::CollapseShapeOp>(op).getReassociationIndices();
  Value wide = expands ? op->getResult(0) : op->getOperand(0);
  Value narrow = expands ? op->getOperand(0) : op->getResult(0);
  auto type = cast<RankedTensorType>(wide.getType());
  if (!type.hasStaticShape())
    return;
  for (auto [i, group] : llvm::enumerate(groups)) {
    auto [lead, inner] = leadOfGroup(type.getShape(), group);
    if (inner) // a group with an empty dim inside has no units
      joinDims(narrow, i, wide, lead, inner);
  }
}

void Factors::add(Operation *op, function_ref<bool(Value)> isFree) {
  if (isa<linalg::FillOp>(op))
    return;
  if (isa<linalg::LinalgOp>(op))
    return addLinalg(op, isFree);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return addReshape(op);
  for (const DimPair &pair : passingDims(op))
    if (!isFree(pair.operand->get()))
      joinDims(pair.operand->get(), pair.operandDim, op->getResult(0), pair.resultDim);
}

std::optional<Factors::Membership> Factors::find(Value value, unsigned dim) const {
  auto it = ids.find({value.getAsOpaquePointer(), dim});
  if (it == ids.end())
    return std::nullopt;
  return resolve(it->second);
}

std::optional<Factors::Membership> Factors::find(Operation *op, unsigned loop) const {
  auto it = ids.find({op, loop});
  if (it == ids.end())
    return std::nullopt;
  return resolve(it->second);
}

SmallVector<unsigned> Factors::factors() const {
  SmallVector<unsigned> roots;
  for (unsigned n = 0; n < nodes.size(); ++n)
    if (nodes[n].parent == n && !nodes[n].broken)
      roots.push_back(n);
  return roots;
}

int64_t Factors::smallestUnit(unsigned factor) const {
  int64_t unit = 1;
  for (unsigned n = 0; n < nodes.size(); ++n)
    if (Membership m = resolve(n); m.factor == factor)
      unit = std::lcm(unit, m.denominator);
  return unit;
}
