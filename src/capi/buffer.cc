#include "capi/buffer.h"

#include <utility>

namespace shoal::capi {

shoal_buffer* buffer_of(shoal_buffer::Content content) { return new shoal_buffer(std::move(content)); }

shoal_buffer* json_buffer(const server::Value& value) { return buffer_of(server::write_json(value)); }

server::Value texts_value(const std::vector<std::string>& texts) {
  server::Value::Array array;
  for (const std::string& text : texts) array.push_back({text});
  return {std::move(array)};
}

}  // namespace shoal::capi

const void* shoal_buffer_data(const shoal_buffer* buffer) {
  if (!buffer) return nullptr;
  const auto data = [](const auto& held) -> const void* {
    return held.data() ? static_cast<const void*>(held.data()) : "";  // an empty vector has none
  };
  return std::visit(data, buffer->content);
}

size_t shoal_buffer_size(const shoal_buffer* buffer) {
  if (!buffer) return 0;
  return std::visit([](const auto& held) { return held.size() * sizeof(held[0]); }, buffer->content);
}

void shoal_buffer_free(shoal_buffer* buffer) { delete buffer; }
