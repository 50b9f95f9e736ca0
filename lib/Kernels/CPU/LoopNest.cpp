#include "lib/Kernels/CPU/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace flow;

/// Vectors that one walk sums side by side, to hide the latency of the adds.
static constexpr int64_t kUnroll = 4;
/// Points below which a nest runs on the calling thread alone.
static constexpr double kParallelWork = 1 << 16;

std::optional<vector::CombiningKind> flow::combiningKind(Operation *op) {
  using K = vector::CombiningKind;
  if (!op)
    return std::nullopt;
  if (isa<arith::AddFOp, arith::AddIOp>(op))
    return K::ADD;
  if (isa<arith::MulFOp, arith::MulIOp>(op))
    return K::MUL;
  if (isa<arith::MaximumFOp>(op))
    return K::MAXIMUMF;
  if (isa<arith::MinimumFOp>(op))
    return K::MINIMUMF;
  if (isa<arith::MaxNumFOp>(op))
    return K::MAXNUMF;
  if (isa<arith::MinNumFOp>(op))
    return K::MINNUMF;
  if (isa<arith::MaxSIOp>(op))
    return K::MAXSI;
  if (isa<arith::MinSIOp>(op))
    return K::MINSI;
  if (isa<arith::MaxUIOp>(op))
    return K::MAXUI;
  if (isa<arith::MinUIOp>(op))
    return K::MINUI;
  if (isa<arith::AndIOp>(op))
    return K::AND;
  if (isa<arith::OrIOp>(op))
    return K::OR;
  if (isa<arith::XOrIOp>(op))
    return K::XOR;
  return std::nullopt;
}

TypedAttr flow::identityOf(vector::CombiningKind kind, Type type) {
  using K = vector::CombiningKind;
  Builder b(type.getContext());
  if (auto f = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &s = f.getFloatSemantics();
    switch (kind) {
    case K::MUL:
      return b.getFloatAttr(type, 1.0);
    case K::MAXIMUMF:
      return b.getFloatAttr(type, APFloat::getInf(s, true));
    case K::MINIMUMF:
      return b.getFloatAttr(type, APFloat::getInf(s, false));
    // maxnum(NaN, x) = x.
    case K::MAXNUMF:
    case K::MINNUMF:
      return b.getFloatAttr(type, APFloat::getNaN(s));
    default:
      return b.getFloatAttr(type, 0.0);
    }
  }
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  switch (kind) {
  case K::MUL:
    return b.getIntegerAttr(type, APInt(bits, 1));
  case K::MAXSI:
    return b.getIntegerAttr(type, APInt::getSignedMinValue(bits));
  case K::MINSI:
    return b.getIntegerAttr(type, APInt::getSignedMaxValue(bits));
  case K::MINUI:
  case K::AND:
    return b.getIntegerAttr(type, APInt::getAllOnes(bits));
  default:
    return b.getIntegerAttr(type, APInt::getZero(bits));
  }
}

LoopNest::LoopNest(Kernel &kernel, ArrayRef<int64_t> extents, ArrayRef<bool> sums,
                   ArrayRef<NestOutput> outputs)
    : kernel(kernel), b(kernel.builder), loc(kernel.function.getLoc()), extents(extents),
      sums(sums), splittable(extents.size(), true), outputs(outputs), fixed(extents.size()) {}

Value LoopNest::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

