#include "fuzz/command_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/diagnostic.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "fuzz/isolate.h"
#include "fuzz/random.h"

namespace relay::fuzz {
namespace {

namespace fs = std::filesystem;

// A Relu of [n, 3] as an ONNX model.
constexpr std::string_view kOnnx(
    "\010\010:="
    "\012\014\012\001x\022\001y\042\004Relu\022\001gZ\024\012\001x\022\017\012\015\010\001"
    "\022\011\012\003\022\001n\012\002\010\003b\024\012\001y\022\017\012\015\010\001\022\011\012"
    "\003"
    "\022\001n\012\002\010\003B\004\012\000\020\021",
    71);

// Every folder of a sequence has these, and what the commands before wrote.
struct File {
  const char* name;
  std::string_view content;
};
const File kFiles[] = {
    {"dense.relay",
     "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {"
     " nn.relu(nn.dense(%x, %w)) }\n"},
    {"open.relay",
     "#[version = \"0.0.5\"]\ndef @main[n: Dim](%x: Tensor[(n, 3), float32], %k: int64, %b: bool) {"
     "\n  (%x, %k + 1i64, if (%b) { 1f } else { 2f })\n}\ndef @help[n: Dim](%x: Tensor[(n,), "
     "float32])"
     " { exp(%x) }\n"},
    {"value.relay",
     "#[version = \"0.0.5\"]\ntype List[A] { Cons(A, List[A]), Nil }\ndef @main() { (1, True, "
     "Cons(2.5f,"
     " Nil)) }\ndef @other(%l: List[float32]) { %l }\n"},
    {"loop.relay",
     "#[version = \"0.0.5\"]\ndef @main(%n: int32) -> int32 { if (%n <= 0) { 0 } else { @main(%n - "
     "1) +"
     " 1 } }\n"},
    {"bad.relay", "#[version = \"0.0.5\"]\ndef @main(%x: float32) { %x + ; nn.relux(%y) }\n"},
    {"empty.relay", ""},
    {"noise.bin", "\x7f\x45LF\xff\x80\x01 noise"},
    {"model.onnx", kOnnx},
    {"cut.onnx", kOnnx.substr(0, 40)},
    {"report.json", "{\"min_seconds\": 1, \"median_seconds\": \"x\"}"},
    {"x.npy", std::string_view(
                  "\x93NUMPY\x01\0\x46\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }"
                  "          \n\0\0\0\0\0\0\x80\x3f\0\0\0\xc0",
                  92)},
    {"x.npz", "PK\x05\x06"},
};

const std::vector<std::string> kPaths = {"dense.relay", "open.relay", "value.relay", "loop.relay",
                                         "bad.relay",   "model.onnx", "a.so",        "b.so",
                                         "dense.so",    "open.so",    "c.out",       "folder"};
const std::vector<std::string> kOddPaths = {
    "empty.relay", "noise.bin", "cut.onnx",         "report.json", "x.npy",
    "x.npz",       "nowhere",   "no/such/folder/f", ".",           "..",
    "/",           "/dev/null", "/dev/full",        "/proc/self",  "link",
    "self",        "-",         "dense.relay/x",    "\xff\xfe"};
const std::vector<std::string> kInputs = {
    "x=1,3", "x=4x3", "x=4,3:float32", "x=[[1,2,3]]", "x=x.npy",      "x=x.npz",
    "x.npz", "k=5",   "k=-7",          "k=2.5",       "b=true",       "n=3",
    "n=[1]", "w=4,3", "x=-1,3",        "x=()",        "x=",           "=1",
    "x",     "x=[",   "x=[[1],2]",     "x=0,3",       "y=1",          "x=1e400",
    "x=nan", "x=5",   "x=5:int7",      "x=1,3:bool",  "x=nowhere.npy"};
const std::vector<std::string> kNames = {"main", "help", "other", "mian", "x",
                                         "n=2",  "n=0",  "n=x",   "m=1"};
const std::vector<std::string> kOdd = {"-1",    "0",       "1",    "99999999999999999999",
                                       "1e309", "nan",     "inf",  "0x10",
                                       "",      "-",       "--",   "=",
                                       ",",     "[",       "%s%n", "\x1b[31m",
                                       "a b",   "\n",      "true", "--help",
                                       "-o",    "\xc3\x28"};
const std::vector<std::string> kTargets = {
    "native",    "x86-64-v2", "x86-64-v3",        "native -num-threads=1",
    "x86-64-v9", "llvm",      "llvm -mcpu=core2", "llvm -mcpu=x",
    "cuda",      "-"};

std::string odd_value(Random& random) {
  if (random.percent(5)) return std::string(5000, 'a');
  return random.percent(50) ? random.pick(kOdd) : random.pick(kOddPaths);
}

// A value that the option may well take.
std::string fitting_value(const cli::Option& o, Random& random) {
  if (!o.allowed.empty()) return random.pick(o.allowed);
  bool text = std::holds_alternative<std::string*>(o.field) || o.is_list();
  if (!text) return std::to_string(random.between(0, 3));
  if (o.value.starts_with("PASS")) {
    return random.pick(std::vector<std::string>{"FuseOps", "FoldConstant", "ToANormalForm",
                                                "DeadCodeElimination", "AlterOpLayout", "fuseops"});
  }
  if (o.value == "TARGET") return random.pick(kTargets);
  if (o.name() == "--input") return random.pick(kInputs);
  if (o.value.starts_with("NAME")) return random.pick(kNames);
  return random.percent(85) ? random.pick(kPaths) : random.pick(kOddPaths);
}

Words draw_words(Random& random, const std::vector<cli::Command>& commands) {
  const cli::Command& command = random.pick(commands);
  Words out;
  auto value = [&](const cli::Option& o) {
    return random.percent(85) ? fitting_value(o, random) : odd_value(random);
  };
  for (const cli::Option& o : command.options) {
    bool wanted = o.is_required ? random.percent(95) : random.percent(o.names.empty() ? 90 : 14);
    if (!wanted) continue;
    Words use;
    for (size_t n = random.percent(10) ? 2 : 1; n > 0; --n) {
      if (!o.names.empty()) use.push_back(random.pick(o.names));
      if (o.is_flag()) continue;
      if (!o.names.empty() && random.percent(30)) {
        use.back() += "=" + value(o);
      } else {
        for (size_t v = 0; v < o.values_per_use; ++v) use.push_back(value(o));
      }
    }
    // Options stand before or behind what is there.
    out.insert(random.percent(50) ? out.begin() : out.end(), use.begin(), use.end());
  }
  if (random.percent(6)) out.push_back(odd_value(random));
  if (random.percent(3) && !out.empty())
    out.erase(out.begin() + static_cast<int64_t>(random.below(out.size())));
  if (random.percent(3))
    out.insert(out.begin() + static_cast<int64_t>(random.below(out.size() + 1)), "--");
  if (random.percent(3) && !out.empty()) {
    std::string& word = out[random.below(out.size())];
    if (!word.empty()) word[random.below(word.size())] = static_cast<char>(random.between(1, 255));
  }
  // Timed runs are not to take long here.
  if (command.name == "bench" && std::ranges::find(out, "--compare") == out.end())
    out.insert(out.begin(), "--repeat=2");
  out.insert(out.begin(), command.name);
  if (random.percent(2)) out[0] = odd_value(random);
  if (random.percent(1)) out.clear();
  return out;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

// What standard output or standard error gets goes to a file.
void redirect(int stream, const std::string& path) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  RELAY_CHECK(fd >= 0 && dup2(fd, stream) >= 0, "no file for what is printed");
}

// Runs the commands at once, each in a process; what they came to, or what ended the process.
std::vector<std::pair<CommandEnd, std::string>> run_at_once(const std::vector<Words>& commands,
                                                            const fs::path& logs,
                                                            int timeout_seconds) {
  std::vector<std::pair<CommandEnd, std::string>> out(commands.size());
  auto log = [&](size_t i, const char* name) {
    return (logs / (std::to_string(i) + name)).string();
  };
  run_isolated(
      commands.size(), static_cast<int>(commands.size()),
      [&](size_t i, const Send& send) {
        // Standard input is empty.
        dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
        redirect(STDOUT_FILENO, log(i, ".out"));
        redirect(STDERR_FILENO, log(i, ".err"));
        send(std::to_string(cli::run_command_line(commands[i], cli::Python::running)));
      },
      [&](size_t i, const std::string& code) { out[i].first.code = std::stoi(code); },
      [&](size_t i, const std::string& problem) { out[i].second = problem; }, timeout_seconds);
  for (size_t i = 0; i < commands.size(); ++i) {
    out[i].first.output = text_of(log(i, ".out"));
    out[i].first.errors = text_of(log(i, ".err"));
  }
  return out;
}

// A folder that goes away with its contents.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "relay_commands_XXXXXX").string();
    RELAY_CHECK(mkdtemp(pattern.data()) != nullptr, "no temporary folder");
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void make_files(const fs::path& folder) {
  for (const File& f : kFiles) std::ofstream(folder / f.name, std::ios::binary) << f.content;
  fs::create_directory(folder / "folder");
  fs::create_symlink("dense.relay", folder / "link");
  fs::create_symlink("self", folder / "self");
}

// Runs in a process of its own. Returns what went wrong, or "".
std::string run_sequence(const CommandSequence& sequence, const fs::path& files,
                         const fs::path& folder, int timeout_seconds) {
  fs::path here = folder / "here", logs = folder / "logs";
  fs::create_directory(logs);
  fs::copy(files, here, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  fs::current_path(here);
  std::string out;
  for (const std::vector<Words>& line : sequence) {
    std::vector<std::pair<CommandEnd, std::string>> ends = run_at_once(line, logs, timeout_seconds);
    for (size_t i = 0; i < line.size(); ++i) {
      std::string problem =
          ends[i].second.empty() ? problem_of(line[i], ends[i].first) : ends[i].second;
      if (problem.empty()) continue;
      out += problem + "\n  " + to_string({{line[i]}}) + "\n" + ends[i].first.errors;
    }
  }
  fs::current_path("/");
  return out.empty() ? "" : out + "the sequence:\n" + to_string(sequence) + "\n";
}

}  // namespace

std::string problem_of(const Words& words, const CommandEnd& end) {
  auto says = [&](const char* text) { return end.errors.find(text) != std::string::npos; };
  if (says("internal error") || says("defect of Relay") || end.code == 3) return "internal error";
  if (end.code < 0 || end.code > 2) return "exit code " + std::to_string(end.code);
  bool error = says("error[E") || end.errors.starts_with("error: ") ||
               end.output.find("{\n  \"errors\": [") != std::string::npos;  // with --json
  // What these find is what they are asked for.
  bool reports =
      !words.empty() && (words[0] == "check" || words[0] == "fmt" || words[0] == "doctor");
  if (end.code == 0 && error) return "an error with exit code 0";
  if (end.code != 0 && !error && !(reports && !end.output.empty()))
    return "exit code " + std::to_string(end.code) + " without an error";
  return "";
}

CommandSequence draw_commands(uint64_t seed) {
  Random random(seed);
  std::vector<cli::Command> commands = cli::all_commands();
  CommandSequence out(static_cast<size_t>(random.between(1, 3)));
  for (std::vector<Words>& line : out) {
    line.push_back(draw_words(random, commands));
    if (random.percent(15))
      line.push_back(random.percent(50) ? line[0] : draw_words(random, commands));
  }
  return out;
}

std::string to_string(const CommandSequence& sequence) {
  std::string out;
  for (const std::vector<Words>& line : sequence) {
    if (!out.empty()) out += "\n";
    for (size_t i = 0; i < line.size(); ++i) {
      out += i == 0 ? "relay" : " & relay";
      for (const std::string& word : line[i]) {
        constexpr size_t kShown = 200;
        out += " '" + escape_for_terminal(word, kShown) + "'";
      }
    }
  }
  return out;
}

void run_command_lines(const CommandLineOptions& options,
                       const std::function<void(uint64_t seed, const std::string& text)>& found) {
  ScratchFolder scratch;
  // The kernel cache is a folder of its own.
  setenv("RELAY_CACHE_DIR", (scratch.path() / "cache").c_str(), 1);
  fs::path files = scratch.path() / "files";
  fs::create_directory(files);
  make_files(files);
  int jobs = options.jobs > 0 ? options.jobs
                              : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  run_isolated(
      options.count, jobs,
      [&](size_t i, const Send& send) {
        fs::path folder = scratch.path() / std::to_string(i);
        fs::create_directory(folder);
        std::string problem =
            run_sequence(draw_commands(options.seed + i), files, folder, options.timeout_seconds);
        std::error_code ignored;
        fs::remove_all(folder, ignored);
        if (!problem.empty()) send(problem);
      },
      [&](size_t i, const std::string& problem) { found(options.seed + i, problem); },
      [&](size_t i, const std::string& problem) {
        if (!problem.empty())
          found(options.seed + i, problem + "\n" + to_string(draw_commands(options.seed + i)));
      },
      // A sequence is silent while its commands run.
      4 * options.timeout_seconds);
}

}  // namespace relay::fuzz
