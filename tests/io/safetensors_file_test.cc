// Safetensors files: what is written reads back, bad files are refused, failed writes leave the old file.
//
// Not tested here: tensors (only raw bytes), files above a few kilobytes of data, a failing fsync or rename of an
// intact directory, and power loss. A full disk is simulated by the file size limit of the process: the write fails at
// the same place, with EFBIG for ENOSPC.
#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "engine/error.h"
#include "io/safetensors_file.h"
#include "tests/own_folder.h"

using namespace retrograd;
namespace fs = std::filesystem;

namespace {

// A directory of its own, removed at the end.
class Directory {
 public:
  std::string operator/(const std::string& name) const { return (fs::path(own_.path) / name).string(); }
  std::ptrdiff_t file_count() const { return std::distance(fs::directory_iterator(own_.path), {}); }

 private:
  retrograd::testing::OwnFolder own_;
};

void put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string get(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file with this header text, and data of this size.
std::string file_bytes(const std::string& header, size_t data_size) {
  std::string bytes(8, '\0');
  const uint64_t size = header.size();
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + std::string(data_size, '\0');
}

// The text of the FileError that reading gives; "" if there is none.
std::string error_of_reading(const std::string& path) {
  try {
    SafetensorsFile file(path);
    return "";
  } catch (const FileError& error) {
    return error.what();
  }
}

std::string error_of_writing(const std::string& path, const std::vector<TensorSource>& tensors,
                             const SafetensorsMetadata& metadata = {}) {
  try {
    write_safetensors(path, tensors, metadata);
    return "";
  } catch (const FileError& error) {
    return error.what();
  }
}

// Limits the size of files while it lives. Without the signal, a write beyond it fails with EFBIG.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_limit_);
    ::signal(SIGXFSZ, old_handler_);
  }

 private:
  sighandler_t old_handler_;
  rlimit old_limit_{};
};

struct BadHeader {
  const char* what;
  std::string header;
  size_t data_size;
  const char* message;  // a part of the error
};

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

std::string many_dims(int count) {
  std::string shape = "[1";
  for (int i = 1; i < count; ++i) shape += ",1";
  return shape + "]";
}

const std::string kGood = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";

