// flow-lower-vectors: vector ops to what LLVM has, math functions to polynomials.
#include "lib/Kernels/CPU/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace flow {
#define GEN_PASS_DEF_LOWERVECTORS
#include "lib/Kernels/CPU/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {

/// e^x to 1.2e-7 over the normal range, NaN and overflow kept, results below
/// 2^-125.5 flushed; shorter than upstream's pattern.
struct FastExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &b) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || !type.getElementType().isF32())
      return failure();
    Location loc = op.getLoc();
    auto intType = type.clone(b.getI32Type());
    auto f = [&](float v) -> Value {
      return arith::ConstantOp::create(b, loc, type, DenseElementsAttr::get(type, v));
    };
    auto i = [&](int v) -> Value {
      return arith::ConstantOp::create(b, loc, intType, DenseElementsAttr::get(intType, v));
    };
    auto fma = [&](Value x, Value y, Value z) -> Value {
      return math::FmaOp::create(b, loc, x, y, z);
    };
    auto clamp = [&](arith::CmpFPredicate p, Value x, Value y) -> Value {
      return arith::SelectOp::create(b, loc, arith::CmpFOp::create(b, loc, p, x, y), y, x);
    };
    Value x = clamp(arith::CmpFPredicate::OLT, op.getOperand(), f(-87.6f));
    x = clamp(arith::CmpFPredicate::OGT, x, f(89.4f));
    Value n = math::RoundEvenOp::create(b, loc, arith::MulFOp::create(b, loc, x, f(1.44269504f)));
    Value r = fma(n, f(-0.693359375f), x);
    r = fma(n, f(2.12194440e-4f), r);
    // Twice the Taylor series: the missing power of two keeps 2^(n-1) in range.
    Value p = f(2 * 1.3888889e-3f);
    for (double c : {8.3333333e-3, 4.1666667e-2, 1.6666667e-1, 0.5, 1.0, 1.0})
      p = fma(p, r, f(2 * c));
    Value e = arith::ShLIOp::create(
        b, loc, arith::AddIOp::create(b, loc, arith::FPToSIOp::create(b, loc, intType, n), i(126)),
        i(23));
    b.replaceOpWithNewOp<arith::MulFOp>(op, p, arith::BitcastOp::create(b, loc, type, e));
    return success();
  }
};

struct LowerVectors : flow::impl::LowerVectorsBase<LowerVectors> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    vector::populateVectorTransposeLoweringPatterns(patterns,
                                                    vector::VectorTransposeLowering::Shuffle16x16);
    vector::populateVectorMaskOpLoweringPatterns(patterns);
    vector::populateVectorBroadcastLoweringPatterns(patterns);
    vector::populateVectorShapeCastLoweringPatterns(patterns);
    patterns.add<FastExp>(&getContext(), PatternBenefit(10));
    populateMathPolynomialApproximationPatterns(patterns, MathPolynomialApproximationOptions());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    auto contract = [&](auto op) {
      op.setFastmath(op.getFastmath() | arith::FastMathFlags::contract);
    };
    getOperation().walk([&](Operation *op) {
      if (auto add = dyn_cast<arith::AddFOp>(op))
        contract(add);
      else if (auto mul = dyn_cast<arith::MulFOp>(op))
        contract(mul);
      else if (auto sub = dyn_cast<arith::SubFOp>(op))
        contract(sub);
      // The emulation of narrow floats sets flags that LLVM's casts do not have.
      else if (auto ext = dyn_cast<arith::ExtFOp>(op))
        ext.removeFastmathAttr();
      else if (auto trunc = dyn_cast<arith::TruncFOp>(op))
        trunc.removeFastmathAttr();
    });
  }
};

} // namespace
