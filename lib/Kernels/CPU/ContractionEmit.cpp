// The code of a contraction: blocks, packing, register tiles.
#include "lib/Kernels/CPU/ContractionNest.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace flow;

Value ContractionNest::constant(int64_t v) {
  return arith::ConstantIndexOp::create(b, loc, v);
}

Value ContractionNest::affine(AffineExpr e, ValueRange v) {
  SmallVector<OpFoldResult> operands(v.begin(), v.end());
  return getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(b, loc, AffineMap::get(operands.size(), 0, e),
                                            operands));
}

Value ContractionNest::plus(Value v, int64_t c) {
  return c ? affine(b.getAffineDimExpr(0) + c, v) : v;
}

template <class F> void ContractionNest::loop(Value lo, Value hi, int64_t step, F body) {
  auto l = scf::ForOp::create(b, loc, lo, hi, constant(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(l.getBody());
  body(l.getInductionVar());
}

ContractionNest::Range ContractionNest::whole(unsigned l) {
  return {l, constant(0), constant(ext[l])};
}

/// Loops over `ranges`, outermost first, with values carried through all.
ContractionNest::Values ContractionNest::nest(ArrayRef<Range> ranges, Values carried,
                                              llvm::function_ref<Values(Values)> body) {
  if (ranges.empty())
    return body(carried);
  const Range &r = ranges.front();
  auto l = scf::ForOp::create(b, loc, r.lo, r.hi, constant(1), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(l.getBody());
  Value saved = iv[r.loop];
  iv[r.loop] = l.getInductionVar();
  Values next = nest(ranges.drop_front(), Values(l.getRegionIterArgs()), body);
  iv[r.loop] = saved;
  if (!carried.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(l.getResults());
}

Evaluator ContractionNest::evaluator(bool vector, Value mask) {
  Evaluator e(b, loc, kernel);
  e.iv = iv;
  if (vector) {
    e.lanes = lanes;
    e.laneLoop = n.back();
    e.laneExtent = ext[n.back()];
    e.mask = mask;
  }
  return e;
}

Value ContractionNest::widen(Value v) {
  if (getElementTypeOrSelf(v.getType()) == accType)
    return v;
  Type to = accType;
  if (auto vector = dyn_cast<VectorType>(v.getType()))
    to = VectorType::get(vector.getShape(), accType);
  return arith::ExtFOp::create(b, loc, to, v);
}

SmallVector<ContractionNest::Range> ContractionNest::sumRanges(Value k0, Value k1) {
  SmallVector<Range> ranges;
  for (auto [i, d] : llvm::enumerate(ArrayRef(k).drop_front(outerSums)))
    ranges.push_back(i ? whole(d) : Range{d, k0, k1});
  return ranges;
}

/// Position of the current sum within its block.
Value ContractionNest::flatSum(Value k0) {
  SmallVector<Value> values{iv[k[outerSums]], k0};
  AffineExpr e = b.getAffineDimExpr(0) - b.getAffineDimExpr(1);
  for (unsigned d : ArrayRef(k).drop_front(outerSums + 1)) {
    e = e * ext[d] + b.getAffineDimExpr(values.size());
    values.push_back(iv[d]);
  }
  return affine(e, values);
}

Value ContractionNest::panelAddress(const Columns &c, Value panel, Value kf, int64_t column) {
  int64_t width = c.nv() * lanes;
  AffineExpr e = (b.getAffineDimExpr(0) * (sumStep * sumInner) + b.getAffineDimExpr(1)) * width +
                 column + b.getAffineDimExpr(2);
  return affine(e, {panel, kf, packedB.dynamicOffset});
}

/// Is this the first (last) block of all sums?
Value ContractionNest::edge(Value v, bool last) {
  auto equal = [&](Value x, int64_t y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, constant(y));
  };
  Value r = equal(v, last ? ext[k[outerSums]] : 0);
  for (unsigned d : ArrayRef(k).take_front(outerSums))
    r = arith::AndIOp::create(b, loc, r, equal(iv[d], last ? ext[d] - 1 : 0));
  return r;
}

void ContractionNest::emitOuter() {
  AffineExpr x = b.getAffineDimExpr(0);
  SmallVector<Range> ranges;
  for (unsigned d : batch)
    ranges.push_back(whole(d));
  for (unsigned d : n)
    if (d != n.back() && (int)d != second)
      ranges.push_back(whole(d));
  if (share == Share::Outer) {
    int64_t extent = ext[ranges[0].loop];
    ranges[0].lo = affine((x * extent).floorDiv(chunks), chunk);
    ranges[0].hi = affine(((x + 1) * extent).floorDiv(chunks), chunk);
  }
  for (unsigned d : window)
    ranges.push_back(whole(d));
  auto columns = [&](int64_t rows2) {
    int64_t width = tileVectors * lanes, full = ext[n.back()] / width, rest = ext[n.back()] % width;
    if (full)
      emitColumns({0, full, tileVectors, width, rows2});
    if (!rest)
      return;
    Columns narrow{full * width, 1, (int64_t)llvm::divideCeil(rest, lanes), rest, rows2};
    if (share != Share::Panels)
      return emitColumns(narrow);
    // One chunk takes the narrow panel.
    Value mine =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, chunk, constant(chunks - 1));
    auto branch = scf::IfOp::create(b, loc, mine);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitColumns(narrow);
  };
  nest(ranges, {}, [&](Values) {
    if (second < 0) {
      columns(1);
      return Values();
    }
    int64_t main = ext[second] / tileRows2 * tileRows2;
    Value saved = iv[second];
    loop(constant(0), constant(main), tileRows2, [&](Value i) {
      iv[second] = i;
      columns(tileRows2);
    });
    if (main < ext[second]) {
      iv[second] = constant(main);
      columns(ext[second] - main);
    }
    iv[second] = saved;
    return Values();
  });
}

void ContractionNest::emitColumns(const Columns &c) {
  unsigned nT = n.back();
  int64_t width = c.vectors * lanes;
  Value mask;
  if (c.valid % lanes)
    mask = vector::CreateMaskOp::create(b, loc, VectorType::get({lanes}, b.getI1Type()),
                                        ValueRange{constant(c.valid % lanes)});
  Value j0 = constant(0), j1 = constant(c.count);
  AffineExpr x = b.getAffineDimExpr(0);
  if (share == Share::Panels && c.base == 0) {
    j0 = affine((x * c.count).floorDiv(chunks), chunk);
    j1 = affine(((x + 1) * c.count).floorDiv(chunks), chunk);
  }
  SmallVector<Range> outerRows;
  for (unsigned d : ArrayRef(m).drop_back())
    outerRows.push_back(whole(d));
  Value saved = iv[nT];
  if (direct) {
    loop(j0, j1, 1, [&](Value j) {
      nest(outerRows, {}, [&](Values) {
        emitRowGroups(c, mask, j, plus(j, 1), constant(0), constant(ext[k[0]]));
        return Values();
      });
    });
    iv[nT] = saved;
    return;
  }
  int64_t step = c.base == 0 ? panelCapacity() : 1;
  loop(j0, j1, step, [&](Value jb) {
    Value je = arith::MinUIOp::create(b, loc, plus(jb, step), j1);
    SmallVector<Range> outer;
    for (unsigned d : ArrayRef(k).take_front(outerSums))
      outer.push_back(whole(d));
    nest(outer, {}, [&](Values) {
      int64_t extent = ext[k[outerSums]];
      loop(constant(0), constant(extent), sumStep, [&](Value k0) {
        Value k1 = arith::MinUIOp::create(b, loc, plus(k0, sumStep), constant(extent));
        loop(jb, je, 1, [&](Value j) {
          iv[nT] = affine(x * width + c.base, j);
          Value panel = arith::SubIOp::create(b, loc, j, jb);
          bool byRows = B->kind == Formula::Memory && stride(B, nT) != 1 &&
                        stride(B, k.back()) == 1 && ext[k.back()] >= lanes;
          if (byRows)
            packTransposed(c, mask, panel, k0, k1);
          else
            packPanel(c, mask, panel, k0, k1);
        });
        nest(outerRows, {}, [&](Values) {
          emitRowGroups(c, mask, jb, je, k0, k1);
          return Values();
        });
      });
      return Values();
    });
  });
  iv[nT] = saved;
}

/// All rows against panels j0 to j1: panels of mr and mr + 1 rows, no masks.
void ContractionNest::emitRowGroups(const Columns &c, Value mask, Value j0, Value j1, Value k0,
                                    Value k1) {
  unsigned nT = n.back(), mT = m.back();
  int64_t rows = ext[mT], most = rowsPerTile(c.nv()), panels = llvm::divideCeil(rows, most);
  int64_t few = rows / panels, more = rows - few * panels, width = c.vectors * lanes;
  AffineExpr x = b.getAffineDimExpr(0), y = b.getAffineDimExpr(1);
  Value savedRow = iv[mT], savedColumn = iv[nT];
  auto group = [&](int64_t mr, int64_t base, int64_t count) {
    if (!count)
      return;
    Value lo = constant(0), hi = constant(count);
    if (share == Share::Rows) {
      lo = affine((x * count).floorDiv(chunks), chunk);
      hi = affine(((x + 1) * count).floorDiv(chunks), chunk);
    }
    int64_t step = direct ? count : std::min(count, std::max<int64_t>(1, kRowBlock / mr));
    loop(lo, hi, step, [&](Value ib) {
      Value ie = arith::MinUIOp::create(b, loc, plus(ib, step), hi);
      if (packRows)
        packRowBlock(affine(x * mr + base, ib), affine((x - y) * mr, {ie, ib}), k0, k1);
      loop(j0, j1, 1, [&](Value j) {
        Value panel = arith::SubIOp::create(b, loc, j, j0);
        loop(ib, ie, 1, [&](Value i) {
          iv[nT] = affine(x * width + c.base, j);
          iv[mT] = affine(x * mr + base, i);
          Value packedRow = packRows ? affine((x - y) * mr, {i, ib}) : Value();
          emitTile(c, mr, mask, panel, k0, k1, packedRow);
        });
      });
    });
  };
  group(few + 1, 0, more);
  group(few, more * (few + 1), panels - more);
  iv[mT] = savedRow;
  iv[nT] = savedColumn;
}

void ContractionNest::emitTile(const Columns &c, int64_t mr, Value mask, Value panel, Value k0,
                               Value k1, Value packedRow) {
  unsigned nT = n.back(), mT = m.back();
  auto type = VectorType::get({lanes}, accType);
  Value row = iv[mT], column = iv[nT], row2 = second >= 0 ? iv[second] : Value();
  auto restore = [&] {
    iv[mT] = row;
    iv[nT] = column;
    if (second >= 0)
      iv[second] = row2;
  };
  auto columnAt = [&](int64_t v) -> Value {
    if (second >= 0)
      iv[second] = plus(row2, v / c.vectors);
    iv[nT] = plus(column, v % c.vectors * lanes);
    return v % c.vectors + 1 == c.vectors ? mask : Value();
  };
  auto each = [&](llvm::function_ref<void(int64_t, Value)> f) {
    for (int64_t r = 0; r < mr; ++r) {
      iv[mT] = plus(row, r);
      for (int64_t v = 0; v < c.nv(); ++v) {
        Value masked = columnAt(v);
        f(r * c.nv() + v, masked);
      }
    }
    restore();
  };
  auto load = [&](const Formula *f) {
    Values acc;
    each([&](int64_t, Value masked) {
      Evaluator e = evaluator(true, masked);
      acc.push_back(e.evalVector(f));
    });
    return acc;
  };
  const Formula *start = scatters() ? partial : init;
  Values acc;
  if (!blocked() || scatters()) {
    acc = load(start);
  } else {
    auto branch =
        scf::IfOp::create(b, loc, SmallVector<Type>(mr * c.nv(), type), edge(k0, false), true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, loc, load(start));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, load(partial));
    acc = Values(branch.getResults());
  }
  acc = nest(sumRanges(k0, k1), acc, [&](Values old) {
    Values columns, next;
    Value kf = direct ? Value() : flatSum(k0);
    for (int64_t v = 0; v < c.nv(); ++v) {
      if (direct) {
        Value masked = columnAt(v);
        columns.push_back(evaluator(true, masked).eval(B));
      } else {
        columns.push_back(vector::LoadOp::create(b, loc, type, packedB.base,
                                                 panelAddress(c, panel, kf, v * lanes)));
      }
    }
    restore();
    for (int64_t r = 0; r < mr; ++r) {
      iv[mT] = plus(row, r);
      Value a;
      if (packedRow) {
        AffineExpr e = (b.getAffineDimExpr(0) + r) * (sumStep + 16) + b.getAffineDimExpr(1) +
                       b.getAffineDimExpr(2);
        a = memref::LoadOp::create(b, loc, packedA.base,
                                   affine(e, {packedRow, kf, packedA.dynamicOffset}));
      } else {
        a = widen(evaluator(false).eval(A));
      }
      Value broadcast = vector::BroadcastOp::create(b, loc, type, a);
      for (int64_t v = 0; v < c.nv(); ++v)
        next.push_back(vector::FMAOp::create(b, loc, broadcast, columns[v], old[r * c.nv() + v]));
    }
    restore();
    return next;
  });
  auto finish = [&] {
    each([&](int64_t i, Value masked) {
      Evaluator e = evaluator(true, masked);
      e.known[op->getResult(0)] = acc[i];
      Values values;
      for (const ContractionOutput &out : outputs)
        values.push_back(e.evalVector(out.value));
      for (auto [out, v] : llvm::zip(outputs, values))
        e.store(v, out.access);
    });
  };
  auto keep = [&] {
    each([&](int64_t i, Value masked) { evaluator(true, masked).store(acc[i], partial); });
  };
  if (scatters())
    return keep();
  if (!blocked())
    return finish();
  if (outputs.size() == 1 && outputs[0].value->kind == Formula::Known &&
      outputs[0].access->place == partial->place && outputs[0].access->index == partial->index)
    return keep();
  auto branch = scf::IfOp::create(b, loc, edge(k1, true), true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  finish();
  b.setInsertionPointToStart(branch.elseBlock());
  keep();
}

/// Columns of a panel become adjacent, sum by sum.
void ContractionNest::packPanel(const Columns &c, Value mask, Value panel, Value k0, Value k1) {
  unsigned nT = n.back();
  Value column = iv[nT], row2 = second >= 0 ? iv[second] : Value();
  nest(sumRanges(k0, k1), {}, [&](Values) {
    Value kf = flatSum(k0);
    for (int64_t v = 0; v < c.nv(); ++v) {
      if (second >= 0)
        iv[second] = plus(row2, v / c.vectors);
      iv[nT] = plus(column, v % c.vectors * lanes);
      Evaluator e = evaluator(true, v % c.vectors + 1 == c.vectors ? mask : Value());
      vector::StoreOp::create(b, loc, widen(e.evalVector(B)), packedB.base,
                              panelAddress(c, panel, kf, v * lanes));
    }
    return Values();
  });
  iv[nT] = column;
  if (second >= 0)
    iv[second] = row2;
}

/// The same where rows of B run along the innermost sum: square blocks are
/// transposed in registers.
void ContractionNest::packTransposed(const Columns &c, Value mask, Value panel, Value k0,
                                     Value k1) {
  unsigned nT = n.back(), kT = k.back();
  Value column = iv[nT], row2 = second >= 0 ? iv[second] : Value();
  auto type = VectorType::get({lanes}, B->type);
  auto square = VectorType::get({lanes, lanes}, B->type);
  auto at = [&](int64_t v, int64_t lane) {
    if (second >= 0)
      iv[second] = plus(row2, v / c.vectors);
    Value x = plus(column, v % c.vectors * lanes + lane);
    iv[nT] = mask ? Value(arith::MinUIOp::create(b, loc, x, constant(ext[nT] - 1))) : x;
  };
  SmallVector<Range> ranges = sumRanges(k0, k1);
  Range inner = ranges.pop_back_val();
  nest(ranges, {}, [&](Values) {
    AffineExpr x = b.getAffineDimExpr(0), y = b.getAffineDimExpr(1);
    Value main = affine(y + (x - y).floorDiv(lanes) * lanes, {inner.hi, inner.lo});
    for (int64_t v = 0; v < c.nv(); ++v) {
      loop(inner.lo, main, lanes, [&](Value kk) {
        iv[kT] = kk;
        Value block = arith::ConstantOp::create(b, loc, square, b.getZeroAttr(square));
        for (int64_t lane = 0; lane < lanes; ++lane) {
          at(v, lane);
          Value line =
              vector::LoadOp::create(b, loc, type, B->place.base, evaluator(false).linear(B, iv));
          block = vector::InsertOp::create(b, loc, line, block, ArrayRef<int64_t>{lane});
        }
        Value turned = vector::TransposeOp::create(b, loc, block, ArrayRef<int64_t>{1, 0});
        for (int64_t lane = 0; lane < lanes; ++lane) {
          iv[kT] = plus(kk, lane);
          Value line = vector::ExtractOp::create(b, loc, turned, ArrayRef<int64_t>{lane});
          vector::StoreOp::create(b, loc, widen(line), packedB.base,
                                  panelAddress(c, panel, flatSum(k0), v * lanes));
        }
      });
      loop(main, inner.hi, 1, [&](Value kk) {
        iv[kT] = kk;
        Value kf = flatSum(k0);
        for (int64_t lane = 0; lane < lanes; ++lane) {
          at(v, lane);
          memref::StoreOp::create(b, loc, widen(evaluator(false).eval(B)), packedB.base,
                                  panelAddress(c, panel, kf, v * lanes + lane));
        }
      });
    }
    return Values();
  });
  iv[nT] = column;
  if (second >= 0)
    iv[second] = row2;
}

/// Rows of A become adjacent.
void ContractionNest::packRowBlock(Value row0, Value rows, Value k0, Value k1) {
  unsigned mT = m.back(), kT = k[0];
  Value saved = iv[mT], savedSum = iv[kT];
  auto type = VectorType::get({lanes}, accType);
  AffineExpr x = b.getAffineDimExpr(0), y = b.getAffineDimExpr(1);
  Value length = affine(x - y, {k1, k0}), main = affine(x.floorDiv(lanes) * lanes, length);
  loop(constant(0), rows, 1, [&](Value r) {
    iv[mT] = affine(x + y, {row0, r});
    auto address = [&](Value q) {
      return affine(x * (sumStep + 16) + y + b.getAffineDimExpr(2), {r, q, packedA.dynamicOffset});
    };
    loop(constant(0), main, lanes, [&](Value q) {
      iv[kT] = affine(x + y, {k0, q});
      Value line =
          vector::LoadOp::create(b, loc, type, A->place.base, evaluator(false).linear(A, iv));
      vector::StoreOp::create(b, loc, line, packedA.base, address(q));
    });
    loop(main, length, 1, [&](Value q) {
      iv[kT] = affine(x + y, {k0, q});
      memref::StoreOp::create(
          b, loc, memref::LoadOp::create(b, loc, A->place.base, evaluator(false).linear(A, iv)),
          packedA.base, address(q));
    });
  });
  iv[mT] = saved;
  iv[kT] = savedSum;
}
