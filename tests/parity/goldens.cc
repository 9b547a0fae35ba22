#include "tests/parity/goldens.h"

#include <map>
#include <set>

#include "weights/convert.h"

namespace shoal::parity {
namespace {

// Names by file.
std::map<std::string, std::set<std::string>>& unread() {
  static std::map<std::string, std::set<std::string>> all;
  return all;
}

}  // namespace

Goldens::Goldens(const std::string& path) : file_(weights::Checkpoint::open(path)) {
  const auto [found, first] = unread().try_emplace(path);
  if (!first) return;
  for (const std::string& name : names()) found->second.insert(name);
}

std::vector<std::string> Goldens::names() const {
  std::vector<std::string> all;
  for (const weights::StoredTensor& stored : file_.tensors()) all.push_back(stored.name);
  return all;
}

void Goldens::refuse(const std::string& name, const std::string& what) const {
  fail(ErrorCode::corrupt_file, path(), ": golden ", name, ": ", what);
}

TensorView Goldens::get(const std::string& name) const {
  const TensorView* view = file_.find(name);
  if (!view) fail(ErrorCode::not_found, path(), ": no golden ", name);
  unread()[path()].erase(name);
  if (view->elements() == 0) refuse(name, "no values");
  return *view;
}

TensorView Goldens::get(const std::string& name, DType dtype, int rank) const {
  const TensorView view = get(name);
  if (view.dtype() != dtype || view.rank() != rank)
    refuse(name, concat(name_of(view.dtype()), " ", view.shape(), ", expected ", name_of(dtype), " of ", rank,
                        " dimensions"));
  return view;
}

std::vector<float> Goldens::floats(const std::string& name) const {
  const TensorView view = get(name);
  if (view.dtype() != DType::f32 && view.dtype() != DType::bf16 && view.dtype() != DType::f16)
    refuse(name, concat(name_of(view.dtype()), ", expected F32, BF16 or F16"));
  std::vector<float> values(static_cast<size_t>(view.elements()));
  weights::to_f32(view, values);
  return values;
}

std::vector<int32_t> Goldens::integers(const std::string& name) const {
  const TensorView view = get(name);
  const auto count = static_cast<size_t>(view.elements());
  if (view.dtype() == DType::i32) return {view.as<int32_t>(), view.as<int32_t>() + count};
  if (view.dtype() != DType::i64) refuse(name, concat(name_of(view.dtype()), ", expected I32 or I64"));
  std::vector<int32_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<int32_t>(view.as<int64_t>()[i]);
    if (values[i] != view.as<int64_t>()[i]) refuse(name, concat(view.as<int64_t>()[i], ", expected 32 bits"));
  }
  return values;
}

std::vector<int32_t> Goldens::columns(const std::string& name, int64_t height) const {
  const TensorView view = get(name, DType::i32, 2);
  if (view.dim(0) != height) refuse(name, concat(view.shape(), ", expected ", height, " rows"));
  std::vector<int32_t> values;
  for (int64_t column = 0; column < view.dim(1); ++column)
    for (int64_t row = 0; row < height; ++row) values.push_back(view.row<int32_t>(row)[column]);
  return values;
}

std::vector<size_t> kept_rows(size_t all, size_t kept) {
  std::vector<size_t> rows(kept, all - 1);
  for (size_t i = 0; i + 1 < kept; ++i) rows[i] = i * (all - 1) / (kept - 1);
  return rows;
}

std::vector<float> keep_rows(std::span<const float> values, size_t width, size_t kept) {
  std::vector<float> out;
  out.reserve(width * kept);
  for (const size_t row : kept_rows(values.size() / width, kept)) {
    const auto one = values.subspan(row * width, width);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

std::vector<std::string> unread_goldens() {
  std::vector<std::string> all;
  for (const auto& [path, names] : unread())
    for (const std::string& name : names) all.push_back(path + ": " + name);
  return all;
}

}  // namespace shoal::parity
