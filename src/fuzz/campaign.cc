#include "fuzz/campaign.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "driver/compile.h"
#include "fuzz/isolate.h"
#include "fuzz/shrink.h"
#include "ir/text/text.h"
#include "node/walk.h"
#include "runtime/cpu.h"

namespace relay::fuzz {
namespace {

using Json = nlohmann::json;

// Batches that one process checks before it ends: kernels it has compiled are used again.
constexpr uint64_t kBatches = 20;

Json to_json(const Tally& t) {
  return {{"programs", t.programs},
          {"compared", t.compared},
          {"ill_conditioned", t.ill_conditioned},
          {"slopes", t.slopes},
          {"natives", t.natives},
          {"kernels", t.kernels},
          {"kernels_compiled", t.kernels_compiled},
          {"errors", t.errors},
          {"refused", t.refused},
          {"pass_changed", t.pass_changed},
          {"pair_changed", t.pair_changed}};
}

Tally tally_from(const Json& j) {
  Tally t;
  t.programs = j["programs"];
  t.compared = j["compared"];
  t.ill_conditioned = j["ill_conditioned"];
  t.slopes = j["slopes"];
  t.natives = j["natives"];
  t.kernels = j["kernels"];
  t.kernels_compiled = j["kernels_compiled"];
  t.errors = j["errors"].get<std::map<std::string, int64_t>>();
  t.refused = j["refused"].get<std::map<std::string, int64_t>>();
  t.pass_changed = j["pass_changed"].get<std::map<std::string, int64_t>>();
  t.pair_changed = j["pair_changed"].get<std::map<std::string, int64_t>>();
  return t;
}

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// What two failures have in common that are most likely one defect: no numbers, no names.
std::string signature(const Failure& f) {
  std::string line;
  if (f.kind != "value") {
    for (char c : f.text.substr(0, f.text.find('\n'))) {
      if (!std::isdigit(static_cast<unsigned char>(c))) line += c;
    }
  }
  return f.stage + "|" + f.kind + "|" + line;
}

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options) : options_(options) { initialize(); }

  CampaignResult run() {
    uint64_t per_job = kBatches * static_cast<uint64_t>(options_.batch);
    size_t jobs = static_cast<size_t>((options_.count + per_job - 1) / per_job);
    int processes = options_.jobs > 0 ? options_.jobs : runtime::available_threads();
    reached_.assign(jobs, 0);
    run_isolated(
        jobs, processes,
        [&](size_t job, const Send& send) {
          if (!options_.keep_going && !result_.findings.empty()) return;
          uint64_t first = options_.seed + job * per_job;
          check_range(first, std::min(first + per_job, end()), send);
        },
        [&](size_t job, const std::string& message) { receive(job, Json::parse(message)); },
        [&](size_t job, const std::string& problem) {
          if (!problem.empty()) crashed(options_.seed + job * per_job + reached_[job]);
        },
        options_.timeout_seconds * 4);
    for (Finding& f : result_.findings) finish(f);
    return std::move(result_);
  }

 private:
  uint64_t end() const { return options_.seed + options_.count; }

  // In a child process: checks programs and sends what comes of them.
  void check_range(uint64_t first, uint64_t last, const Send& send) {
    Checker checker(options_.check);
    for (uint64_t s = first; s < last;) {
      uint64_t stop = std::min(s + static_cast<uint64_t>(options_.batch), last);
      std::vector<Module> mods;
      for (uint64_t i = s; i < stop; ++i) mods.push_back(generate(i, options_.generate));
      auto failures = checker.check(mods);
      for (size_t i = 0; i < failures.size(); ++i) {
        if (!failures[i]) continue;
        send(dump({{"seed", s + i},
                   {"stage", failures[i]->stage},
                   {"kind", failures[i]->kind},
                   {"text", failures[i]->text}}));
      }
      send(dump({{"done", stop - s}, {"tally", to_json(checker.take_tally())}}));
      s = stop;
    }
  }

  void receive(size_t job, const Json& message) {
    if (message.contains("seed")) {
      add(message["seed"], {message["stage"], message["kind"], message["text"]});
      return;
    }
    uint64_t done = message["done"];
    if (job < reached_.size()) reached_[job] += done;
    result_.tally.add(tally_from(message["tally"]));
    done_ += static_cast<int64_t>(done);
    if (options_.progress) {
      options_.progress(done_, static_cast<int64_t>(options_.count), result_.findings.size());
    }
  }

