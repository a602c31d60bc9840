// See io/private_folder.h.
#include "io/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include <fmt/format.h>

namespace retrograd::inline v0::io {
namespace {

constexpr off_t kLargest = off_t{256} << 20;  // bytes of a file
constexpr time_t kAbandoned = 3600;           // seconds after which an unfinished file has no owner
constexpr std::string_view kUnfinished = ".part";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  const int fd_;
};

// Why an opened file or folder may not be used; empty when it may.
std::string_view problem_of(int fd, mode_t type) {
  struct stat s;
  if (::fstat(fd, &s) != 0 || (s.st_mode & S_IFMT) != type) return "it has another file type";
  if (s.st_uid != ::geteuid()) return "it belongs to another user";
  if (s.st_mode & (S_IRWXG | S_IRWXO)) return "other users may use it";
  if (type == S_IFREG && s.st_size > kLargest) return "it is too large";
  return {};
}

}  // namespace

PrivateFolder::PrivateFolder(const std::string& path) : path_(path) {
  ::mkdir(path.c_str(), S_IRWXU);
  fd_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  error_ = errno;
}

PrivateFolder::~PrivateFolder() {
  if (fd_ >= 0) ::close(fd_);
}

std::string PrivateFolder::problem() const {
  return fd_ < 0 ? std::strerror(error_) : std::string(problem_of(fd_, S_IFDIR));
}

std::optional<std::string> PrivateFolder::read(const std::string& name, std::string& problem) const {
  const Descriptor file(::openat(fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno != ENOENT) problem = std::strerror(errno);
    return {};
  }
  problem = problem_of(file.get(), S_IFREG);
  if (!problem.empty()) return {};
  std::string text;
  char part[1 << 16];
  ssize_t got;
  while ((got = ::read(file.get(), part, sizeof part)) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      problem = std::strerror(errno);
      return {};
    }
    text.append(part, static_cast<size_t>(got));
  }
  ::futimens(file.get(), nullptr);  // used now; if that fails, the file is only removed earlier
  return text;
}

bool PrivateFolder::write(const std::string& name, std::string_view text) const {
  static std::atomic<uint64_t> number{0};
  const std::string unfinished = fmt::format("{}.{}.{}{}", name, ::getpid(), ++number, kUnfinished);
  const Descriptor file(::openat(fd_, unfinished.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file.is_open()) return false;
  const auto give_up = [&] {
    const int reason = errno;
    ::unlinkat(fd_, unfinished.c_str(), 0);
    errno = reason;
    return false;
  };
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return give_up();
    text.remove_prefix(static_cast<size_t>(written));
  }
  // Not flushed to the disk: a file that is incomplete after a crash fails its checksum.
  if (::renameat(fd_, unfinished.c_str(), fd_, name.c_str()) != 0) return give_up();
  return true;
}

void PrivateFolder::tidy(std::string_view ending, size_t most) const {
  const int again = ::openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = again < 0 ? nullptr : ::fdopendir(again);
  if (!list) return;
  std::vector<std::pair<time_t, std::string>> entries;
  const time_t now = ::time(nullptr);
  while (const dirent* item = ::readdir(list)) {
    const std::string_view name = item->d_name;
    struct stat s;
    if (::fstatat(fd_, item->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (name.ends_with(ending)) entries.emplace_back(s.st_mtime, name);
    if (name.ends_with(kUnfinished) && s.st_mtime + kAbandoned < now) ::unlinkat(fd_, item->d_name, 0);
  }
  ::closedir(list);
  if (entries.size() <= most) return;
  std::ranges::sort(entries);
  entries.resize(entries.size() - most);
  for (const auto& [time, name] : entries) ::unlinkat(fd_, name.c_str(), 0);
}

}  // namespace retrograd::io
