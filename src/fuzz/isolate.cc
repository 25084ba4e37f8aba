#include "fuzz/isolate.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "base/diagnostic.h"

namespace relay::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

void write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    // The parent has ended, so the result is not needed.
    if (n <= 0) _exit(1);
    data += n;
    size -= static_cast<size_t>(n);
  }
}

struct Child {
  size_t job;
  pid_t pid;
  int fd;
  std::string buffer;
  Clock::time_point last_sign;
};

Child start(size_t job, const std::function<void(size_t, const Send&)>& work) {
  int ends[2];
  RELAY_CHECK(pipe(ends) == 0, "no pipe to a child process");
  pid_t pid = fork();
  RELAY_CHECK(pid >= 0, "no child process");
  if (pid > 0) {
    close(ends[1]);
    return {job, pid, ends[0], {}, Clock::now()};
  }
  close(ends[0]);
  // Messages are a length and bytes.
  work(job, [&](const std::string& message) {
    uint64_t size = message.size();
    write_all(ends[1], reinterpret_cast<const char*>(&size), sizeof size);
    write_all(ends[1], message.data(), message.size());
  });
  _exit(0);
}

std::string end_of(Child& child, bool late) {
  if (late) kill(child.pid, SIGKILL);
  close(child.fd);
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (late) return "timeout";
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  return WEXITSTATUS(status) == 0 ? "" : "exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void run_isolated(size_t count, int jobs, const std::function<void(size_t, const Send&)>& work,
                  const std::function<void(size_t, const std::string&)>& receive,
                  const std::function<void(size_t, const std::string&)>& ended,
                  int timeout_seconds) {
  std::vector<Child> children;
  size_t next = 0;
  while (next < count || !children.empty()) {
    while (next < count && children.size() < static_cast<size_t>(jobs)) {
      children.push_back(start(next++, work));
    }
    std::vector<pollfd> fds;
    for (const Child& c : children) fds.push_back({c.fd, POLLIN, 0});
    poll(fds.data(), fds.size(), 200);
    for (size_t i = children.size(); i-- > 0;) {
      Child& c = children[i];
      bool over = false;
      bool late = Clock::now() - c.last_sign > std::chrono::seconds(timeout_seconds);
      if (fds[i].revents != 0) {
        char bytes[4096];
        ssize_t n = read(c.fd, bytes, sizeof bytes);
        over = n <= 0;
        if (n > 0) {
          c.buffer.append(bytes, static_cast<size_t>(n));
          c.last_sign = Clock::now();
          late = false;
        }
      }
      uint64_t size;
      while (c.buffer.size() >= sizeof size) {
        std::memcpy(&size, c.buffer.data(), sizeof size);
        if (c.buffer.size() < sizeof size + size) break;
        std::string message = c.buffer.substr(sizeof size, size);
        c.buffer.erase(0, sizeof size + size);
        receive(c.job, message);
      }
      if (!over && !late) continue;
      Child gone = std::move(c);
      children.erase(children.begin() + static_cast<int64_t>(i));
      ended(gone.job, end_of(gone, late && !over));
    }
  }
}

std::string run_isolated(const std::function<void(const Send&)>& work,
                         const std::function<void(const std::string&)>& receive,
                         int timeout_seconds) {
  std::string out;
  run_isolated(
      1, 1, [&](size_t, const Send& send) { work(send); },
      [&](size_t, const std::string& message) { receive(message); },
      [&](size_t, const std::string& problem) { out = problem; }, timeout_seconds);
  return out;
}

}  // namespace relay::fuzz
