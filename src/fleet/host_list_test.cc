#include "fleet/host_list.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace shoal::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(HostList, NamesAndWeightsAreOptional) {
  EXPECT_THAT(parse_hosts("# all\n10.0.0.7:8080\r\n\n \t10.0.0.8:80  weight=256\tname=gpu-8.b # the big one"),
              ElementsAre(HostPlan{"10.0.0.7:8080", {"10.0.0.7", 8080}, 1},
                          HostPlan{"gpu-8.b", {"10.0.0.8", 80}, 256}));
  for (const char* none : {"", "\n\n", "# 10.0.0.7:8080"}) EXPECT_THAT(parse_hosts(none), IsEmpty());
}

void expect_hosts_refused(const std::string& text, const std::string& start) {
  try {
    parse_hosts(text);
    ADD_FAILURE() << "accepted: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(), StartsWith(start));
  }
}

TEST(HostList, NonsenseIsRefusedWithItsLine) {
  for (const char* text : {"host:80", "10.0.0.7", "10.0.0.7:", "10.0.0.7:0", "10.0.0.7:65536", "10.0.0.7:80x",
                           "::1:80", "name=a 10.0.0.7:80", "\x01\xff", ":80", "10.0.0:80"})
    expect_hosts_refused(std::string("\n# x\n") + text, "hosts: line 3: expected an IPv4 address and a port");
  for (const char* word : {"name=", "name=w1", "name=w", "name=a/b", "name=a;b", "name=\"a\""})
    expect_hosts_refused(std::string("1.2.3.4:5 ") + word, "hosts: line 1: name: expected letters");
  for (const char* word :
       {"weight=", "weight=0", "weight=257", "weight=-1", "weight=1.5", "weight=99999999999"})
    expect_hosts_refused(std::string("1.2.3.4:5 ") + word, "hosts: line 1: weight: expected 1 to 256");
  for (const char* word : {"gpu7", "check", "weigth=2", "="})
    expect_hosts_refused(std::string("1.2.3.4:5 ") + word, "hosts: line 1: expected name=NAME or weight=N");
  expect_hosts_refused("1.2.3.4:5 name=a\n1.2.3.4:5 name=b", "hosts: line 2: \"b\" stands there twice");
  expect_hosts_refused("1.2.3.4:5 name=a\n1.2.3.4:6 name=a", "hosts: line 2: \"a\" stands there twice");
  std::string many;
  for (size_t i = 0; i <= kMostHosts; ++i) many += concat("1.2.3.4:", i + 1, "\n");
  expect_hosts_refused(many, "hosts: line 257: there are more than 256 hosts");
}

}  // namespace
}  // namespace shoal::fleet
