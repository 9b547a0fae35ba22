// Python pickles read as data. The opcodes and constructors that torch.save emits for a state dict are known;
// any other is refused, and none is ever executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace shoal::weights {

// Objects are indices into one pool: a value nested a million deep costs no stack, neither to build nor to
// destroy, and shared or cyclic references are harmless.
using PickleRef = uint32_t;

enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  tuple,
  list,
  set,
  dict,        // also collections.OrderedDict
  global,      // an allowed constructor, by name
  persistent,  // a reference to something outside the pickle: for torch, a storage
  tensor,      // the arguments of torch._utils._rebuild_tensor_v2, unchecked
};

struct PickleValue {
  PickleKind kind = PickleKind::none;
  int64_t integer = 0;  // boolean, integer
  double real = 0;      // real
  // text: a part of the parsed bytes, not checked to be UTF-8; global: "torch.FloatStorage"
  std::string_view text = {};
  // tuple, list, set, persistent, tensor: the elements; dict: key, value, key, value, ...
  std::vector<PickleRef> items = {};
};

// A parsed pickle. Views the bytes it was parsed from.
class Pickle {
 public:
  // Protocols 2 to 4. Bounded: 32 MiB of pickle, 2^20 objects, 2^20 memo entries, 2^20 values on the stack.
  // `name` is for messages. Throws Error: corrupt_file, unsupported (an opcode, constructor or integer size
  // off the list), too_large.
  static Pickle parse(std::span<const std::byte> bytes, std::string_view name);

  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& operator[](PickleRef ref) const { return values_[ref]; }

 private:
  friend class Unpickler;
  std::vector<PickleValue> values_;
  PickleRef root_ = 0;
};

}  // namespace shoal::weights