std::vector<BadHeader> bad_headers() {
  using namespace std::string_literals;
  const std::string u8 = R"("dtype":"U8","shape":[4])";
  return {
      {"empty", "", 0, "does not begin with {"},
      {"space before", " " + kGood, 8, "does not begin with {"},
      {"byte order mark", "\xef\xbb\xbf" + kGood, 8, "does not begin with {"},
      {"array", "[]", 0, "does not begin with {"},
      {"brace missing", kGood.substr(0, kGood.size() - 1), 8, "not valid UTF-8 JSON"},
      {"only a brace", "{", 0, "not valid UTF-8 JSON"},
      {"text after", kGood + "x", 8, "not valid UTF-8 JSON"},
      {"second object", kGood + kGood, 8, "not valid UTF-8 JSON"},
      {"comma at end", R"({"__metadata__":{},})", 0, "not valid UTF-8 JSON"},
      {"comment", "{/**/}", 0, "not valid UTF-8 JSON"},
      {"single quotes", "{'t':{}}", 0, "not valid UTF-8 JSON"},
      {"NUL after", kGood + "\0"s, 8, "NUL byte"},
      {"NUL, then polyglot", kGood + "\0PK\3\4"s, 8, "NUL byte"},
      {"NUL in a name", R"({"a\u0000b":{)" + u8 + R"(,"data_offsets":[0,4]}})", 4, "NUL character"},
      {"name not UTF-8", "{\"\xff\":{" + u8 + R"(,"data_offsets":[0,4]}})", 4, "UTF-8"},
      {"overlong UTF-8", "{\"\xc0\xaf\":{" + u8 + R"(,"data_offsets":[0,4]}})", 4, "UTF-8"},
      {"lone surrogate", R"({"\ud800":{)" + u8 + R"(,"data_offsets":[0,4]}})", 4, "UTF-8"},
      {"raw newline in a name", "{\"a\nb\":{}}", 0, "UTF-8 JSON"},
      {"deep arrays", "{\"t\":" + std::string(100'000, '['), 0, "'t': an array is not allowed"},
      {"deep objects", R"({"t":{"shape":{"shape":{"shape":)", 0, "'t': an object is not allowed"},
      {"deep shape", tensor("U8", "[[[4]]]", "[0,4]"), 4, "an array is not allowed"},
      {"tensor null", R"({"t":null})", 0, "null is not allowed"},
      {"tensor number", R"({"t":1})", 0, "a number is not allowed"},
      {"tensor string", R"({"t":"F32"})", 0, "a string is not allowed"},
      {"tensor array", R"({"t":[]})", 0, "an array is not allowed"},
      {"tensor true", R"({"t":true})", 0, "a boolean is not allowed"},
      {"tensor empty", R"({"t":{}})", 0, "is missing"},
      {"no dtype", R"({"t":{"shape":[4],"data_offsets":[0,4]}})", 4, "is missing"},
      {"no shape", R"({"t":{"dtype":"U8","data_offsets":[0,4]}})", 4, "is missing"},
      {"no offsets", "{\"t\":{" + u8 + "}}", 4, "is missing"},
      {"field more", "{\"t\":{" + u8 + R"(,"data_offsets":[0,4],"stride":[1]}})", 4, "'stride' is not known"},
      {"dtype twice", "{\"t\":{" + u8 + R"(,"data_offsets":[0,4],"dtype":"I32"}})", 4, "dtype occurs twice"},
      {"shape twice", "{\"t\":{" + u8 + R"(,"data_offsets":[0,4],"shape":[4]}})", 4, "shape occurs twice"},
      {"offsets twice", "{\"t\":{" + u8 + R"(,"data_offsets":[0,4],"data_offsets":[0,4]}})", 4,
       "data_offsets occurs twice"},
      {"tensor twice",
       "{\"t\":{" + u8 + R"(,"data_offsets":[0,4]},"t":{)" + u8 + R"(,"data_offsets":[4,8]}})", 8,
       "'t': it occurs twice"},
      {"tensor twice by escape",
       "{\"t\":{" + u8 + R"(,"data_offsets":[0,4]},"\u0074":{)" + u8 + R"(,"data_offsets":[4,8]}})", 8,
       "'t': it occurs twice"},
      {"dtype unknown", tensor("F33", "[2]", "[0,8]"), 8, "dtype 'F33' is not known"},
      {"dtype small", tensor("f32", "[2]", "[0,8]"), 8, "dtype 'f32' is not known"},
      {"dtype empty", tensor("", "[2]", "[0,8]"), 8, "dtype '' is not known"},
      {"dtype number", R"({"t":{"dtype":4,"shape":[],"data_offsets":[0,4]}})", 4, "a number is not allowed"},
      {"dtype array", R"({"t":{"dtype":["U8"],"shape":[],"data_offsets":[0,1]}})", 1, "an array is not"},
      {"4-bit dtype", tensor("F4", "[3]", "[0,2]"), 2, "dtype 'F4' is not known"},
      {"shape number", tensor("U8", "4", "[0,4]"), 4, "a number is not allowed"},
      {"shape string", tensor("U8", "[\"4\"]", "[0,4]"), 4, "a string is not allowed"},
      {"shape negative", tensor("U8", "[-4]", "[0,4]"), 4, "a negative number"},
      {"shape minus zero", tensor("U8", "[-0]", "[0,0]"), 0, "a negative number"},
      {"shape twice negative", tensor("U8", "[-2,-2]", "[0,4]"), 4, "a negative number"},
      {"shape fraction", tensor("U8", "[4.0]", "[0,4]"), 4, "fraction"},
      {"shape exponent", tensor("U8", "[1e3]", "[0,1000]"), 1000, "exponent"},
      {"shape null", tensor("U8", "[null]", "[0,4]"), 4, "null is not allowed"},
      {"product wraps to zero", tensor("U8", "[4294967296,4294967296]", "[0,0]"), 0, "does not fit"},
      {"bytes wrap to zero", tensor("F32", "[4611686018427387904]", "[0,0]"), 0, "does not fit"},
      {"zero and 2^63", tensor("U8", "[0,9223372036854775808]", "[0,0]"), 0, "does not fit in int64"},
      {"zero and a wrapping product", tensor("U8", "[0,4294967296,4294967296]", "[0,0]"), 0, "does not fit"},
      {"beyond 64 bits", tensor("U8", "[18446744073709551616]", "[0,0]"), 0, "64 bits"},
      {"65 dims", tensor("U8", many_dims(65), "[0,1]"), 1, "more than 64 dims"},
      {"huge shape, small file", tensor("F64", "[1000000000000]", "[0,8000000000000]"), 8, "only 8 bytes"},
      {"offsets empty", tensor("U8", "[0]", "[]"), 0, "fewer than two"},
      {"offsets one", tensor("U8", "[4]", "[4]"), 4, "fewer than two"},
      {"offsets three", tensor("U8", "[4]", "[0,4,8]"), 4, "more than two"},
      {"offsets reversed", tensor("U8", "[4]", "[4,0]"), 4, "do not hold"},
      {"offsets wrap", tensor("U8", "[4]", "[18446744073709551615,3]"), 4, "does not fit in int64"},
      {"offsets too short", tensor("F32", "[2]", "[0,4]"), 4, "do not hold the 8 bytes"},
      {"offsets too long", tensor("F32", "[2]", "[0,12]"), 12, "do not hold the 8 bytes"},
      {"offsets object", tensor("U8", "[4]", R"({"0":4})"), 4, "an object is not allowed"},
      {"beyond the file", kGood, 7, "only 7 bytes"},
      {"bytes left over", kGood, 9, "the last 1 bytes belong to no tensor"},
      {"data without tensors", "{}", 1, "belong to no tensor"},
      {"hole at the start", tensor("U8", "[4]", "[1,5]"), 5, "begins at 1"},
      {"hole", "{\"a\":{" + u8 + R"(,"data_offsets":[0,4]},"b":{)" + u8 + R"(,"data_offsets":[5,9]}})", 9,
       "'b': its data begins at 5"},
      {"overlap", "{\"a\":{" + u8 + R"(,"data_offsets":[0,4]},"b":{)" + u8 + R"(,"data_offsets":[3,7]}})", 7,
       "'b': its data begins at 3"},
      {"same data twice",
       "{\"a\":{" + u8 + R"(,"data_offsets":[0,4]},"b":{)" + u8 + R"(,"data_offsets":[0,4]}})", 4,
       "'b': its data begins at 0"},
      {"empty tensor inside another",
       "{\"a\":{" + u8 + R"(,"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})", 4,
       "'b': its data begins at 2"},
      {"metadata number", R"({"__metadata__":{"step":3}})", 0, "a number is not allowed"},
      {"metadata null", R"({"__metadata__":{"step":null}})", 0, "null is not allowed"},
      {"metadata object", R"({"__metadata__":{"a":{}}})", 0, "an object is not allowed"},
      {"metadata array", R"({"__metadata__":{"a":["b"]}})", 0, "an array is not allowed"},
      {"metadata a string", R"({"__metadata__":"a"})", 0, "a string is not allowed"},
      {"metadata a tensor", R"({"__metadata__":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1,
       "an array is not allowed"},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "'__metadata__': it occurs twice"},
      {"metadata key twice", R"({"__metadata__":{"a":"1","a":"2"}})", 0, "the key 'a' occurs twice"},
  };
}

