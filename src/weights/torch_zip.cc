#include "weights/torch_zip.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "weights/pickle.h"
#include "weights/zip.h"

namespace shoal::weights {
namespace {

constexpr std::string_view kPickleEntry = "/data.pkl";
constexpr size_t kMaxPartBytes = 128;

std::optional<DType> dtype_of_storage(std::string_view storage) {
  struct Row {
    std::string_view storage;
    DType dtype;
  };
  static constexpr Row kRows[] = {{"torch.FloatStorage", DType::f32}, {"torch.BFloat16Storage", DType::bf16},
                                  {"torch.HalfStorage", DType::f16},  {"torch.DoubleStorage", DType::f64},
                                  {"torch.LongStorage", DType::i64},  {"torch.IntStorage", DType::i32},
                                  {"torch.ShortStorage", DType::i16}, {"torch.CharStorage", DType::i8},
                                  {"torch.ByteStorage", DType::u8},   {"torch.BoolStorage", DType::boolean}};
  for (const Row& row : kRows) {
    if (row.storage == storage) return row.dtype;
  }
  return std::nullopt;
}

// True when no two elements can share memory: sorted by stride, each step is longer than everything the
// shorter ones can reach. `last` receives the element index of the last element; false on overflow too.
bool strides_are_disjoint(const TensorLocation& tensor, int64_t& last) {
  struct Axis {
    int64_t dim, stride;
  };
  std::vector<Axis> axes;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    if (tensor.shape[axis] > 1)
      axes.push_back({tensor.shape[axis], tensor.strides[static_cast<size_t>(axis)]});
  }
  std::ranges::sort(axes, {}, &Axis::stride);
  last = 0;
  for (const Axis& axis : axes) {
    int64_t reach = 0;
    if (axis.stride <= last || __builtin_mul_overflow(axis.dim - 1, axis.stride, &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return false;
  }
  return true;
}

// Reads the tensors of one archive.
class TorchArchive {
 public:
  TorchArchive(std::span<const std::byte> file, std::string_view name) : file_(file), name_(name) {
    for (const ZipEntry& entry : read_zip_directory(file, name)) entries_.emplace(entry.name, entry.bytes);
    find_root();
    require_little_endian();
  }

  std::vector<TensorLocation> tensors() const;
  TensorLocation tensor() const;

 private:
  struct Storage {
    DType dtype;
    int64_t elements;
    int64_t offset;  // in the file
  };

  void find_root();
  void require_little_endian() const;
  Pickle pickle() const { return Pickle::parse(entries_.at(root_ + std::string(kPickleEntry)), name_); }
  const PickleValue& state_dict(const Pickle& pickle) const;
  bool append_tensors(const Pickle& pickle, const PickleValue& dict, const std::string& prefix,
                      std::vector<TensorLocation>& found) const;
  void append_parts(const Pickle& pickle, const PickleValue& dict, std::vector<TensorLocation>& found) const;
  TensorLocation read_tensor(const Pickle& pickle, const PickleValue& value, std::string_view key) const;
  Storage read_storage(const Pickle& pickle, PickleRef ref, std::string_view key) const;
  std::vector<int64_t> read_integers(const Pickle& pickle, PickleRef ref, std::string_view key) const;

  [[noreturn]] void corrupt(std::string_view key, std::string_view what) const {
    fail(ErrorCode::corrupt_file, name_, ": tensor ", printable(key), ": ", what);
  }

  std::span<const std::byte> file_;
  std::string_view name_;
  std::string root_;  // the folder of all entries, usually named after the file
  std::unordered_map<std::string_view, std::span<const std::byte>> entries_;
};

void TorchArchive::find_root() {
  int pickles = 0;
  for (const auto& [entry, bytes] : entries_) {
    if (!entry.ends_with(kPickleEntry)) continue;
    root_ = entry.substr(0, entry.size() - kPickleEntry.size());
    ++pickles;
  }
  if (pickles != 1)
    fail(ErrorCode::corrupt_file, name_, ": expected the zip archive of one torch.save, found ", pickles,
         " entries named data.pkl");
}

void TorchArchive::require_little_endian() const {
  const auto entry = entries_.find(root_ + "/byteorder");
  if (entry == entries_.end()) return;  // written before torch 2.1
  const std::string_view order(reinterpret_cast<const char*>(entry->second.data()), entry->second.size());
  if (order != "little")
    fail(ErrorCode::unsupported, name_, ": expected byte order \"little\", found ", printable(order));
}

std::vector<TensorLocation> TorchArchive::tensors() const {
  const Pickle values = pickle();
  const PickleValue& dict = state_dict(values);
  std::vector<TensorLocation> found;
  if (!append_tensors(values, dict, "", found)) append_parts(values, dict, found);
  return found;
}

TensorLocation TorchArchive::tensor() const {
  const Pickle values = pickle();
  if (values.root().kind != PickleKind::tensor)
    fail(ErrorCode::unsupported, name_, ": expected one saved tensor, found something else");
  return read_tensor(values, values.root(), "tensor");
}

// False when the dict has none.
bool TorchArchive::append_tensors(const Pickle& pickle, const PickleValue& dict, const std::string& prefix,
                                  std::vector<TensorLocation>& found) const {
  const size_t before = found.size();
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue &key = pickle[dict.items[i]], &value = pickle[dict.items[i + 1]];
    if (value.kind != PickleKind::tensor) continue;
    if (key.kind != PickleKind::text)
      fail(ErrorCode::corrupt_file, name_, ": a tensor whose key is not a string");
    found.push_back(read_tensor(pickle, value, prefix + std::string(key.text)));
  }
  return found.size() > before;
}

// Every dict is read once: a few bytes can name one of a million entries a million times.
void TorchArchive::append_parts(const Pickle& pickle, const PickleValue& dict,
                                std::vector<TensorLocation>& found) const {
  std::unordered_map<PickleRef, bool> holds_tensors;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue &key = pickle[dict.items[i]], &value = pickle[dict.items[i + 1]];
    if (value.kind != PickleKind::dict) continue;
    const auto [entry, is_new] = holds_tensors.emplace(dict.items[i + 1], false);
    if (!is_new && entry->second)
      fail(ErrorCode::unsupported, name_, ": part ", printable(key.text), " is the same dict as another");
    if (!is_new) continue;
    // A text of half the pickle's size must not be joined to every name.
    const std::string prefix = concat(key.text.substr(0, kMaxPartBytes + 1), ".");
    entry->second = append_tensors(pickle, value, prefix, found);
    if (entry->second && (key.kind != PickleKind::text || key.text.size() > kMaxPartBytes))
      fail(ErrorCode::corrupt_file, name_, ": a dict of tensors whose key is no short string");
  }
}

const PickleValue& TorchArchive::state_dict(const Pickle& pickle) const {
  const PickleValue& top = pickle.root();
  if (top.kind != PickleKind::dict)
    fail(ErrorCode::unsupported, name_,
         ": expected a saved dict of tensors (a state dict), found something else");
  for (size_t i = 0; i + 1 < top.items.size(); i += 2) {
    const PickleValue &key = pickle[top.items[i]], &value = pickle[top.items[i + 1]];
    if (key.kind == PickleKind::text && key.text == "state_dict" && value.kind == PickleKind::dict)
      return value;
  }
  return top;
}

// torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks[, metadata])
TensorLocation TorchArchive::read_tensor(const Pickle& pickle, const PickleValue& value,
                                         std::string_view key) const {
  check_tensor_name(key, name_);
  if (value.items.size() < 6) corrupt(key, "arguments are missing");
  const Storage storage = read_storage(pickle, value.items[0], key);
  const PickleValue& start = pickle[value.items[1]];
  const std::vector<int64_t> dims = read_integers(pickle, value.items[2], key);
  const std::vector<int64_t> strides = read_integers(pickle, value.items[3], key);

  TensorLocation tensor;
  tensor.name = key;
  tensor.dtype = storage.dtype;
  tensor.shape = checked_shape(dims, storage.dtype, name_, key);
  if (strides.size() != dims.size() ||
      std::ranges::any_of(strides, [](int64_t stride) { return stride < 0; }))
    corrupt(key, "its strides do not fit its shape");
  tensor.strides = dense_strides(tensor.shape);
  // The stride of a dimension of one is meaningless and may have any value.
  if (tensor.shape.elements() > 0) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] > 1) tensor.strides[i] = strides[i];
    }
  }
  if (start.kind != PickleKind::integer || start.integer < 0 || start.integer > storage.elements)
    corrupt(key, "it begins outside its storage");
  tensor.offset = storage.offset + start.integer * size_of(storage.dtype);

  if (tensor.shape.elements() == 0) return tensor;
  int64_t last = 0;
  if (!strides_are_disjoint(tensor, last))
    fail(ErrorCode::unsupported, name_, ": tensor ", key, ": its strides let elements share memory");
  if (last >= storage.elements - start.integer) corrupt(key, "it reaches beyond its storage");
  return tensor;
}

