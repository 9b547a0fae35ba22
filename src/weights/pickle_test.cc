#include "weights/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weights/archives_testing.h"

namespace shoal::weights {
namespace {

using testing::HasSubstr;

std::string operator""_s(const char* text, size_t size) { return {text, size}; }

std::optional<ErrorCode> pickle_code(const std::string& bytes) {
  return code_of([&] { Pickle::parse(bytes_of(bytes), "x"); });
}

TEST(Pickle, ReadsScalars) {
  // pickle.dumps((None, True, False, -2, 255, 65535, -2**40, 2**63-1, 0, 0.1, "hi", "é"), 2), without the
  // memo.
  const std::string bytes =
      "\x80\x02(N\x88\x89J\xfe\xff\xff\xffK\xffM\xff\xff\x8a\x06\x00\x00\x00\x00\x00\xff"
      "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x00G\x3f\xb9\x99\x99\x99\x99\x99\x9a"
      "X\x02\x00\x00\x00hi\x8c\x02\xc3\xa9t."_s;
  const Pickle pickle = Pickle::parse(bytes_of(bytes), "x");
  ASSERT_EQ(pickle.root().kind, PickleKind::tuple);
  const auto& items = pickle.root().items;
  ASSERT_EQ(items.size(), 12u);
  EXPECT_EQ(pickle[items[0]].kind, PickleKind::none);
  EXPECT_EQ(pickle[items[1]].kind, PickleKind::boolean);
  EXPECT_EQ(pickle[items[1]].integer, 1);
  EXPECT_EQ(pickle[items[2]].integer, 0);
  const int64_t expected[] = {-2, 255, 65535, -(int64_t{1} << 40), INT64_MAX, 0};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(pickle[items[3 + i]].integer, expected[i]) << i;
  EXPECT_EQ(pickle[items[9]].real, 0.1);
  EXPECT_EQ(pickle[items[10]].text, "hi");
  EXPECT_EQ(pickle[items[11]].text, "\xc3\xa9");
}

TEST(Pickle, ReadsContainersMemoAndFrames) {
  // Python 3.11: pickle.dumps({"a": [1, 2], "b": ("x", {7})}, 4), with ("x", "x") sharing one memo entry.
  const std::string bytes =
      "\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
      "a\x94]\x94(K\x01K\x02"
      "e\x8c\x01"
      "b\x94\x8c\x01x\x94\x8f\x94(K\x07\x90h\x04\x87\x94u."_s;
  const Pickle pickle = Pickle::parse(bytes_of(bytes), "x");
  ASSERT_EQ(pickle.root().kind, PickleKind::dict);
  const auto& items = pickle.root().items;
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(pickle[items[0]].text, "a");
  ASSERT_EQ(pickle[items[1]].kind, PickleKind::list);
  EXPECT_EQ(pickle[pickle[items[1]].items[1]].integer, 2);
  const auto& triple = pickle[items[3]].items;
  ASSERT_EQ(triple.size(), 3u);
  EXPECT_EQ(triple[0], triple[2]);
  EXPECT_EQ(pickle[triple[1]].kind, PickleKind::set);
}

TEST(Pickle, ConstructorsBecomeData) {
  const std::string tensor = pickle_tensor({.storage_elements = 6, .shape = {2, 3}, .strides = {3, 1}});
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n(" + tensor + "\x88}tR";
  const std::string by_stack =
      pickle_text("torch") + pickle_text("Size") + "\x93" + pickle_tuple({4, 5}) + "\x85R";
  const std::string bytes =
      pickle_file(std::string("ccollections\nOrderedDict\n)R(") + pickle_text("p") + parameter +
                  pickle_text("s") + by_stack + "u}" + pickle_text("_metadata") + "}sb");
  const Pickle pickle = Pickle::parse(bytes_of(bytes), "x");
  ASSERT_EQ(pickle.root().kind, PickleKind::dict);
  ASSERT_EQ(pickle.root().items.size(), 4u);  // _metadata is an attribute, not an item
  const PickleValue& value = pickle[pickle.root().items[1]];
  ASSERT_EQ(value.kind, PickleKind::tensor);
  ASSERT_EQ(value.items.size(), 6u);
  EXPECT_EQ(pickle[value.items[0]].kind, PickleKind::persistent);
  EXPECT_EQ(pickle[pickle[value.items[0]].items[1]].text, "torch.FloatStorage");
  EXPECT_EQ(pickle[pickle.root().items[3]].items.size(), 2u);
}

TEST(Pickle, NoOtherConstructorIsCalled) {
  const std::string attacks[] = {
      concat("cos\nsystem\n", pickle_text("true"), "\x85R"),
      concat("cposix\nsystem\n", pickle_text("true"), "\x85R"),
      concat("cbuiltins\neval\n", pickle_text("1"), "\x85R"),
      "c__builtin__\ngetattr\n",
      "ctorch\nload\n",
      "ctorch.storage\n_load_from_bytes\n",
      "ccollections\nOrderedDict.__init__\n",
      "ccollections\nordereddict\n",
      "ctorch\nFloatStorage \n",
      "ctorch\n\n",
      pickle_text("os") + pickle_text("system") + "\x93",
  };
  for (const std::string& attack : attacks)
    EXPECT_EQ(pickle_code(pickle_file(attack)), ErrorCode::unsupported) << attack;
  const std::string message = message_of([] {
    const std::string bytes = pickle_file("cos\nsystem\n");
    Pickle::parse(bytes_of(bytes), "evil.pth");
  });
  EXPECT_THAT(message,
              testing::AllOf(HasSubstr("evil.pth"), HasSubstr("\"os\".\"system\""), HasSubstr("not")));
  // Allowed names called in a way torch.save never writes.
  EXPECT_EQ(pickle_code(pickle_file("ctorch\nFloatStorage\nK\x09\x85R")), ErrorCode::unsupported);
  EXPECT_EQ(pickle_code(pickle_file("ccollections\nOrderedDict\n]\x85R")), ErrorCode::unsupported);
  EXPECT_EQ(pickle_code(pickle_file("ctorch._utils\n_rebuild_parameter\nN\x85R")), ErrorCode::unsupported);
}

TEST(Pickle, EveryOpcodeOffTheListIsRefusedByItsNumber) {
  const std::string allowed = "(.JKMNQRXabcehjqrstuG)]}\x80\x85\x86\x87\x88\x89\x8a\x8c\x8f\x90\x93\x94\x95";
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (allowed.find(static_cast<char>(opcode)) != std::string::npos) continue;
    // INST, OBJ, NEWOBJ, NEWOBJ_EX, EXT*, PERSID, DUP, POP, ... with operands that would be enough for each.
    const std::string bytes = pickle_file(concat("(}}", static_cast<char>(opcode), "os\nsystem\n"));
    EXPECT_EQ(pickle_code(bytes), ErrorCode::unsupported) << opcode;
    EXPECT_THAT(message_of([&] { Pickle::parse(bytes_of(bytes), "x"); }),
                HasSubstr(concat("opcode ", opcode)));
  }
}

TEST(Pickle, RefusesBrokenStacks) {
  const std::string cases[] = {
      ""_s,  // no STOP
      "."_s,
      "NN."_s,
      "(."_s,
      "(N."_s,
      "N.N"_s,
      "t."_s,
      "(N\x85."_s,  // a value is there, one more is taken from below the mark
      "N(\x85."_s,  // the value lies below the mark
      "N\x86."_s,
      "a."_s,
      "Na."_s,
      "](Na."_s,         // APPEND across a mark
      "](Nat\x86."_s,    // the same, with the stack put in order afterwards
      "N(\x85t\x86."_s,  // a value from below the mark, likewise
      "NNa."_s,          // append to None
      "}NNN(u."_s,
      "}(Nu."_s,   // key without value
      "]NNs."_s,   // list used as a dict
      "}(NNe."_s,  // dict used as a list
      "e."_s,
      "(e."_s,
      "q\x01."_s,  // PUT without a value
      "N(q\x01."_s,
      "h\x01."_s,  // GET of nothing
      "Nq\x01h\x02."_s,
      "j\xff\xff\xff\xff."_s,
      "NR."_s,
      "N)R."_s,
      "Q."_s,
      "NQ."_s,
      "N}b."_s,
      "]}b."_s,
      "\x93."_s,
      "NN\x93."_s,
      "c"_s,
      "ctorch\nFloatStorage"_s,
      concat("c", std::string(1000, 'a'), "\nb\n."),
      "X\xff\xff\xff\xffhi."_s,
      "\x8c\x05hi."_s,
      "\x8a\x05hi"_s,
      "J\x01"_s,
      "G1234"_s,
      "\x95\xff\xff\xff\xff\xff\xff\xff\xffN."_s,
      std::string(2000, '(') + ".",
  };
  for (const std::string& bytes : cases)
    EXPECT_EQ(pickle_code(bytes), ErrorCode::corrupt_file) << testing::PrintToString(bytes);
  EXPECT_EQ(pickle_code("\x80\x05N."_s), ErrorCode::unsupported);
  EXPECT_EQ(pickle_code("\x80\x01N."_s), ErrorCode::unsupported);
  EXPECT_EQ(pickle_code(concat("\x8a\x09", std::string(9, '\1'), ".")), ErrorCode::unsupported);
}

TEST(Pickle, MemoryIsBounded) {
  const size_t many = (size_t{1} << 20) + 1;
  EXPECT_EQ(pickle_code(std::string(many, 'N')), ErrorCode::too_large) << "stack";
  EXPECT_EQ(pickle_code(std::string(many, ']')), ErrorCode::too_large) << "objects";
  EXPECT_EQ(pickle_code("Nr\xff\xff\xff\xff."_s), ErrorCode::too_large) << "memo index";
  EXPECT_EQ(pickle_code(std::string((size_t{32} << 20) + 1, 'N')), ErrorCode::too_large) << "bytes";
  // A long tuple named many times as a call's arguments must not be copied each time.
  const std::string tuple = concat("(", std::string(100000, 'N'), "tq\x01");
  EXPECT_EQ(pickle_code(tuple + "Q."), ErrorCode::corrupt_file);
  EXPECT_EQ(pickle_code("ctorch._utils\n_rebuild_tensor_v2\n" + tuple + "R."), ErrorCode::unsupported);
}

TEST(Pickle, DeepAndCyclicValuesUseNoStack) {
  // [[[[...]]]] half a million deep, and tuples around None as deep.
  const size_t depth = 500000;
  EXPECT_EQ(pickle_code(std::string(depth, ']') + std::string(depth - 1, 'a') + "."), std::nullopt);
  EXPECT_EQ(pickle_code(concat("N", std::string(depth, '\x85'), ".")), std::nullopt);
  EXPECT_EQ(pickle_code("]q\x01h\x01"
                        "a."),
            std::nullopt);  // a list that holds itself
}

TEST(Pickle, DamagedPicklesOpenOrThrowOurError) {
  const std::string bytes =
      pickle_file(pickle_dict({{"w", pickle_tensor({.storage_elements = 1, .shape = {1}, .strides = {1}})}}));
  ASSERT_EQ(pickle_code(bytes), std::nullopt);
  damage(bytes, [](const std::string& damaged) { pickle_code(damaged); });
}

}  // namespace
}  // namespace shoal::weights