const float kWeights[6] = {1, 2, 3, 4, 5, 6};
const int64_t kStep = 77;
const bool kMask[3] = {true, false, true};

std::vector<TensorSource> example() {
  return {{"mask", kBool, {3}, kMask},
          {"layer.weight", kFloat32, {2, 3}, kWeights},
          {"step", kInt64, {}, &kStep}};
}

}  // namespace

TEST_CASE("safetensors: what is written reads back", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model.safetensors";
  write_safetensors(path, example(), {{"format", "pt"}, {"note", "a \"quoted\" \xc3\xa9 line\n"}});
  const SafetensorsFile file(path);
  REQUIRE(file.entries().size() == 3);
  CHECK(file.entries()[0] == TensorEntry{"step", kInt64, {}, 0, 8});
  CHECK(file.entries()[1] == TensorEntry{"layer.weight", kFloat32, {2, 3}, 8, 24});
  CHECK(file.entries()[2] == TensorEntry{"mask", kBool, {3}, 32, 3});
  CHECK(file.metadata() == SafetensorsMetadata{{"format", "pt"}, {"note", "a \"quoted\" \xc3\xa9 line\n"}});
  REQUIRE(file.find("layer.weight") == &file.entries()[1]);
  CHECK(std::memcmp(file.bytes(file.entries()[0]).data(), &kStep, 8) == 0);
  CHECK(std::memcmp(file.bytes(file.entries()[1]).data(), kWeights, 24) == 0);
  CHECK(std::memcmp(file.bytes(file.entries()[2]).data(), kMask, 3) == 0);
  CHECK(file.find("layer") == nullptr);
  CHECK(file.find("zzz") == nullptr);
  CHECK(directory.file_count() == 1);
}

