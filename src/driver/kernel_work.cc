#include "driver/kernel_work.h"

#include <optional>

#include "lower/open_work.h"

namespace relay {
namespace {

void describe(const std::optional<OpenWork::Sum>& sum, const std::vector<Dim>& names,
              const std::string& key, nlohmann::ordered_json& item) {
  if (!sum) return;
  nlohmann::ordered_json products = nlohmann::ordered_json::array();
  for (const OpenWork::Product& p : *sum) {
    nlohmann::ordered_json sizes = nlohmann::ordered_json::array();
    for (const Dim& d : p.sizes) {
      sizes.push_back(in_postfix(d, names));
      if (sizes.back().empty()) return;
    }
    products.push_back({{"number", p.number}, {"sizes", std::move(sizes)}});
  }
  item[key] = {{"text", to_string(*sum)}, {"products", std::move(products)}};
}

}  // namespace

void describe_work(const plan::ProgramKernel& kernel, nlohmann::ordered_json& item) {
  const std::vector<Dim>& sizes = kernel.signature.sizes;
  if (sizes.empty()) return;
  for (const Dim& d : sizes) item["sizes"].push_back(to_string(d));
  const OpenWork work = open_work(*kernel.primitive.get());
  describe(work.flops, sizes, "flops_by_sizes", item);
  describe(work.bytes, sizes, "bytes_by_sizes", item);
}

std::string working_memory(const std::vector<ArenaReport>& arenas) {
  std::string out;
  int64_t fixed = 0;
  for (const ArenaReport& a : arenas) {
    if (a.formula.empty()) {
      fixed += a.arena_bytes;
    } else {
      out += (out.empty() ? "" : " + ") + a.formula;
    }
  }
  return out.empty() || fixed == 0 ? out : out + " + " + std::to_string(fixed);
}

}  // namespace relay
