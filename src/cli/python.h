// What is written in Python: the package relay of the Python beside this program, as in an environment, else of the one
// that the shell finds.
#pragma once

#include <string>
#include <vector>

namespace relay::cli {

// Runs `main()` of a module of the package with these words, and returns its exit code. `what` begins the messages of
// UserError E0701, for a Python that cannot be started or has no such module: "plug-ins are packages of Python".
int run_python(const std::string& module, const std::string& what,
               const std::vector<std::string>& words);

// The same in place of this process, which a signal then ends.
[[noreturn]] void exec_python(const std::string& module, const std::string& what,
                              const std::vector<std::string>& words);

// Draws a report (JSON) as a figure: an SVG file. UserError E0611 where none was written; the package has said why.
void draw_figure(const std::string& report, const std::string& path);

}  // namespace relay::cli