TEST_CASE("safetensors: the bytes of a file are exactly these", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model.safetensors";
  write_safetensors(path, std::vector<TensorSource>{{"t", kUInt8, {2}, "AB"}}, {{"k", "v"}});
  const std::string header =
      R"({"__metadata__":{"k":"v"},"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  CHECK(get(path) == file_bytes(header + padding, 0) + "AB");
}

TEST_CASE("safetensors: every dtype, empty tensors and no tensors", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model.safetensors";
  std::vector<TensorSource> tensors;
  const char data[24] = {1, 0, 1};
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    tensors.push_back({std::string(name(dtype)), dtype, {3, 1}, data});
    tensors.push_back({"empty " + std::string(name(dtype)), dtype, {3, 0, 5}, nullptr});
  }
  write_safetensors(path, tensors);
  const SafetensorsFile file(path);
  CHECK(file.entries().size() == tensors.size());
  for (const TensorSource& tensor : tensors) {
    INFO(tensor.name);
    const TensorEntry* entry = file.find(tensor.name);
    REQUIRE(entry != nullptr);
    CHECK(entry->dtype == tensor.dtype);
    CHECK(entry->shape == tensor.shape);
    CHECK(entry->offset % element_size(tensor.dtype) == 0);
    CHECK(std::memcmp(file.bytes(*entry).data(), data, entry->nbytes) == 0);
  }

  write_safetensors(path, {});
  CHECK(SafetensorsFile(path).entries().empty());
}

TEST_CASE("safetensors: unusual but sound headers are read", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model.safetensors";
  const std::string sound[] = {
      R"({"__metadata__":{},"t":{"data_offsets":[0,4],"shape":[4],"dtype":"U8"}})",
      R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
      tensor("U8", many_dims(63).insert(1, "4,"), "[0,4]"),
      R"({"../../etc/passwd":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
      R"({"":{"dtype":"I32","shape":[1],"data_offsets":[0,4]},)"
      R"("e":{"dtype":"F64","shape":[0],"data_offsets":[4,4]}})",
      tensor("BOOL", "[4]", "[0,4]") + "   \n\t ",
  };
  for (const std::string& header : sound) {
    INFO(header);
    put(path, file_bytes(header, 4));
    CHECK(error_of_reading(path) == "");
  }
}

TEST_CASE("safetensors: bad headers are refused, each with its reason", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "bad.safetensors";
  const std::vector<BadHeader> cases = bad_headers();
  REQUIRE(cases.size() >= 60);
  for (const BadHeader& bad : cases) {
    INFO(bad.what);
    put(path, file_bytes(bad.header, bad.data_size));
    CHECK_THAT(error_of_reading(path), Catch::StartsWith(path) && Catch::Contains(bad.message));
  }
}

