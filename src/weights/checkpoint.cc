#include "weights/checkpoint.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/json.h"
#include "weights/safetensors.h"
#include "weights/torch_zip.h"

namespace shoal::weights {
namespace {

constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
constexpr std::string_view kSafetensorsSuffix = ".safetensors";
constexpr size_t kMaxShards = 1024;
// A line of some hundred bytes for each tensor, and speech models have fewer than two thousand.
constexpr int64_t kMaxIndexBytes = int64_t{4} << 20;

// A clone without "git lfs pull" leaves a few lines of text in place of every large file.
void refuse_lfs_pointer(const MappedFile& file) {
  constexpr std::string_view kPointer = "version https://git-lfs";
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (text.starts_with(kPointer))
    fail(ErrorCode::corrupt_file, file.path(),
         ": this is a Git LFS pointer and not the checkpoint itself; fetch it with \"git lfs pull\"");
}

MappedFile map_checkpoint(const std::string& path) {
  MappedFile file(path);
  refuse_lfs_pointer(file);
  return file;
}

bool is_plain_shard_name(std::string_view shard) {
  return shard.ends_with(kSafetensorsSuffix) && shard.size() <= 255 && !shard.starts_with('.') &&
         std::ranges::all_of(shard, [](char c) { return c > 0x20 && c < 0x7f && c != '/' && c != '\\'; });
}

// tensor name -> shard name, in the order of the index.
std::vector<std::pair<std::string, std::string>> read_weight_map(const std::string& path) {
  const Json index = Json::read_file(path, kMaxIndexBytes);
  const Json* weight_map = index.is_object() ? index.find("weight_map") : nullptr;
  if (!weight_map || !weight_map->is_object() || weight_map->as_object().empty())
    fail(ErrorCode::corrupt_file, path, ": expected an object \"weight_map\" with at least one tensor");
  std::vector<std::pair<std::string, std::string>> entries;
  entries.reserve(weight_map->as_object().size());
  for (const auto& [tensor, shard] : weight_map->as_object()) {
    check_tensor_name(tensor, path);
    if (!shard.is_string() || !is_plain_shard_name(shard.as_string()))
      fail(ErrorCode::corrupt_file, path, ": weight_map of ", printable(tensor),
           ": expected the name of a .safetensors file in the same folder, found ",
           shard.is_string() ? printable(shard.as_string()) : "something else");
    entries.emplace_back(tensor, shard.as_string());
  }
  return entries;
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& path) {
  Checkpoint checkpoint(path);
  const std::string_view name = file_name(path);
  if (name.ends_with(kIndexSuffix)) {
    checkpoint.open_sharded();
  } else if (name.ends_with(kSafetensorsSuffix)) {
    checkpoint.open_safetensors();
  } else {
    checkpoint.open_torch();
  }
  if (checkpoint.tensors_.empty()) fail(ErrorCode::corrupt_file, path, ": the checkpoint holds no tensors");
  checkpoint.rebuild_index();
  return checkpoint;
}

void Checkpoint::open_safetensors() {
  files_.push_back(map_checkpoint(path_));
  for (TensorLocation& location : parse_safetensors(files_[0].bytes(), path_)) {
    const TensorView view = view_of(files_[0], location);
    tensors_.push_back({std::move(location.name), view});
  }
}

void Checkpoint::open_torch() {
  files_.push_back(map_checkpoint(path_));
  for (TensorLocation& location : parse_torch_zip(files_[0].bytes(), path_)) {
    const TensorView view = view_of(files_[0], location);
    tensors_.push_back({std::move(location.name), view});
  }
}

void Checkpoint::open_sharded() {
  const auto entries = read_weight_map(path_);
  const std::string folder = path_.substr(0, path_.size() - file_name(path_).size());
  struct Listed {
    const std::string* shard;
    size_t position;
  };
  std::unordered_map<std::string_view, Listed> listed;
  std::vector<std::string_view> shards;
  std::unordered_set<std::string_view> seen_shards;
  for (size_t i = 0; i < entries.size(); ++i) {
    listed.emplace(entries[i].first, Listed{&entries[i].second, i});
    if (seen_shards.insert(entries[i].second).second) shards.push_back(entries[i].second);
  }
  if (shards.size() > kMaxShards)
    fail(ErrorCode::too_large, path_, ": ", shards.size(), " shards, at most ", kMaxShards, " are accepted");

  tensors_.resize(entries.size());
  std::unordered_map<std::string, std::string_view> found_in;
  files_.reserve(shards.size());
  for (std::string_view shard : shards) {
    const MappedFile& file = files_.emplace_back(map_checkpoint(folder + std::string(shard)));
    for (TensorLocation& location : parse_safetensors(file.bytes(), file.path())) {
      const auto [other, is_new] = found_in.emplace(location.name, shard);
      if (!is_new)
        fail(ErrorCode::corrupt_file, path_, ": tensor ", location.name, " stands in two shards, ",
             other->second, " and ", shard);
      const auto entry = listed.find(location.name);
      if (entry == listed.end() || *entry->second.shard != shard) continue;
      const TensorView view = view_of(file, location);
      tensors_[entry->second.position] = {std::move(location.name), view};
    }
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (tensors_[i].name.empty())
      fail(ErrorCode::corrupt_file, path_, ": tensor ", entries[i].first, " is listed for shard ",
           entries[i].second, " but not in it");
  }
}

TensorView Checkpoint::view_of(const MappedFile& file, const TensorLocation& location) {
  if (location.is_dense() && location.is_aligned()) {
    // The mapping is read-only; TensorView has no const form, its users promise not to write.
    auto* data = const_cast<std::byte*>(file.bytes().data()) + location.offset;
    return TensorView(data, location.dtype, location.shape);
  }
  // Many strided tensors may share one storage, so the copies could outgrow any file.
  copied_bytes_ += location.bytes();
  if (copied_bytes_ > file_bytes())
    fail(ErrorCode::too_large, path_, ": tensor ", location.name,
         ": the tensors that need a copy are larger together than the file");
  return copies_.emplace_back(copy_dense(file.bytes(), location)).view();
}

int64_t Checkpoint::file_bytes() const {
  int64_t total = 0;
  for (const MappedFile& file : files_) total += static_cast<int64_t>(file.bytes().size());
  return total;
}

std::vector<std::string> Checkpoint::files() const {
  std::vector<std::string> paths;
  for (const MappedFile& file : files_) paths.push_back(file.path());
  return paths;
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto entry = index_.find(name);
  return entry == index_.end() ? nullptr : &tensors_[entry->second].view;
}

TensorView Checkpoint::get(std::string_view name, const Shape& expected) const {
  const TensorView* view = find(name);
  if (!view) fail(ErrorCode::not_found, path_, ": tensor ", name, " is missing, expected shape ", expected);
  if (view->shape() != expected)
    fail(ErrorCode::corrupt_file, path_, ": tensor ", name, ": expected shape ", expected, ", found ",
         view->shape());
  if (view->dtype() != DType::f32 && view->dtype() != DType::bf16 && view->dtype() != DType::f16)
    fail(ErrorCode::corrupt_file, path_, ": tensor ", name, ": expected dtype F32, BF16 or F16, found ",
         name_of(view->dtype()));
  return *view;
}

void Checkpoint::rename(FunctionRef<std::string(std::string_view)> rule) {
  std::vector<StoredTensor> renamed;
  renamed.reserve(tensors_.size());
  std::unordered_map<std::string, std::string_view> taken;
  for (const StoredTensor& tensor : tensors_) {
    std::string name = rule(tensor.name);
    if (name.empty()) continue;
    const auto [other, is_new] = taken.emplace(name, tensor.name);
    if (!is_new)
      fail(ErrorCode::corrupt_file, path_, ": tensors ", other->second, " and ", tensor.name,
           " both stand for ", name);
    renamed.push_back({std::move(name), tensor.view});
  }
  tensors_ = std::move(renamed);
  rebuild_index();
}

void Checkpoint::rebuild_index() {
  index_.clear();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!index_.emplace(tensors_[i].name, i).second)
      fail(ErrorCode::corrupt_file, path_, ": two tensors are named ", tensors_[i].name);
  }
}

void Checkpoint::release_pages() const {
  for (const MappedFile& file : files_) file.release_pages();
}

}  // namespace shoal::weights
