// Buffers: bytes that the library gives away.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "capi/handle.h"
#include "server/body/value.h"
#include "shoal/shoal.h"

struct shoal_buffer : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::buffer;
  using Content = std::variant<std::string, std::vector<float>, std::vector<int32_t>, std::vector<std::byte>>;
  explicit shoal_buffer(Content held) : Handle(kKind), content(std::move(held)) {}
  const Content content;
};

namespace shoal::capi {

shoal_buffer* buffer_of(shoal_buffer::Content content);
shoal_buffer* json_buffer(const server::Value& value);
// ["...", ...]
server::Value texts_value(const std::vector<std::string>& texts);

}  // namespace shoal::capi
