#include "lib/Driver/ModelShapes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace flow {

std::vector<std::pair<std::string, int64_t>> setInputShapes(ModuleOp module,
                                                            const ArrayShapes &shapes) {
  std::vector<std::pair<std::string, int64_t>> named;
  auto main = module.lookupSymbol<func::FuncOp>("main");
  for (unsigned i = 0; main && i < main.getNumArguments(); ++i) {
    auto name = main.getArgAttrOfType<StringAttr>(i, "flow.name");
    auto type = dyn_cast<RankedTensorType>(main.getArgument(i).getType());
    auto array = llvm::find_if(
        shapes, [&](const auto &entry) { return name && entry.first == name.getValue(); });
    if (array == shapes.end() || !type || array->second.size() != size_t(type.getRank()))
      continue;
    auto names = main.getArgAttrOfType<ArrayAttr>(i, "flow.dims");
    SmallVector<int64_t> shape(type.getShape());
    for (auto [d, extent] : llvm::enumerate(array->second)) {
      if (!type.isDynamicDim(d))
        continue;
      auto dim = names && d < names.size() ? dyn_cast<StringAttr>(names[d]) : StringAttr();
      if (!dim || dim.empty())
        shape[d] = extent;
      else if (llvm::none_of(named, [&](auto &entry) { return entry.first == dim.getValue(); }))
        named.emplace_back(dim.str(), extent);
    }
    main.getArgument(i).setType(type.clone(shape));
  }
  if (main)
    main.setType(FunctionType::get(module.getContext(), main.front().getArgumentTypes(),
                                   main.getResultTypes()));
  return named;
}

} // namespace flow
