// Spellings of distribution requests on the command line.
#include "dialects/Flow/Transforms/DistributionRequest.h"

using namespace mlir;
using namespace flow;

MeshAttr flow::parseMesh(StringRef text, MLIRContext *context, std::string &error) {
  SmallVector<StringRef> axes;
  text.split(axes, ',');
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  for (StringRef axis : axes) {
    auto [name, sizeText] = axis.split('=');
    name = name.trim();
    int64_t size;
    if (name.empty() || sizeText.trim().getAsInteger(10, size) || size < 1) {
      error = ("mesh '" + text +
               "': expected axes as NAME=SIZE separated by commas, such as dp=2,tp=2, got '" +
               axis + "'")
                  .str();
      return {};
    }
    if (llvm::is_contained(names, StringAttr::get(context, name))) {
      error = ("mesh '" + text + "': axis '" + name + "' occurs twice").str();
      return {};
    }
    names.push_back(StringAttr::get(context, name));
    sizes.push_back(size);
  }
  return MeshAttr::get(context, "m", names, sizes, 0);
}

/// Splits at commas outside of parentheses.
static SmallVector<StringRef> splitEntries(StringRef text) {
  SmallVector<StringRef> entries;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (text[i] == ',' && depth == 0) {
      entries.push_back(text.slice(begin, i));
      begin = i + 1;
    }
  }
  entries.push_back(text.drop_front(begin));
  return entries;
}

LogicalResult flow::parseSbpRequest(StringRef text, MLIRContext *context,
                                    DistributionRequest &request, std::string &error) {
  auto [pattern, list] = text.rsplit("=[");
  pattern = pattern.trim();
  list = list.trim();
  if (pattern.empty() || !list.consume_back("]")) {
    error = ("sbp '" + text +
             "': expected NAME=[ENTRY,..] with one entry per mesh axis, such as w=[B,S(0)]")
                .str();
    return failure();
  }
  DistributionRequest::Sbp sbp{pattern.str(), {}};
  for (StringRef entry : splitEntries(list)) {
    SbpAttr attr = parseSbp(entry, context);
    if (!attr) {
      error = ("sbp '" + text + "': expected B, S(dim), P or P(sum|max|min|prod), got '" +
               entry.trim() + "'")
                  .str();
      return failure();
    }
    sbp.entries.push_back(attr);
  }
  request.sbp.push_back(sbp);
  return success();
}

LogicalResult flow::parseStageRequest(StringRef text, DistributionRequest &request,
                                      std::string &error) {
  auto [pattern, number] = text.rsplit('=');
  int64_t stage;
  if (pattern.trim().empty() || number.trim().getAsInteger(10, stage) || stage < 0) {
    error =
        ("stage '" + text + "': expected PATTERN=K with K counted from 0, such as '/fc2*=1'").str();
    return failure();
  }
  request.stages.push_back({pattern.trim().str(), stage});
  return success();
}