TEST_CASE("safetensors: bad header lengths and files are refused", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "bad.safetensors";
  const std::string good = file_bytes(kGood, 8);
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, kGood.size() - 1, kGood.size() + 1, good.size() - 7,
                                good.size(), uint64_t{100'000'001}, uint64_t{1} << 63, ~uint64_t{0}}) {
    INFO(length);
    std::string bytes = good;
    std::memcpy(bytes.data(), &length, 8);
    put(path, bytes);
    CHECK(error_of_reading(path) != "");
  }
  put(path, "");
  CHECK_THAT(error_of_reading(path), Catch::Contains("too short"));
  CHECK_THAT(error_of_reading(directory / "missing"), Catch::Contains("cannot open: No such file"));
  CHECK_THAT(error_of_reading(directory / ""), Catch::Contains("not a regular file"));
  CHECK_THAT(error_of_reading("/dev/zero"), Catch::Contains("not a regular file"));
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(error_of_reading(directory / "pipe"), Catch::Contains("not a regular file"));

  put(path, file_bytes(tensor("BOOL", "[2]", "[0,2]"), 0) + "\1\2");
  CHECK_THAT(error_of_reading(path), Catch::Contains("'t': a BOOL byte"));
}

TEST_CASE("safetensors: a huge file that breaks the rules costs nothing", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "sparse.safetensors";
  put(path, file_bytes(kGood, 8));
  REQUIRE(::truncate(path.c_str(), off_t{1} << 36) == 0);
  CHECK_THAT(error_of_reading(path), Catch::Contains("belong to no tensor"));
  const uint64_t length = 200'000'000;
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .write(reinterpret_cast<const char*>(&length), sizeof length);
  CHECK_THAT(error_of_reading(path), Catch::Contains("100 MB are allowed"));
}

TEST_CASE("safetensors: a file cut at any byte is refused", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model.safetensors";
  write_safetensors(path, example(), {{"k", "v"}});
  const std::string whole = get(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    put(path, whole.substr(0, size));
    if (error_of_reading(path).empty()) FAIL("cut at byte " << size);
  }
  put(path, whole);
  CHECK(error_of_reading(path) == "");
}

