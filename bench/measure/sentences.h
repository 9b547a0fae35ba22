// Default texts to speak.
#pragma once

#include <span>
#include <string_view>

namespace shoal::bench {

// English sentences of 20 to 400 bytes, short and long in turn.
std::span<const std::string_view> sentences();
// "Anna writes from Bergen." and so on begin a text.
std::span<const std::string_view> people();
std::span<const std::string_view> places();

}  // namespace shoal::bench
