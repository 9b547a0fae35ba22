#include "weights/pickle.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/error.h"
#include "weights/byte_reader.h"
#include "weights/pickle_allowlist.h"
#include "weights/tensor_location.h"

namespace shoal::weights {
namespace {

constexpr size_t kMaxBytes = size_t{32} << 20;
constexpr size_t kMaxEntries = size_t{1} << 20;  // objects, memo, stack
constexpr size_t kMaxMarks = 1024;               // containers under construction; torch.save needs about ten
constexpr size_t kMaxGlobalBytes = 256;
constexpr size_t kMaxArguments = 8;  // they are copied at every use, so a large shared tuple must not pass
constexpr PickleRef kUnset = UINT32_MAX;

}  // namespace

class Unpickler {
 public:
  Unpickler(std::span<const std::byte> bytes, std::string_view name) : in_(bytes, name) {
    none_ = add({.kind = PickleKind::none});
    false_ = add({.kind = PickleKind::boolean, .integer = 0});
    true_ = add({.kind = PickleKind::boolean, .integer = 1});
    empty_tuple_ = add({.kind = PickleKind::tuple});
  }

  Pickle run() {
    while (true) {
      const auto opcode = in_.little<uint8_t>();
      if (opcode == kStop) break;
      if (!push_scalar(opcode) && !build_container(opcode) && !use_memo(opcode) && !construct(opcode))
        fail(ErrorCode::unsupported, in_.name(), ": pickle opcode ", static_cast<int>(opcode), " (",
             printable({reinterpret_cast<const char*>(&opcode), 1}), ") at byte ", in_.position() - 1,
             " is not on the list of those a checkpoint may use; nothing was executed");
    }
    out_.root_ = pop();
    if (!stack_.empty() || !marks_.empty() || in_.remaining() != 0)
      corrupt("the pickle does not end with its value");
    return std::move(out_);
  }

 private:
  // Each of these four returns false when the opcode is not its business.
  bool push_scalar(uint8_t opcode);
  bool build_container(uint8_t opcode);
  bool use_memo(uint8_t opcode);
  bool construct(uint8_t opcode);

  void push_integer(int64_t value) { push(add({.kind = PickleKind::integer, .integer = value})); }
  void push_text(std::string_view text) { push(add({.kind = PickleKind::text, .text = text})); }
  void push_long();
  void push_float();
  void push_tuple(size_t count);
  void extend(PickleKind kind, size_t first);
  void put(size_t index);
  void get(size_t index);
  void push_global(std::string_view module, std::string_view attribute);
  void push_persistent();
  void reduce();
  void build();

  PickleRef add(PickleValue value) {
    if (out_.values_.size() >= kMaxEntries) too_large("objects");
    out_.values_.push_back(std::move(value));
    return static_cast<PickleRef>(out_.values_.size() - 1);
  }
  void push(PickleRef ref) {
    if (stack_.size() >= kMaxEntries) too_large("values on the stack");
    stack_.push_back(ref);
  }
  // Values below a mark cannot be reached until the mark is removed.
  PickleRef pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) corrupt("a value is missing on the stack");
    const PickleRef ref = stack_.back();
    stack_.pop_back();
    return ref;
  }
  // Where the values above the topmost mark begin; takes the mark away.
  size_t take_mark() {
    if (marks_.empty()) corrupt("a mark is missing on the stack");
    const size_t first = marks_.back();
    marks_.pop_back();
    return first;
  }
  const PickleValue& value(PickleRef ref) const { return out_.values_[ref]; }

  [[noreturn]] void corrupt(std::string_view what) const {
    fail(ErrorCode::corrupt_file, in_.name(), ": bad pickle at byte ", in_.position(), ": ", what);
  }
  [[noreturn]] void too_large(std::string_view what) const {
    fail(ErrorCode::too_large, in_.name(), ": the pickle has more than ", kMaxEntries, " ", what);
  }

  ByteReader in_;
  Pickle out_;
  std::vector<PickleRef> stack_;
  std::vector<size_t> marks_;  // sizes of stack_ when they were set
  std::vector<PickleRef> memo_;
  size_t memo_count_ = 0;
  PickleRef none_, false_, true_, empty_tuple_;
};