template <class F> void LoopNest::loop(Value lo, Value hi, int64_t step, F body) {
  auto l = scf::ForOp::create(b, loc, lo, hi, constant(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(l.getBody());
  body(l.getInductionVar());
}

void LoopNest::forEachRoot(llvm::function_ref<void(const Formula *)> f) {
  for (const NestOutput &out : outputs) {
    f(out.access);
    f(out.value);
    if (out.init)
      f(out.init);
  }
}

/// Loop x directly around loop y is walked by y alone where every access steps
/// evenly: stride of x = stride of y * extent of y.
void LoopNest::mergeLoops() {
  auto even = [&](unsigned x, unsigned y) {
    bool ok = true;
    forEachRoot([&](const Formula *root) { ok &= stepsEvenly(root, x, y, extents[y]); });
    return ok;
  };
  for (int y = (int)extents.size() - 1; y > 0; --y) {
    if (extents[y] <= 0 || fixed[y])
      continue;
    int x = y - 1;
    while (x >= 0 && extents[x] == 1)
      --x;
    if (x < 0 || fixed[x] || sums[x] != sums[y] || !even(x, y))
      continue;
    // y walks both; x is moved out of the way.
    extents[y] *= extents[x];
    extents[x] = 1;
    splittable[y] = splittable[y] && splittable[x];
    ++y;
  }
}

int64_t LoopNest::lanesFor(int loop) {
  bool f64 = false, f32 = false;
  unsigned bits = 8;
  auto see = [&](Type t, bool moves) {
    f64 |= t.isF64();
    f32 |= t.isF32();
    if (moves && t.isIntOrFloat())
      bits = std::max(bits, t.getIntOrFloatBitWidth());
  };
  forEachRoot([&](const Formula *root) {
    forEachFormula(root, [&](const Formula &f) {
      see(f.type, f.kind == Formula::Memory && f.index.isFunctionOfDim(loop));
    });
  });
  unsigned width = f64 ? 64 : f32 ? 32 : bits;
  return std::max<int64_t>(1, kernel.target.vectorBits / width);
}

bool LoopNest::canMask(int loop) {
  bool ok = true;
  forEachRoot([&](const Formula *root) {
    ok &= !hasTrap(root);
    forEachFormula(root, [&](const Formula &f) {
      if (f.kind == Formula::Memory && coefficient(f.index, loop) != 0) {
        unsigned bits = f.type.isIntOrFloat() ? f.type.getIntOrFloatBitWidth() : 0;
        ok &= bits == 32 || bits == 64;
      }
    });
  });
  for (const NestOutput &out : outputs)
    ok &= sums[loop] || coefficient(out.access->index, loop) == 1;
  return ok;
}

double LoopNest::costAlong(int loop) {
  int64_t width = lanesFor(loop), extent = extents[loop];
  double cost = 0;
  for (const NestOutput &out : outputs) {
    cost += vectorCost(out.value, loop, width);
    if (!sums[loop]) {
      auto c = coefficient(out.access->index, loop);
      cost += c == 1 && !out.access->type.isInteger(1) ? 1 : 2.0 * width;
    }
  }
  if (sums[loop])
    cost += 12.0 * width / std::max<int64_t>(extent, 1);
  double full = extent / width, rest = extent % width;
  double rounds = full + (rest == 0 ? 0 : canMask(loop) ? 1.2 : rest);
  return cost * rounds / std::max<int64_t>(extent, 1);
}

void LoopNest::chooseLane() {
  bool vectorizable = true;
  forEachRoot([&](const Formula *root) { vectorizable &= isVectorizable(root); });
  if (!vectorizable)
    return;
  double best = 0;
  for (const NestOutput &out : outputs)
    best += vectorCost(out.value, 0, 1) + 1;
  for (int loop = (int)extents.size() - 1; loop >= 0; --loop) {
    if (extents[loop] < 3 || fixed[loop])
      continue;
    int64_t width = lanesFor(loop);
    if (width < 2)
      continue;
    bool ok = true;
    for (const NestOutput &out : outputs) {
      if (sums[loop]) {
        ok &= !ordered && out.combiner && combiningKind(out.combiner) && out.accumulator;
      } else {
        auto c = coefficient(out.access->index, loop);
        // Lanes must not write one element twice.
        ok &= c && *c != 0;
        ok &= splittable[loop] || !ordered;
      }
    }
    if (!ok)
      continue;
    double cost = costAlong(loop);
    if (cost < best * 0.95) {
      best = cost;
      lane = loop;
      lanes = width;
    }
  }
  if (lane >= 0)
    maskable = canMask(lane);
}

int64_t LoopNest::chunkCount() {
  double work = 1;
  for (int64_t extent : extents)
    work *= extent;
  double ops = 0;
  for (const NestOutput &out : outputs)
    ops += vectorCost(out.value, 0, 1);
  if (alone || kernel.target.chunks <= 1 || work * ops < kParallelWork)
    return 1;
  for (unsigned d = 0; d < extents.size(); ++d) {
    if (sums[d] || !splittable[d] || extents[d] == 1)
      continue;
    int64_t pieces = (int)d == lane ? extents[d] / (lanes * kUnroll) : extents[d];
    if (pieces < 2)
      continue;
    split = d;
    return std::min<int64_t>(kernel.target.chunks, pieces);
  }
  return 1;
}

void LoopNest::emit() {
  for (auto [d, extent] : llvm::enumerate(extents))
    if (!sums[d] && extent == 0)
      return;
  mergeLoops();
  chooseLane();
  for (unsigned d = 0; d < extents.size(); ++d) {
    if ((int)d == lane || extents[d] == 1 || fixed[d])
      continue;
    (sums[d] ? inner : outer).push_back(d);
  }
  int64_t chunks = chunkCount();
  kernel.parallel(chunks, [&](Value chunk) {
    loc = kernel.function.getLoc();
    iv.assign(extents.size(), constant(0));
    for (auto [d, v] : llvm::enumerate(fixed))
      if (v)
        iv[d] = v;
    if (split >= 0) {
      int64_t unit = split == lane ? lanes * kUnroll : 1;
      int64_t units = (extents[split] + unit - 1) / unit;
      AffineExpr c = b.getAffineDimExpr(0);
      Evaluator e(b, loc, kernel);
      from = e.apply((c * units).floorDiv(chunks) * unit, {chunk});
      to = e.apply(((c + 1) * units).floorDiv(chunks) * unit, {chunk});
      to = arith::MinUIOp::create(b, loc, to, constant(extents[split]));
    }
    emitOuter(0);
  });
}

void LoopNest::emitOuter(unsigned depth) {
  if (depth == outer.size()) {
    if (lane >= 0 && !sums[lane])
      emitLaneLoop();
    else if (lane >= 0)
      emitRowSums();
    else
      emitPoints(1, 1, {});
    return;
  }
  unsigned d = outer[depth];
  bool cut = (int)d == split;
  loop(cut ? from : constant(0), cut ? to : constant(extents[d]), 1, [&](Value i) {
    iv[d] = i;
    emitOuter(depth + 1);
  });
}

/// The lane loop: blocks of several vectors if there are sums, then vectors, then the rest.
void LoopNest::emitLaneLoop() {
  int64_t unroll = inner.empty() ? 1 : kUnroll;
  Value lo = constant(0), end = constant(extents[lane]);
  if (lane == split)
    lo = from, end = to;
  AffineExpr x = b.getAffineDimExpr(0), y = b.getAffineDimExpr(1);
  Evaluator e(b, loc, kernel);
  auto upTo = [&](Value start, int64_t step) {
    return e.apply(y + (x - y).floorDiv(step) * step, {end, start});
  };
  if (unroll > 1 && extents[lane] >= lanes * unroll) {
    Value hi = upTo(lo, lanes * unroll);
    loop(lo, hi, lanes * unroll, [&](Value i) {
      iv[lane] = i;
      emitPoints(lanes, unroll, {});
    });
    lo = hi;
  }
  Value hi = upTo(lo, lanes);
  loop(lo, hi, lanes, [&](Value i) {
    iv[lane] = i;
    emitPoints(lanes, 1, {});
  });
  if (extents[lane] % lanes == 0)
    return;
  if (!maskable) {
    loop(hi, end, 1, [&](Value i) {
      iv[lane] = i;
      emitPoints(1, 1, {});
    });
    return;
  }
  auto tail = [&] {
    iv[lane] = hi;
    Value rest = arith::SubIOp::create(b, loc, end, hi);
    emitPoints(lanes, 1,
               vector::CreateMaskOp::create(b, loc, VectorType::get({lanes}, b.getI1Type()),
                                            ValueRange{rest}));
  };
  if (lane != split)
    return tail();
  // Only the last chunk has a rest.
  loop(hi, end, lanes, [&](Value) { tail(); });
}

/// Nested sum loops around `body`, innermost last.
LoopNest::Values LoopNest::emitSums(unsigned depth, Values carried,
                                    llvm::function_ref<Values(Values)> body) {
  if (depth == inner.size())
    return body(carried);
  unsigned d = inner[depth];
  auto l = scf::ForOp::create(b, loc, constant(0), constant(extents[d]), constant(1), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(l.getBody());
  Value saved = iv[d];
  iv[d] = l.getInductionVar();
  Values next = emitSums(depth + 1, Values(l.getRegionIterArgs()), body);
  iv[d] = saved;
  if (!carried.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(l.getResults());
}

/// New accumulators of one vector (or point) with the lane loop at `at`.
LoopNest::Values LoopNest::step(int64_t width, Value mask, Value at, ValueRange accumulators) {
  Evaluator e(b, loc, kernel);
  e.lanes = width;
  e.laneLoop = lane;
  e.laneExtent = lane >= 0 ? extents[lane] : 0;
  e.mask = mask;
  e.iv = iv;
  if (lane >= 0)
    e.iv[lane] = at;
  for (auto [out, acc] : llvm::zip(outputs, accumulators))
    if (out.accumulator)
      e.known[out.accumulator] = acc;
  Values next;
  for (const NestOutput &out : outputs)
    next.push_back(e.evalVector(out.value));
  return next;
}

/// `unroll` vectors (or one point) of every output.
void LoopNest::emitPoints(int64_t width, int64_t unroll, Value mask) {
  SmallVector<Value> at;
  for (int64_t u = 0; u < unroll; ++u)
    at.push_back(lane < 0 ? Value()
                 : u      ? Value(arith::AddIOp::create(b, loc, iv[lane], constant(u * width)))
                          : iv[lane]);
  auto evaluatorAt = [&](Value position) {
    Evaluator e(b, loc, kernel);
    e.lanes = width;
    e.laneLoop = lane;
    e.laneExtent = lane >= 0 ? extents[lane] : 0;
    e.mask = mask;
    e.iv = iv;
    if (lane >= 0)
      e.iv[lane] = position;
    return e;
  };
  Values carried;
  for (Value position : at) {
    Evaluator e = evaluatorAt(position);
    for (const NestOutput &out : outputs)
      carried.push_back(out.init ? e.evalVector(out.init) : Value());
  }
  auto body = [&](Values accs) {
    Values next;
    for (auto [u, position] : llvm::enumerate(at))
      next.append(
          step(width, mask, position, ValueRange(accs).slice(u * outputs.size(), outputs.size())));
    return next;
  };
  Values values;
  if (inner.empty() && llvm::any_of(outputs, [](const NestOutput &o) { return !o.init; })) {
    // A plain map: nothing to carry.
    for (Value position : at) {
      Evaluator e = evaluatorAt(position);
      for (auto [o, out] : llvm::enumerate(outputs))
        if (out.accumulator && carried[o])
          e.known[out.accumulator] = carried[o];
      for (const NestOutput &out : outputs)
        values.push_back(e.evalVector(out.value));
    }
  } else {
    values = emitSums(0, carried, body);
  }
  for (auto [u, position] : llvm::enumerate(at)) {
    Evaluator e = evaluatorAt(position);
    for (auto [o, out] : llvm::enumerate(outputs))
      e.store(values[u * outputs.size() + o], out.access);
  }
}

/// One element of each output: vectors of partial sums along the lane loop, added at the end.
void LoopNest::emitRowSums() {
  int64_t extent = extents[lane], unroll = extent >= 2 * kUnroll * lanes ? kUnroll : 1;
  Evaluator scalar(b, loc, kernel);
  scalar.iv = iv;
  Values start, identity;
  for (const NestOutput &out : outputs) {
    start.push_back(scalar.eval(out.init));
    auto type = VectorType::get({lanes}, out.access->type);
    identity.push_back(arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(
            type, Attribute(identityOf(*combiningKind(out.combiner), out.access->type)))));
  }
  Values accs;
  for (int64_t u = 0; u < unroll; ++u)
    accs.append(identity);
  unsigned count = outputs.size();
  auto walk = [&](Values carried, int64_t lo, int64_t hi, int64_t vectors, Value mask) {
    auto l =
        scf::ForOp::create(b, loc, constant(lo), constant(hi), constant(vectors * lanes), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(l.getBody());
    Values next;
    for (int64_t u = 0; u < vectors; ++u) {
      Value at = u ? Value(arith::AddIOp::create(b, loc, l.getInductionVar(), constant(u * lanes)))
                   : l.getInductionVar();
      Values old(l.getRegionIterArgs().slice(u * count, count));
      Values now = step(lanes, mask, at, old);
      if (mask)
        for (auto [n, o] : llvm::zip(now, old))
          n = arith::SelectOp::create(b, loc, mask, n, o);
      next.append(now);
    }
    scf::YieldOp::create(b, loc, next);
    return Values(l.getResults());
  };
  int64_t block = unroll * lanes, main = extent / block * block, full = extent / lanes * lanes;
  accs = emitSums(0, accs, [&](Values carried) {
    if (main)
      carried = walk(carried, 0, main, unroll, {});
    Values first(carried.begin(), carried.begin() + count);
    if (full > main)
      first = walk(first, main, full, 1, {});
    if (extent > full && maskable) {
      Value mask = vector::CreateMaskOp::create(b, loc, VectorType::get({lanes}, b.getI1Type()),
                                                ValueRange{constant(extent - full)});
      first = walk(first, full, extent, 1, mask);
    }
    llvm::copy(first, carried.begin());
    return carried;
  });
  auto combine = [&](Operation *combiner, Value x, Value y) {
    Operation *copy = b.clone(*combiner);
    copy->setOperands({x, y});
    copy->getResult(0).setType(x.getType());
    return copy->getResult(0);
  };
  Values results;
  for (auto [o, out] : llvm::enumerate(outputs)) {
    Value sum = accs[o];
    for (int64_t u = 1; u < unroll; ++u)
      sum = combine(out.combiner, sum, accs[u * count + o]);
    auto flags = isa<FloatType>(out.access->type) ? arith::FastMathFlags::reassoc
                                                  : arith::FastMathFlags::none;
    Value total = vector::ReductionOp::create(b, loc, *combiningKind(out.combiner), sum, flags);
    results.push_back(combine(out.combiner, start[o], total));
  }
  if (extent > full && !maskable) {
    results = emitSums(0, results, [&](Values carried) {
      auto l = scf::ForOp::create(b, loc, constant(full), constant(extent), constant(1), carried);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(l.getBody());
      scf::YieldOp::create(b, loc, step(1, {}, l.getInductionVar(), l.getRegionIterArgs()));
      return Values(l.getResults());
    });
  }
  for (auto [o, out] : llvm::enumerate(outputs))
    scalar.store(results[o], out.access);
}
