#include "weights/npz.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "base/error.h"
#include "weights/byte_reader.h"
#include "weights/zip.h"

namespace shoal::weights {
namespace {

// Layout: NumPy Enhancement Proposal 1 (the .npy format).
constexpr std::string_view kEnding = ".npy";
constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kMaxNpyHeaderBytes = 4096;  // three short fields, padded to 64 bytes
constexpr std::string_view kFloat32 = "<f4";

// The header of an array: a Python dict of a text, a boolean and a tuple of numbers. The parser understands
// nothing else and evaluates nothing.
class HeaderReader {
 public:
  HeaderReader(std::string_view header, std::string_view file, std::string_view array)
      : rest_(header), file_(file), array_(array) {}

  Shape read() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = text();
      expect(':');
      if (key == "descr") {
        require_new(described_, key);
        described_ = true;
        require_float32(text());
      } else if (key == "fortran_order") {
        require_new(ordered_, key);
        ordered_ = true;
        require_c_order();
      } else if (key == "shape") {
        require_new(dims_.has_value(), key);
        dims_ = tuple();
      } else {
        corrupt(concat("unknown key ", printable(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!described_ || !ordered_ || !dims_) corrupt("descr, fortran_order or shape is missing");
    if (rest_.find_first_not_of(' ') != rest_.size() - 1 || rest_.back() != '\n')
      corrupt("expected spaces and a line end after the dict");
    return checked_shape(*dims_, DType::f32, file_, array_);
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }
  bool accept(char wanted) {
    skip_spaces();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) corrupt(concat("expected '", wanted, "', found ", printable(rest_.substr(0, 8))));
  }
  bool accept_word(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // Between single quotes, as Python writes it; no text that is understood needs an escape.
  std::string_view text() {
    expect('\'');
    const size_t end = rest_.find('\'');
    if (end == std::string_view::npos) corrupt("a text without an end");
    const std::string_view value = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return value;
  }
  int64_t number() {
    skip_spaces();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || rest_.starts_with('-')) corrupt("a dimension that is no number");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      values.push_back(number());
      if (accept(',')) continue;
      if (values.size() == 1) corrupt("a number where a tuple must be");  // "(3)" is one in Python
      expect(')');
      break;
    }
    return values;
  }

  void require_new(bool seen, std::string_view key) const {
    if (seen) corrupt(concat(key, " stands there twice"));
  }
  void require_float32(std::string_view type) const {
    if (type != kFloat32)
      fail(ErrorCode::unsupported, file_, ": array ", printable(array_), ": expected type '", kFloat32,
           "', found ", printable(type));
  }
  void require_c_order() {
    if (accept_word("False")) return;
    if (!accept_word("True")) corrupt("fortran_order is no boolean");
    fail(ErrorCode::unsupported, file_, ": array ", printable(array_),
         ": expected C order, found Fortran's; save a contiguous copy");
  }
  [[noreturn]] void corrupt(std::string_view what) const {
    fail(ErrorCode::corrupt_file, file_, ": array ", printable(array_), ": bad header: ", what);
  }

  std::string_view rest_, file_, array_;
  bool described_ = false, ordered_ = false;
  std::optional<std::vector<int64_t>> dims_;
};

uint32_t read_header_length(ByteReader& in, std::string_view array) {
  if (in.remaining() < kNpyMagic.size() || in.text(kNpyMagic.size()) != kNpyMagic)
    fail(ErrorCode::corrupt_file, in.name(), ": array ", printable(array), ": it is no .npy file");
  const int major = in.little<uint8_t>(), minor = in.little<uint8_t>();
  if ((major != 1 && major != 2) || minor != 0)
    fail(ErrorCode::unsupported, in.name(), ": array ", printable(array),
         ": expected .npy version 1.0 or 2.0, found ", major, ".", minor);
  const uint32_t length = major == 1 ? in.little<uint16_t>() : in.little<uint32_t>();
  if (length > kMaxNpyHeaderBytes)
    fail(ErrorCode::too_large, in.name(), ": array ", printable(array), ": a header of ", length,
         " bytes, at most ", kMaxNpyHeaderBytes, " are accepted");
  return length;
}

TensorLocation read_array(const ZipEntry& entry, std::string_view array, std::string_view file) {
  check_tensor_name(array, file);
  ByteReader in(entry.bytes, file);
  const std::string_view header = in.text(read_header_length(in, array));
  TensorLocation tensor;
  tensor.name = array;
  tensor.dtype = DType::f32;
  tensor.shape = HeaderReader(header, file, array).read();
  tensor.strides = dense_strides(tensor.shape);
  if (static_cast<uint64_t>(tensor.bytes()) != in.remaining())
    fail(ErrorCode::corrupt_file, file, ": array ", printable(array), ": the shape ", tensor.shape, " takes ",
         tensor.bytes(), " bytes, found ", in.remaining());
  tensor.offset = static_cast<int64_t>(in.position());
  return tensor;
}

}  // namespace

bool is_npz(std::span<const std::byte> file, std::string_view name) {
  const std::vector<ZipEntry> entries = read_zip_directory(file, name);
  return !entries.empty() && entries.front().name.ends_with(kEnding);
}

std::vector<TensorLocation> parse_npz(std::span<const std::byte> file, std::string_view name) {
  std::vector<TensorLocation> arrays;
  for (const ZipEntry& entry : read_zip_directory(file, name)) {
    if (!entry.name.ends_with(kEnding))
      fail(ErrorCode::corrupt_file, name, ": expected arrays NAME", kEnding, " alone, found ",
           printable(entry.name));
    const std::string_view array = entry.name.substr(0, entry.name.size() - kEnding.size());
    arrays.push_back(read_array(entry, array, name));
    arrays.back().offset += entry.bytes.data() - file.data();
  }
  return arrays;
}

}  // namespace shoal::weights
