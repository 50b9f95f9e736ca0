#include "lib/Driver/DiagnosticText.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace flow {

/// A node of the model, or a line of a text file; empty if neither is known.
static std::string describe(LocationAttr location) {
  return TypeSwitch<LocationAttr, std::string>(location)
      .Case([](NameLoc named) {
        std::string inner = describe(named.getChildLoc());
        return "node '" + named.getName().str() + "'" + (inner.empty() ? "" : " (" + inner + ")");
      })
      .Case([](FileLineColLoc place) {
        return place.getFilename().str() + ":" + std::to_string(place.getLine()) + ":" +
               std::to_string(place.getColumn());
      })
      .Case([](FusedLoc fused) {
        for (Location part : fused.getLocations())
          if (std::string text = describe(part); !text.empty())
            return text;
        return std::string();
      })
      .Case([](CallSiteLoc call) { return describe(call.getCallee()); })
      .Case([](OpaqueLoc opaque) { return describe(opaque.getFallbackLocation()); })
      .Default([](LocationAttr) { return std::string(); });
}

static std::string withPlace(Diagnostic &diagnostic) {
  std::string place = describe(diagnostic.getLocation());
  return place.empty() ? diagnostic.str() : place + ": " + diagnostic.str();
}

DiagnosticText::DiagnosticText(MLIRContext *context, StringRef tool)
    : tool(tool), handler(context, [this](Diagnostic &diagnostic) {
        std::string text = withPlace(diagnostic);
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Warning)
            llvm::errs() << this->tool << ": " << text << "\n";
          return success();
        }
        for (Diagnostic &note : diagnostic.getNotes())
          if (note.getMetadata().empty() &&
              !StringRef(note.str()).starts_with("see current operation"))
            text += "\n  " + withPlace(note);
        errors.push_back(text);
        return success();
      }) {}

std::string DiagnosticText::take() {
  constexpr size_t kMaxErrors = 6;
  if (errors.empty())
    return "failed without saying why";
  std::string text = llvm::join(llvm::ArrayRef(errors).take_front(kMaxErrors), "\n");
  if (errors.size() > kMaxErrors)
    text += "\n(" + std::to_string(errors.size() - kMaxErrors) + " more)";
  errors.clear();
  return text;
}

} // namespace flow
