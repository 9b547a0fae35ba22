#include "capi/structs.h"

#include <gmock/gmock.h>

#include "capi/call.h"
#include "capi/capi_testing.h"
#include "capi/handle.h"

namespace shoal::capi {
namespace {

// As the library knows it, and as a later one will.
struct Known {
  size_t size;
  int64_t first;
};
struct Grown {
  size_t size;
  int64_t first, second;
};

TEST(CStructs, AnOlderCallersMissingFieldsAreZero) {
  Grown given{.size = sizeof(Known), .first = 7, .second = 9};  // its caller has no second
  EXPECT_EQ(read_struct(&given, "given").first, 7);
  EXPECT_EQ(read_struct(&given, "given").second, 0);
  write_struct(&given, Grown{.size = 0, .first = 1, .second = 2}, "given");
  EXPECT_EQ(given.size, sizeof(Known));
  EXPECT_EQ(given.first, 1);
  EXPECT_EQ(given.second, 9) << "not the caller's to be written";
}

TEST(CStructs, ANewerCallersUnknownFieldsMustBeZeroAndAreZeroed) {
  Grown newer{.size = sizeof(Grown), .first = 7, .second = 0};
  EXPECT_EQ(read_struct(reinterpret_cast<const Known*>(&newer), "newer").first, 7);
  newer.second = 1;
  try {
    read_struct(reinterpret_cast<const Known*>(&newer), "newer");
    ADD_FAILURE() << "a field that is unknown was ignored";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), ::testing::HasSubstr("newer: this library is older"));
  }
  write_struct(reinterpret_cast<Known*>(&newer), Known{.size = 0, .first = 3}, "newer");
  EXPECT_EQ(newer.size, sizeof(Grown));
  EXPECT_EQ(newer.first, 3);
  EXPECT_EQ(newer.second, 0);
}

TEST(CStructs, SizesThatNoVersionHasAreRefused) {
  for (const size_t size : {size_t{0}, size_t{4}, size_t{9}}) {
    Known given{.size = size, .first = 0};
    EXPECT_THROW(read_struct(&given, "given"), Error) << size;
    EXPECT_THROW(write_struct(&given, Known{}, "given"), Error) << size;
  }
  EXPECT_THROW(read_struct<Known>(nullptr, "given"), Error);
  EXPECT_THROW(write_struct<Known>(nullptr, Known{}, "given"), Error);
}

TEST(CErrors, AreCodesWithSentences) {
  shoal_error error = SHOAL_ERROR_INIT;
  EXPECT_EQ(call(&error, [] { fail(ErrorCode::too_large, "text: too long"); }), SHOAL_TOO_LARGE);
  EXPECT_EQ(error.code, SHOAL_TOO_LARGE);
  EXPECT_STREQ(error.message, "text: too long");
  EXPECT_EQ(call(&error, [] { throw std::bad_alloc(); }), SHOAL_RESOURCE_EXHAUSTED);
  EXPECT_EQ(call(&error, [] { throw std::runtime_error("strange"); }), SHOAL_INTERNAL);
  EXPECT_STREQ(error.message, "strange");
  EXPECT_EQ(call(&error, [] { throw 7; }), SHOAL_INTERNAL);
  EXPECT_EQ(call(&error, [] {}), SHOAL_OK);
  EXPECT_EQ(error.code, SHOAL_OK);
  EXPECT_STREQ(error.message, "") << "nothing of the call before";
  EXPECT_EQ(call(nullptr, [] { fail(ErrorCode::io, "no place for this"); }), SHOAL_IO);
}

TEST(CErrors, ALongSentenceIsCutBetweenCharacters) {
  shoal_error error = SHOAL_ERROR_INIT;
  std::string long_message = "x";
  while (long_message.size() < 2000) long_message += "ü";
  call(&error, [&] { throw Error(ErrorCode::io, long_message); });
  const std::string told = error.message;
  EXPECT_EQ(told.size(), 1007U) << "1 and 503 characters of two bytes fill the place but for its NUL";
  EXPECT_EQ(told, long_message.substr(0, told.size()));
  // A place that ends within a character.
  long_message.erase(0, 1);
  call(&error, [&] { throw Error(ErrorCode::io, long_message); });
  EXPECT_EQ(std::string(error.message), long_message.substr(0, 1006));
}

TEST(CErrors, AnErrorOfAnOlderCallerIsNotOverrun) {
  struct {
    shoal_error error;
    char after = 'a';
  } place{SHOAL_ERROR_INIT};
  std::memset(place.error.message, 'm', sizeof place.error.message);
  place.error.size = offsetof(shoal_error, message) + 8;
  EXPECT_EQ(call(&place.error, [] { fail(ErrorCode::io, "a long sentence"); }), SHOAL_IO);
  EXPECT_STREQ(place.error.message, "a long ");
  EXPECT_EQ(place.error.message[8], 'm');
  place.error.size = 0;  // forgotten: nothing is known of it
  place.error.code = 99;
  EXPECT_EQ(call(&place.error, [] { fail(ErrorCode::io, "lost"); }), SHOAL_IO);
  EXPECT_EQ(place.error.code, 99);
}

TEST(CErrors, CodesHaveTheNamesAndTheBlameOfErrors) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const auto known = static_cast<ErrorCode>(code);
    EXPECT_EQ(shoal_code_name(code_of(known)), name_of(known));
    EXPECT_EQ(shoal_is_callers_fault(code_of(known)) == 1, is_callers_fault(known));
  }
  EXPECT_STREQ(shoal_code_name(SHOAL_OK), "ok");
  EXPECT_STREQ(shoal_code_name(SHOAL_END), "end");
  EXPECT_STREQ(shoal_code_name(SHOAL_NOT_YET), "not_yet");
  EXPECT_STREQ(shoal_code_name(13), "unknown");
  EXPECT_STREQ(shoal_code_name(-3), "unknown");
  EXPECT_EQ(shoal_is_callers_fault(SHOAL_OK), 0);
  EXPECT_EQ(shoal_abi_version(), SHOAL_ABI_VERSION);
  EXPECT_STREQ(shoal_version(), SHOAL_VERSION);
}

}  // namespace
}  // namespace shoal::capi
