// What tests of settings share: a folder for their file, and what they expect of sources.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "shoal/settings.h"

namespace shoal::settings_testing {

using Texts = std::map<std::string, std::string>;

class Settings : public testing::Test {
 protected:
  std::string toml(const std::string& text) const { return dir_.write("shoal.toml", text); }
  ResolvedSettings resolve(Texts flags, Texts environment, const std::string& file = "") const {
    return resolve_settings({std::move(flags), std::move(environment), file.empty() ? "" : toml(file)});
  }
  // The config from `environment` with no other source.
  EngineConfig with(Texts environment) const { return resolve({}, std::move(environment)).config; }
  EngineConfig with_file(const std::string& text) const { return resolve({}, {}, text).config; }
  ServerConfig server_with(Texts flags, Texts environment = {}) const {
    return resolve(std::move(flags), std::move(environment)).server;
  }

  void expect_error(const SettingSources& sources, ErrorCode code,
                    const testing::Matcher<std::string>& message) const {
    try {
      resolve_settings(sources);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      EXPECT_THAT(error.message(), message);
    }
  }
  void expect_refused(const SettingSources& sources, const testing::Matcher<std::string>& message) const {
    expect_error(sources, ErrorCode::invalid_argument, message);
  }
  static std::string source_of(const ResolvedSettings& resolved, const std::string& key) {
    for (const ResolvedSettings::Origin& origin : resolved.origins)
      if (origin.key == key) return origin.source;
    return "no such setting";
  }

  const TemporaryFolder dir_;
};

}  // namespace shoal::settings_testing
