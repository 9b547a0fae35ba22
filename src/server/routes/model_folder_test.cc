#include "server/routes/model_folder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder_testing.h"

namespace shoal::server {
namespace {

namespace fs = std::filesystem;

class ModelFolder : public ::testing::Test {
 protected:
  ModelFolder() {
    fs::create_directories(root_ + "/a/model");
    fs::create_directories(root_ + "_beside/secret");
    std::ofstream(root_ + "/file") << "x";
    fs::create_directory_symlink(root_ + "/a", root_ + "/link_inside");
    fs::create_directory_symlink(root_ + "_beside/secret", root_ + "/link_outside");
    fs::create_directory_symlink(root_, root_ + "_linked");
  }
  std::string refusal(const std::string& url, ErrorCode code) const {
    try {
      return "taken as " + folder_below(root_, url);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << url;
      return error.message();
    }
  }

  const TemporaryFolder dir_;
  const std::string root_ = fs::canonical(dir_.path()).string() + "/models";
};

TEST_F(ModelFolder, FoldersBelowTheRootAreTaken) {
  const std::string model = root_ + "/a/model";
  for (const std::string& url : {model, model + "/", "file://" + model, root_ + "//a/./model",
                                 root_ + "/link_inside/model", root_ + "_linked/a/model"})
    EXPECT_EQ(folder_below(url.starts_with(root_ + "_") ? root_ + "_linked" : root_, url), model) << url;
  EXPECT_EQ(folder_below(root_ + "/", root_ + "/a"), root_ + "/a");
}

TEST_F(ModelFolder, NothingElseIs) {
  const auto why = [&](const std::string& url, ErrorCode code = ErrorCode::invalid_argument) {
    const std::string message = refusal(url, code);
    EXPECT_TRUE(message.starts_with("url: ")) << url << ": " << message;
    return message;
  };
  for (const std::string& url :
       {root_, root_ + "/", root_ + "/.", root_ + "/a/..", root_ + "/a/../../models_beside/secret",
        root_ + "_beside/secret", root_ + "/link_outside", std::string("/"), std::string("/etc"),
        std::string(""), std::string("a/model"), std::string("../a"), std::string("s3://bucket/a"),
        std::string("file://a"), root_ + "/file", root_ + std::string("/a\0/model", 9),
        "/" + std::string(5000, 'a')})
    why(url);
  why(root_ + "/none", ErrorCode::not_found);
  // What lies outside is refused whether it is there or not.
  EXPECT_EQ(why(root_ + "_beside/secret").substr(0, 30), why(root_ + "_beside/none").substr(0, 30));
  EXPECT_THROW(folder_below(root_ + "/none", root_ + "/none/a"), Error);
}

TEST(ModelName, NamesCanStandInPaths) {
  for (const char* name : {"a", "0f3c", "openaudio-s1-mini", "v1.5_b"})
    EXPECT_NO_THROW(check_new_name(name)) << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../a"), std::string("a/b"),
        std::string("a b"), std::string("-a"), std::string("a\n"), std::string("a%2f"),
        std::string("\xc3\xa9"), std::string(256, 'a')})
    EXPECT_THROW(check_new_name(name), Error) << name;
}

}  // namespace
}  // namespace shoal::server