bool Unpickler::push_scalar(uint8_t opcode) {
  switch (opcode) {
    case kProto:
      if (const auto protocol = in_.little<uint8_t>(); protocol < 2 || protocol > 4)
        fail(ErrorCode::unsupported, in_.name(), ": expected pickle protocol 2 to 4, found ",
             static_cast<int>(protocol));
      break;
    case kFrame:  // says how far one may read ahead; everything is in memory already
      if (in_.little<uint64_t>() > in_.remaining()) corrupt("a frame reaches beyond the end");
      break;
    case kNone:
      push(none_);
      break;
    case kNewTrue:
      push(true_);
      break;
    case kNewFalse:
      push(false_);
      break;
    case kBinInt:
      push_integer(static_cast<int32_t>(in_.little<uint32_t>()));
      break;
    case kBinInt1:
      push_integer(in_.little<uint8_t>());
      break;
    case kBinInt2:
      push_integer(in_.little<uint16_t>());
      break;
    case kLong1:
      push_long();
      break;
    case kBinFloat:
      push_float();
      break;
    case kBinUnicode:
      push_text(in_.text(in_.little<uint32_t>()));
      break;
    case kShortBinUnicode:
      push_text(in_.text(in_.little<uint8_t>()));
      break;
    default:
      return false;
  }
  return true;
}

// Two's complement, little endian.
void Unpickler::push_long() {
  const auto digits = in_.take(in_.little<uint8_t>());
  if (digits.size() > sizeof(uint64_t))
    fail(ErrorCode::unsupported, in_.name(), ": an integer of ", digits.size(),
         " bytes; at most 8 are understood");
  const bool negative = !digits.empty() && (digits.back() & std::byte{0x80}) != std::byte{0};
  uint64_t bits = negative ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    bits &= ~(uint64_t{0xff} << (8 * i));
    bits |= std::to_integer<uint64_t>(digits[i]) << (8 * i);
  }
  push_integer(static_cast<int64_t>(bits));
}

void Unpickler::push_float() {  // big endian, unlike everything else
  uint64_t bits = 0;
  for (std::byte byte : in_.take(sizeof(bits))) bits = bits << 8 | std::to_integer<uint64_t>(byte);
  push(add({.kind = PickleKind::real, .real = std::bit_cast<double>(bits)}));
}

bool Unpickler::build_container(uint8_t opcode) {
  switch (opcode) {
    case kMark:
      if (marks_.size() >= kMaxMarks) corrupt("marks nested deeper than any checkpoint needs");
      marks_.push_back(stack_.size());
      break;
    case kEmptyTuple:
      push(empty_tuple_);
      break;
    case kEmptyList:
      push(add({.kind = PickleKind::list}));
      break;
    case kEmptyDict:
      push(add({.kind = PickleKind::dict}));
      break;
    case kEmptySet:
      push(add({.kind = PickleKind::set}));
      break;
    case kTuple1:
      push_tuple(1);
      break;
    case kTuple2:
      push_tuple(2);
      break;
    case kTuple3:
      push_tuple(3);
      break;
    case kTuple:
      push_tuple(stack_.size() - take_mark());
      break;
    case kAppend:
      extend(PickleKind::list, stack_.size() - std::min<size_t>(stack_.size(), 1));
      break;
    case kSetItem:
      extend(PickleKind::dict, stack_.size() - std::min<size_t>(stack_.size(), 2));
      break;
    case kAppends:
      extend(PickleKind::list, take_mark());
      break;
    case kSetItems:
      extend(PickleKind::dict, take_mark());
      break;
    case kAddItems:
      extend(PickleKind::set, take_mark());
      break;
    default:
      return false;
  }
  return true;
}

void Unpickler::push_tuple(size_t count) {
  PickleValue tuple{.kind = PickleKind::tuple};
  tuple.items.resize(count);
  for (size_t i = count; i-- > 0;) tuple.items[i] = pop();
  push(add(std::move(tuple)));
}

// Moves the values from stack position `first` on into the container below them.
void Unpickler::extend(PickleKind kind, size_t first) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (first <= floor || first > stack_.size()) corrupt("a container is missing on the stack");
  PickleValue& container = out_.values_[stack_[first - 1]];
  if (container.kind != kind) corrupt("items are put into something that cannot hold them");
  const auto items = stack_.begin() + static_cast<std::ptrdiff_t>(first);
  if (kind == PickleKind::dict && (stack_.end() - items) % 2 != 0) corrupt("a key without a value");
  container.items.insert(container.items.end(), items, stack_.end());
  stack_.erase(items, stack_.end());
}