// ("storage", torch.FloatStorage, key, location, number of elements)
TorchArchive::Storage TorchArchive::read_storage(const Pickle& pickle, PickleRef ref,
                                                 std::string_view key) const {
  const std::vector<PickleRef>& id = pickle[ref].items;
  if (pickle[ref].kind != PickleKind::persistent || id.size() != 5 || pickle[id[0]].text != "storage")
    corrupt(key, "it has no storage");
  const PickleValue &type = pickle[id[1]], &number = pickle[id[2]], &elements = pickle[id[4]];
  const std::optional<DType> dtype =
      type.kind == PickleKind::global ? dtype_of_storage(type.text) : std::nullopt;
  if (!dtype || number.kind != PickleKind::text || elements.kind != PickleKind::integer)
    corrupt(key, "its storage is not described as torch.save does");
  const auto entry = entries_.find(root_ + "/data/" + std::string(number.text));
  if (entry == entries_.end())
    corrupt(key, concat("its storage ", printable(number.text), " is not in the archive"));
  const std::span<const std::byte> bytes = entry->second;
  const auto item = static_cast<size_t>(size_of(*dtype));
  if (elements.integer < 0 || bytes.size() % item != 0 ||
      bytes.size() / item != static_cast<uint64_t>(elements.integer))
    corrupt(key, concat("its storage should hold ", elements.integer, " values of ", name_of(*dtype),
                        ", found ", bytes.size(), " bytes"));
  return {*dtype, elements.integer, bytes.data() - file_.data()};
}

