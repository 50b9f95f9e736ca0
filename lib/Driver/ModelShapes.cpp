#include "lib/Driver/ModelShapes.h"
#include "lib/Driver/Failure.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace flow {

llvm::Error checkInputShapes(ModuleOp module, const ArrayShapes &shapes) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  for (unsigned i = 0; main && i < main.getNumArguments(); ++i) {
    auto name = main.getArgAttrOfType<StringAttr>(i, "flow.name");
    auto kind = main.getArgAttrOfType<StringAttr>(i, "flow.kind");
    auto type = dyn_cast<RankedTensorType>(main.getArgument(i).getType());
    if (!name || !kind || kind.getValue() != "input" || !type || type.hasStaticShape() ||
        main.getArgAttr(i, "flow.default"))
      continue;
    auto array =
        llvm::find_if(shapes, [&](const auto &entry) { return entry.first == name.getValue(); });
    if (array == shapes.end()) {
      std::string keys;
      for (const auto &entry : shapes)
        keys += (keys.empty() ? "" : ", ") + entry.first;
      return inputError("the data has no key '" + name.getValue() + "'; it has " + keys);
    }
    if (array->second.size() != size_t(type.getRank()))
      return inputError("input '" + name.getValue() + "' has rank " + Twine(type.getRank()) +
                        " in the model, but " + Twine(array->second.size()) + " in the data");
    for (auto [d, extent] : llvm::enumerate(array->second))
      if (type.isDynamicDim(d) && extent == 0)
        return inputError("input '" + name.getValue() + "' has no elements along dim " + Twine(d) +
                          " in the data");
  }
  return llvm::Error::success();
}

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
