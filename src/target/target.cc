#include "target/target.h"

#include "target/architectures.h"

namespace relay {

WorkItemLimits nvidia_items(int capability) {
  WorkItemLimits out;
  out.units = capability >= 90   ? 132  // H100, H200
              : capability >= 89 ? 128  // RTX 4090
              : capability >= 86 ? 84   // RTX A6000
              : capability >= 80 ? 108  // A100
                                 : 40;  // T4
  out.item_registers = 128;
  // Of two groups, with what the device keeps for itself of each.
  out.shared_bytes = capability >= 80 ? 48 << 10 : 32 << 10;
  out.exchanges = true;
  out.copies_later = capability >= 80;
  return out;
}

bool Target::has_feature(std::string_view feature) const {
  // The last word about a feature counts: "+avx,-avx" is without.
  bool has = false;
  std::string_view rest = features;
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string_view word = rest.substr(0, comma);
    if (!word.empty() && word.substr(1) == feature) has = word[0] == '+';
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return has;
}

std::string Target::describe() const {
  // Of a device that nothing is said of, its driver knows the rest.
  if (arch.empty() && kind != "cpu" && num_cores == 1) return name;
  return name + ": " + (cpu.empty() ? kind : cpu) + ", " + std::to_string(vector_bits) +
         "-bit vectors, " + std::to_string(num_cores) + (num_cores == 1 ? " core" : " cores") +
         (keeps_denormals ? ", denormals kept" : "");
}

std::vector<std::string> Target::required_features() const {
  std::vector<std::string> out;
  const Architecture* row = find_architecture(arch);
  if (row == nullptr) return out;
  for (std::string_view f : row->all_features()) {
    if (has_feature(f)) out.emplace_back(f);
  }
  return out;
}

}  // namespace relay
