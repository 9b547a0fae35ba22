// Everything a pickle may use in a checkpoint: the opcodes and constructors that torch.save writes for state
// dicts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shoal::weights {

// Described in Python's pickletools.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kBinFloat = 'G',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

inline constexpr std::string_view kOrderedDict = "collections.OrderedDict";
inline constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
inline constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";
inline constexpr std::string_view kSize = "torch.Size";
inline constexpr std::array kAllowedGlobals = {
    kOrderedDict,
    kRebuildTensor,
    kRebuildParameter,
    kSize,
    std::string_view("torch.BFloat16Storage"),
    std::string_view("torch.HalfStorage"),
    std::string_view("torch.FloatStorage"),
    std::string_view("torch.DoubleStorage"),
    std::string_view("torch.LongStorage"),
    std::string_view("torch.IntStorage"),
    std::string_view("torch.ShortStorage"),
    std::string_view("torch.CharStorage"),
    std::string_view("torch.ByteStorage"),
    std::string_view("torch.BoolStorage"),
};

}  // namespace shoal::weights