  void add(uint64_t seed, Failure failure) {
    if (!seen_.insert(signature(failure)).second) return;
    if (options_.found) options_.found(seed, failure);
    result_.findings.push_back({seed, std::move(failure), {}});
  }

  // A process ended in the batch that begins at `first`: each of its programs, and those that the
  // process would have come to, in small processes.
  void crashed(uint64_t first) {
    uint64_t per_job = kBatches * static_cast<uint64_t>(options_.batch);
    uint64_t job_end = options_.seed + ((first - options_.seed) / per_job + 1) * per_job;
    for (uint64_t s = first; s < std::min(job_end, end()); ++s) {
      std::string problem = run_isolated(
          [&](const Send& send) { check_range(s, s + 1, send); },
          [&](const std::string& message) { receive(reached_.size(), Json::parse(message)); },
          options_.timeout_seconds);
      if (!problem.empty()) add(s, {"run", problem == "timeout" ? "timeout" : "crash", problem});
    }
  }

  // The failure of a program, seen from another process.
  std::optional<Failure> check_isolated(const Module& mod, const CheckOptions& check) {
    std::optional<Failure> out;
    std::string problem = run_isolated(
        [&](const Send& send) {
          if (auto f = fuzz::check(mod, check)) {
            send(dump({{"stage", f->stage}, {"kind", f->kind}, {"text", f->text}}));
          }
        },
        [&](const std::string& message) {
          Json j = Json::parse(message);
          out = Failure{j["stage"], j["kind"], j["text"]};
        },
        options_.timeout_seconds);
    if (!problem.empty()) {
      out = Failure{"run", problem == "timeout" ? "timeout" : "crash", problem};
    }
    return out;
  }

  // Only what shows the failure is run while the program is made smaller.
  CheckOptions only(const Failure& failure) {
    CheckOptions out = options_.check;
    auto is = [&](const char* prefix) { return failure.stage.rfind(prefix, 0) == 0; };
    if (!is("text")) out.text = is("run");
    if (is("pass ")) out.passes = {failure.stage.substr(5)};
    size_t level = failure.stage.find("level ");
    if (level != std::string::npos) out.levels = {std::stoi(failure.stage.substr(level + 6))};
    if (is("pair ")) out.pairs = {failure.stage.substr(5, failure.stage.find(',') - 5)};
    if (!is("pass ") && !is("run")) out.passes.clear();
    if (!is("pair ") && !is("run")) out.pairs.clear();
    if (level == std::string::npos && !is("run") && !is("code")) out.levels.clear();
    return out;
  }

  void finish(Finding& finding) {
    Module mod = generate(finding.seed, options_.generate);
    if (options_.shrink) {
      CheckOptions check = only(finding.failure);
      std::string wanted = signature(finding.failure);
      mod = shrink(mod, [&](const Module& candidate) {
        auto failure = check_isolated(candidate, check);
        return failure && signature(*failure) == wanted;
      });
      if (auto failure = check_isolated(mod, check)) finding.failure = *failure;
    }
    finding.program = print_module(mod);
  }

  const CampaignOptions& options_;
  CampaignResult result_;
  // Programs that each process is through with.
  std::vector<uint64_t> reached_;
  std::set<std::string> seen_;
  int64_t done_ = 0;
};

}  // namespace

void Statistics::count(const Module& mod) {
  for (const Function& f : mod->functions) {
    if (!f->type_params.empty()) {
      ++constructs[f->type_params[0]->kind == Kind::Dim ? "symbolic function"
                                                        : "polymorphic function"];
    }
    post_order(
        f,
        [&](const Node& n) {
          if (!isa<OpNode>(&n)) ++constructs[std::string(n.info().name)];
          if (auto* c = as<CallNode>(&n)) {
            if (auto* op = as<OpNode>(c->op)) {
              ++operators[op->name];
              if (auto* t = as<TensorTypeNode>(c->type)) ++dtypes[t->dtype.to_string()];
            }
          }
        },
        family::program);
  }
}

std::string Finding::text() const {
  return "seed " + std::to_string(seed) + ", " + failure.stage + ", " + failure.kind + ": " +
         failure.text + "\n" + program;
}

CampaignResult run_campaign(const CampaignOptions& options) { return Campaign(options).run(); }

}  // namespace relay::fuzz
