#include "server/routes/refused_paths.h"

#include <algorithm>
#include <iterator>

namespace shoal::server {
namespace {

constexpr RefusedPath kRefused[] = {
    {"/dev/dialogue",
     "dialogues are not put together here: send each turn with its voice to /v1/audio/speech, or all of them "
     "as "
     "items to /v1/tts/batch"},
    {"/dev/ssml", "send SSML to /v1/audio/speech with \"ssml\": true"},
    {"/dev/unload",
     "--model-ttl-s unloads models of several that nobody uses; /v1/admin/reload, with an admin key, loads "
     "another one"},
    {"/models",
     "models come and go by requests (SageMaker's multi-model endpoints) only with --models-root; --models "
     "names several, --model-ttl-s unloads those that nobody uses, /v1/models lists them"},
    {"/v1/download", "nothing is kept for a download: the answer of /v1/audio/speech is the file"},
    {"/v1/test", "ask /health whether the server answers, and /ready whether it speaks"},
    {"/web", "the web page is at /"},
    {"/debug",
     "figures are at /v1/stats, /metrics and /test/gpu; threads and storage are the system's to show"},
};

bool covers(const RefusedPath& refused, std::string_view path) {
  return path.starts_with(refused.path) &&
         (path.size() == refused.path.size() || path[refused.path.size()] == '/');
}

}  // namespace

const RefusedPath* find_refused_path(std::string_view path) {
  const auto* found =
      std::ranges::find_if(kRefused, [&](const RefusedPath& refused) { return covers(refused, path); });
  return found == std::end(kRefused) ? nullptr : found;
}

}  // namespace shoal::server