TEST_CASE("safetensors: damaged headers are read or refused, nothing else", "[safetensors]") {
  const std::string good =
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BOOL","shape":[0,7],"data_offsets":[24,24]}})";
  const std::string alphabet = "{}[]\",:0123456789.-eE \\u\xff\x01tnadsF";
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (size_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      const size_t kind = random() % 3;
      if (kind == 0) text[at] = alphabet[random() % alphabet.size()];
      if (kind == 1) text.insert(at, 1, alphabet[random() % alphabet.size()]);
      if (kind == 2) text.erase(at, 1 + random() % 3);
    }
    try {
      size_t covered = 0;
      const SafetensorsHeader header = parse_safetensors_header("p", text, 24);
      for (const TensorEntry& entry : header.entries) covered += entry.nbytes;
      if (covered != 24) FAIL("accepted: " << text);
    } catch (const FileError&) {
      ++refused;
    }
  }
  CHECK(refused > 15'000);
  CHECK(refused < 20'000);
}

TEST_CASE("safetensors: what could not be read back is not written", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model.safetensors";
  const char byte = 1;
  const auto one = [&](std::string name, std::vector<int64_t> shape) {
    return std::vector<TensorSource>{{std::move(name), kUInt8, std::move(shape), &byte}};
  };
  CHECK_THAT(error_of_writing(path, {{"t", kUInt8, {1}, &byte}, {"t", kUInt8, {1}, &byte}}),
             Catch::Contains("occurs twice"));
  CHECK(error_of_writing(path, one("__metadata__", {})) != "");
  CHECK_THAT(error_of_writing(path, one(std::string("a\0b", 3), {})), Catch::Contains("NUL"));
  CHECK_THAT(error_of_writing(path, one("\xff", {})), Catch::Contains("not UTF-8"));
  CHECK_THAT(error_of_writing(path, one("t", {-1})), Catch::Contains("negative"));
  CHECK_THAT(error_of_writing(path, one("t", {1ll << 62, 4})), Catch::Contains("does not fit"));
  CHECK_THAT(error_of_writing(path, one("t", std::vector<int64_t>(65, 1))), Catch::Contains("64 dims"));
  CHECK_THAT(error_of_writing(path, {{"t", ScalarType::Undefined, {0}, &byte}}), Catch::Contains("no dtype"));
  CHECK_THAT(error_of_writing(path, one("t", {}), {{"k", "\xff"}}), Catch::Contains("not UTF-8"));
  CHECK(directory.file_count() == 0);
}

TEST_CASE("safetensors: a write that fails half way leaves the old file and nothing else", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model.safetensors";
  write_safetensors(path, example());
  const std::string old = get(path);
  const std::vector<char> data(100'000, 'x');
  const std::vector<TensorSource> large = {{"large", kUInt8, {100'000}, data.data()}};
  for (const rlim_t limit : {0, 1, 8, 50, 4096, 99'999}) {
    std::string error;
    {
      FileSizeLimit limited(limit);
      error = error_of_writing(path, large);
    }
    INFO("limit " << limit);
    CHECK_THAT(error, Catch::StartsWith(path) && Catch::Contains("cannot write: File too large"));
    CHECK(get(path) == old);
    CHECK(directory.file_count() == 1);
  }
  CHECK(error_of_writing(path, large) == "");
  CHECK(SafetensorsFile(path).find("large") != nullptr);
}

TEST_CASE("safetensors: a path that cannot be a file is refused", "[safetensors]") {
  Directory directory;
  CHECK_THAT(error_of_writing(directory / "missing/model", example()), Catch::Contains("No such file"));
  CHECK_THAT(error_of_writing("/dev/null", example()), Catch::Contains("is not a regular file"));
  CHECK(fs::is_character_file("/dev/null"));
  REQUIRE(fs::create_directory(directory / "folder"));
  CHECK_THAT(error_of_writing(directory / "folder", example()), Catch::Contains("is not a regular file"));
  CHECK_THAT(error_of_writing(directory / std::string(300, 'n'), example()), Catch::Contains("too long"));
  fs::create_symlink(directory / "nowhere", directory / "dangling");
  CHECK_THAT(error_of_writing(directory / "dangling", example()), Catch::Contains("symbolic link"));
  CHECK(directory.file_count() == 2);
}

TEST_CASE("safetensors: a symbolic link stays one, its target is replaced", "[safetensors]") {
  Directory directory;
  write_safetensors(directory / "target", {});
  fs::create_symlink("target", directory / "link");
  write_safetensors(directory / "link", example());
  CHECK(fs::is_symlink(directory / "link"));
  CHECK(SafetensorsFile(directory / "target").entries().size() == 3);
}

TEST_CASE("safetensors: a writer killed at any moment leaves an old or a new file", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model.safetensors";
  const std::vector<char> zeros(50'000, 0), ones(50'000, 1);
  const auto write = [&](const std::vector<char>& data) {
    write_safetensors(path, std::vector<TensorSource>{{"t", kUInt8, {50'000}, data.data()}});
  };
  write(zeros);
  for (useconds_t delay = 0; delay < 6000; delay += 300) {
    const pid_t writer = ::fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
      for (int round = 0; round < 100'000; ++round) write(round % 2 ? zeros : ones);
      ::_exit(0);
    }
    ::usleep(delay);
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    const SafetensorsFile file(path);
    const auto bytes = file.bytes(file.entries().at(0));
    CHECK((std::memcmp(bytes.data(), zeros.data(), 50'000) == 0 ||
           std::memcmp(bytes.data(), ones.data(), 50'000) == 0));
  }
}

TEST_CASE("safetensors: the permissions of the file that is replaced stay, a new one has the usual ones",
          "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model.safetensors";
  const auto mode = [&] { return static_cast<unsigned>(fs::status(path).permissions()); };
  const mode_t before = ::umask(027);
  write_safetensors(path, example());
  CHECK(mode() == 0640);
  for (const unsigned kept : {0644u, 0600u, 0664u}) {
    fs::permissions(path, static_cast<fs::perms>(kept));
    write_safetensors(path, example());
    CHECK(mode() == kept);
  }
  ::umask(before);
  CHECK(directory.file_count() == 1);
}

TEST_CASE("safetensors: a path with a NUL byte is refused", "[safetensors]") {
  Directory directory;
  const std::string path = directory / "model", cut = path + std::string("\0.safetensors", 13);
  write_safetensors(path, example());
  const std::string old = get(path);
  CHECK_THAT(error_of_writing(cut, {}), Catch::Contains("NUL"));
  CHECK_THAT(error_of_reading(cut), Catch::Contains("NUL"));
  CHECK(get(path) == old);
}