bool Unpickler::use_memo(uint8_t opcode) {
  switch (opcode) {
    case kBinPut:
      put(in_.little<uint8_t>());
      break;
    case kLongBinPut:
      put(in_.little<uint32_t>());
      break;
    case kMemoize:
      put(memo_count_);
      break;
    case kBinGet:
      get(in_.little<uint8_t>());
      break;
    case kLongBinGet:
      get(in_.little<uint32_t>());
      break;
    default:
      return false;
  }
  return true;
}

void Unpickler::put(size_t index) {
  if (index >= kMaxEntries) too_large("memo entries");
  const PickleRef top = pop();
  stack_.push_back(top);
  if (index >= memo_.size()) memo_.resize(index + 1, kUnset);
  if (memo_[index] == kUnset) ++memo_count_;
  memo_[index] = top;
}

void Unpickler::get(size_t index) {
  if (index >= memo_.size() || memo_[index] == kUnset) corrupt("a memo entry that was never set is read");
  push(memo_[index]);
}

bool Unpickler::construct(uint8_t opcode) {
  switch (opcode) {
    case kGlobal: {
      const std::string_view module = in_.line(kMaxGlobalBytes);
      push_global(module, in_.line(kMaxGlobalBytes));
      break;
    }
    case kStackGlobal: {
      const PickleValue& attribute = value(pop());
      const PickleValue& module = value(pop());
      if (module.kind != PickleKind::text || attribute.kind != PickleKind::text)
        corrupt("a global without a name");
      push_global(module.text, attribute.text);
      break;
    }
    case kBinPersId:
      push_persistent();
      break;
    case kReduce:
      reduce();
      break;
    case kBuild:
      build();
      break;
    default:
      return false;
  }
  return true;
}

void Unpickler::push_global(std::string_view module, std::string_view attribute) {
  for (std::string_view allowed : kAllowedGlobals) {
    if (allowed.size() == module.size() + 1 + attribute.size() && allowed.starts_with(module) &&
        allowed[module.size()] == '.' && allowed.ends_with(attribute)) {
      push(add({.kind = PickleKind::global, .text = allowed}));
      return;
    }
  }
  fail(ErrorCode::unsupported, in_.name(), ": the pickle asks for the Python object ", printable(module), ".",
       printable(attribute),
       ", which is not on the list of those a checkpoint may use; nothing was executed");
}

void Unpickler::push_persistent() {
  const PickleValue& id = value(pop());
  if (id.kind != PickleKind::tuple || id.items.size() > kMaxArguments)
    corrupt("a persistent id that is not a short tuple");
  push(add({.kind = PickleKind::persistent, .items = id.items}));
}

// What calling the constructor would give, as data.
void Unpickler::reduce() {
  const PickleValue& arguments = value(pop());
  const PickleValue& callee = value(pop());
  if (callee.kind != PickleKind::global || arguments.kind != PickleKind::tuple)
    corrupt("a call without a callee");
  const std::vector<PickleRef>& items = arguments.items;
  if (callee.text == kOrderedDict && items.empty()) {
    push(add({.kind = PickleKind::dict}));
  } else if (callee.text == kRebuildTensor && items.size() <= kMaxArguments) {
    push(add({.kind = PickleKind::tensor, .items = items}));
  } else if (callee.text == kRebuildParameter && !items.empty() &&
             value(items[0]).kind == PickleKind::tensor) {
    push(items[0]);
  } else if (callee.text == kSize && items.size() == 1 && value(items[0]).kind == PickleKind::tuple) {
    push(items[0]);
  } else {
    fail(ErrorCode::unsupported, in_.name(), ": the pickle calls ", callee.text,
         " with arguments that torch.save ", "does not write");
  }
}

// Sets attributes of the object below: an OrderedDict of a module carries "_metadata", which is not needed
// here.
void Unpickler::build() {
  pop();
  const PickleRef target = pop();
  if (value(target).kind != PickleKind::dict) corrupt("attributes are set on something that is not a dict");
  push(target);
}

Pickle Pickle::parse(std::span<const std::byte> bytes, std::string_view name) {
  if (bytes.size() > kMaxBytes)
    fail(ErrorCode::too_large, name, ": a pickle of ", bytes.size(), " bytes, at most ", kMaxBytes,
         " are accepted");
  return Unpickler(bytes, name).run();
}

}  // namespace shoal::weights
