#include "codegen/targets.h"

#include <algorithm>

#include "base/codes/machines.h"
#include "codegen/backend.h"
#include "runtime/artifact.h"
#include "runtime/core/device.h"
#include "runtime/cpu.h"
#include "target/architectures.h"
#include "target/target_text.h"

namespace relay {

Target parse_target(std::string_view text) {
  std::vector<KindReader> kinds;
  for (const TargetKind* k : target_kinds()) kinds.push_back({k, &k->backend().reader()});
  RELAY_CHECK(!kinds.empty(), "no kind of target is registered");
  return read_target(text, kinds);
}

namespace {

// Whether a machine that runs `other` runs `t`.
bool needs_no_more(const Target& t, const Target& other) {
  const std::vector<std::string> features = t.required_features();
  return std::ranges::all_of(features, [&](const std::string& f) { return other.has_feature(f); });
}

bool has_no_longer_vectors(const Target& t, const Target& other) {
  return t.vector_bits <= other.vector_bits && t.num_vector_registers <= other.num_vector_registers;
}

std::string_view of_host(const std::string& text) {
  return std::string_view(text).substr(0, text.find(';'));
}

// A target without its devices, with an option more.
std::string with_option(const std::string& text, const std::string& option) {
  const std::string_view host = of_host(text);
  return std::string(host) + " " + option + text.substr(host.size());
}

TargetVersion version_of_host(std::string_view text) {
  std::vector<TargetVersion> all = target_versions(text);
  for (size_t v = all.size(); all.size() > 1 && v-- > 0;) {
    const Target t = parse_target(of_host(all[v].text));
    if (!runtime::machine_refuses("", t.arch, t.required_features())) return all[v];
  }
  return all.back();
}

}  // namespace

std::vector<TargetVersion> target_versions(std::string_view text) {
  const std::vector<TargetVersion> named = split_versions(text);
  if (named.size() == 1) return named;
  auto refuse = [&](const std::string& what, const std::string& expected) {
    throw UserError(Diagnostic(codes::machine_versions, {},
                               "the versions of the target '" + std::string(text) +
                                   "' do not go together: " + what)
                        .expected(expected));
  };
  if (named.size() > runtime::artifact_format::kMostVersions) {
    refuse("there are " + std::to_string(named.size()),
           "at most " + std::to_string(runtime::artifact_format::kMostVersions));
  }
  std::vector<TargetVersion> out;
  std::vector<Target> targets;
  int64_t columns = 0;
  bool same_width = true;
  for (const TargetVersion& v : named) {
    Target t = parse_target(of_host(v.text));
    if (v.is_listed && has_no_longer_vectors(t, targets.back())) continue;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!needs_no_more(t, targets[i])) continue;
      refuse(out[i].name + " would never be loaded, since " + v.name + " needs no more",
             "versions whose features grow, the least first");
    }
    columns = std::max(columns, 2 * t.lanes(32));
    out.push_back(v);
    targets.push_back(std::move(t));
    same_width &=
        targets.back().vector_bits == targets[0].vector_bits && targets.back().panel_columns == 0;
  }
  if (same_width || targets[0].panel_columns != 0) return out;
  for (TargetVersion& v : out) v.text = with_option(v.text, "-panel=" + std::to_string(columns));
  return out;
}

ProgramTarget parse_program_target(std::string_view written) {
  const TargetVersion version = version_of_host(written);
  std::string_view text = version.text;
  std::vector<Target> all;
  for (size_t end = text.find(';'); end != std::string_view::npos; end = text.find(';')) {
    all.push_back(parse_target(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  all.push_back(parse_target(text));
  // A device without a host has this machine.
  const runtime::Device memory{kind_of(all.front()).device};
  if (!memory.is_host()) all.insert(all.begin(), native_target());
  return {all.front(), {all.begin() + 1, all.end()}};
}

Target native_target() { return parse_target("native"); }

Target least_target() { return parse_target(find_architecture(runtime::host_arch())->least_level); }

}  // namespace relay
