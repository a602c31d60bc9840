// Reading: length, header, and only then the data. Writing: layout, header, data, into an AtomicFile.
#include "io/safetensors_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>

#include "engine/error.h"
#include "io/atomic_file.h"

namespace retrograd::inline v0 {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::string_view kZip("PK\3\4", 4);  // how a file of torch.save begins

}  // namespace

// What a reader reads.
class SafetensorsReader::Input {
 public:
  explicit Input(const std::string& path) : path_(path) {}
  Input(const Input&) = delete;
  virtual ~Input() = default;
  const std::string& path() const { return path_; }
  virtual size_t size() const = 0;
  virtual void read(void* destination, size_t size, size_t at) const = 0;

 private:
  const std::string path_;
};

// A regular file open for reading.
class SafetensorsReader::FileInput final : public Input {
 public:
  explicit FileInput(const std::string& path)
      : Input(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // a pipe must not block
    if (fd_ < 0) fail("open");
  }
  ~FileInput() override { ::close(fd_); }

  size_t size() const override {
    struct stat status;
    if (::fstat(fd_, &status) != 0) fail("read");
    if (!S_ISREG(status.st_mode)) throw FileError(path() + ": cannot read: not a regular file");
    return static_cast<size_t>(status.st_size);
  }

  void read(void* destination, size_t size, size_t at) const override {
    char* next = static_cast<char*>(destination);
    while (size > 0) {
      const ssize_t count = ::pread(fd_, next, size, static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("read");
      if (count == 0) throw FileError(path() + ": the file shrank while it was read");
      next += count;
      at += static_cast<size_t>(count);
      size -= static_cast<size_t>(count);
    }
  }

 private:
  [[noreturn]] void fail(const char* action) const {
    throw FileError(path() + ": cannot " + action + ": " + std::strerror(errno));
  }

  int fd_;
};

class SafetensorsReader::MemoryInput final : public Input {
 public:
  MemoryInput(std::span<const std::byte> bytes, const std::string& name) : Input(name), bytes_(bytes) {}
  size_t size() const override { return bytes_.size(); }
  void read(void* destination, size_t size, size_t at) const override {
    if (size > 0) std::memcpy(destination, bytes_.data() + at, size);
  }

 private:
  std::span<const std::byte> bytes_;
};

namespace {

std::unique_ptr<std::byte[]> allocate(const std::string& path, size_t size) {
  try {
    return std::make_unique_for_overwrite<std::byte[]>(size);
  } catch (const std::bad_alloc&) {
    throw FileError(path + ": no memory for its " + std::to_string(size) + " bytes of data");
  }
}

// A bool object made of another byte is undefined behaviour for its reader.
void check_bools(const std::string& path, const TensorEntry& entry, std::span<const std::byte> bytes) {
  if (entry.dtype == kBool &&
      std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; }))
    throw FileError(path + ": tensor " + printable(entry.name) + ": a BOOL byte is neither 0 nor 1");
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::string& path)
    : SafetensorsReader([&] {
        if (path.find('\0') != std::string::npos) throw FileError("cannot read: the path has a NUL byte");
        return std::make_unique<FileInput>(path);
      }()) {}

SafetensorsReader::SafetensorsReader(std::span<const std::byte> file, const std::string& name)
    : SafetensorsReader(std::make_unique<MemoryInput>(file, name)) {}

SafetensorsReader::SafetensorsReader(std::unique_ptr<Input> input) : input_(std::move(input)) {
  const std::string& path = input_->path();
  const size_t file_size = input_->size();
  uint64_t header_size = 0;
  if (file_size < sizeof header_size) throw FileError(path + ": too short for a safetensors file");
  input_->read(&header_size, sizeof header_size, 0);
  if (std::memcmp(&header_size, kZip.data(), kZip.size()) == 0)
    throw FileError(path +
                    ": a file of PyTorch's torch.save, which is not read here. Hint: in Python, "
                    "safetensors.torch.save_file writes one that is");
  const size_t rest = file_size - sizeof header_size;
  if (header_size > kMaxHeaderBytes || header_size > rest) {
    throw FileError(path + ": not a safetensors file: the header would have " + std::to_string(header_size) +
                    " bytes, " + std::to_string(rest) + " follow and 100 MB are allowed");
  }
  std::string text(header_size, '\0');
  input_->read(text.data(), text.size(), sizeof header_size);
  data_begin_ = sizeof header_size + header_size;
  data_size_ = rest - header_size;
  header_ = parse_safetensors_header(path, text, data_size_);
}

SafetensorsReader::~SafetensorsReader() = default;

void SafetensorsReader::read(const TensorEntry& entry, void* to) {
  input_->read(to, entry.nbytes, data_begin_ + entry.offset);
  check_bools(input_->path(), entry, {static_cast<const std::byte*>(to), entry.nbytes});
}

SafetensorsFile::SafetensorsFile(const std::string& path) {
  SafetensorsReader reader(path);
  data_ = allocate(path, reader.data_size());
  for (const TensorEntry& entry : reader.entries()) reader.read(entry, data_.get() + entry.offset);
  header_ = std::move(reader.header_);
  by_name_.resize(entries().size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](size_t a, size_t b) { return entries()[a].name < entries()[b].name; });
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto before = [&](size_t i, std::string_view wanted) { return entries()[i].name < wanted; };
  const auto place = std::lower_bound(by_name_.begin(), by_name_.end(), name, before);
  if (place == by_name_.end() || entries()[*place].name != name) return nullptr;
  return &entries()[*place];
}

void write_safetensors(const ByteSink& sink, const std::string& path, std::span<const TensorSource> tensors,
                       const SafetensorsMetadata& metadata) {
  std::vector<const TensorSource*> ordered;
  for (const TensorSource& tensor : tensors) ordered.push_back(&tensor);
  std::stable_sort(ordered.begin(), ordered.end(), [](const TensorSource* a, const TensorSource* b) {
    return element_size(a->dtype) > element_size(b->dtype);
  });

  SafetensorsHeader header{{}, metadata};
  size_t offset = 0;
  for (const TensorSource* tensor : ordered) {
    const size_t nbytes = checked_nbytes(path, tensor->name, tensor->dtype, tensor->shape);
    header.entries.push_back({tensor->name, tensor->dtype, tensor->shape, offset, nbytes});
    if (__builtin_add_overflow(offset, nbytes, &offset)) throw FileError(path + ": too much data");
  }
  std::string text = format_safetensors_header(path, header);
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeaderBytes) throw FileError(path + ": cannot write: the header is above 100 MB");

  const uint64_t header_size = text.size();
  sink(&header_size, sizeof header_size);
  sink(text.data(), text.size());
  for (size_t i = 0; i < ordered.size(); ++i) sink(ordered[i]->data, header.entries[i].nbytes);
}

void write_safetensors(const std::string& path, std::span<const TensorSource> tensors,
                       const SafetensorsMetadata& metadata) {
  std::optional<AtomicFile> file;  // opened when the header is known to be right
  write_safetensors(
      [&](const void* data, size_t size) {
        if (!file) file.emplace(path);
        file->write(data, size);
      },
      path, tensors, metadata);
  file->commit();
}

}  // namespace retrograd