std::vector<int64_t> TorchArchive::read_integers(const Pickle& pickle, PickleRef ref,
                                                 std::string_view key) const {
  const PickleValue& tuple = pickle[ref];
  if (tuple.kind != PickleKind::tuple) corrupt(key, "its shape or strides are not a tuple");
  std::vector<int64_t> values;
  for (PickleRef item : tuple.items) {
    if (pickle[item].kind != PickleKind::integer) corrupt(key, "its shape or strides are not integers");
    values.push_back(pickle[item].integer);
  }
  return values;
}

// Before version 1.6 torch.save wrote no zip archive; those files begin with the pickle of a magic number.
void refuse_old_format(std::span<const std::byte> file, std::string_view name) {
  constexpr std::byte kMagic[] = {std::byte{0x80}, std::byte{2}, std::byte{0x8a}, std::byte{10}};
  if (file.size() >= std::size(kMagic) && std::ranges::equal(file.first(std::size(kMagic)), kMagic))
    fail(ErrorCode::unsupported, name,
         ": written in the format of torch before 1.6; load and save it again with a ",
         "newer torch, or convert it to safetensors");
}

}  // namespace

std::vector<TensorLocation> parse_torch_zip(std::span<const std::byte> file, std::string_view name) {
  refuse_old_format(file, name);
  return TorchArchive(file, name).tensors();
}

TensorLocation parse_torch_tensor(std::span<const std::byte> file, std::string_view name) {
  refuse_old_format(file, name);
  return TorchArchive(file, name).tensor();
}

}  // namespace shoal::weights
