// The list of model families. Nothing else in the program knows them all.
#include "runtime/engine/family.h"
#include "runtime/families/kokoro/kokoro_family.h"
#include "runtime/families/language/language_family.h"

namespace shoal::runtime {
namespace {

template <typename T>
const Family* the() {
  static const T family;
  return &family;
}

}  // namespace

// The first family loads a model that none recognises: its errors say what a folder needs.
std::span<const Family* const> families() {
  static const Family* const all[] = {
      the<LanguageFamily>(),
      the<KokoroFamily>(),
  };
  return all;
}

}  // namespace shoal::runtime
