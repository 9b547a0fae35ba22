// Everything that can be set about the server.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal {

// Plain values with the defaults of a server that only this machine can reach. docs/SETTINGS.md lists them
// with their flags, environment variables and keys of a TOML file; settings.h reads those.
struct ServerConfig {
  std::string listen = "127.0.0.1:8080";  // host:port, [v6]:port; port 0: any that is free
  // A second address, only for the operator's routes, with its own connections and thread; empty: none.
  std::string operator_listen;
  // Where programs that speak the Wyoming protocol (Home Assistant) are answered, "tcp://host:port" and
  // "unix:///path" with commas between: parse_wyoming; empty: nowhere. The protocol has no keys: when clients
  // of HTTP need one, an address beyond this machine needs wyoming_without_key too.
  std::string wyoming;
  bool wyoming_without_key = false;
  // GET /ping is 204 while models load, as RunPod reads it, instead of 503: to others any 2xx is "healthy".
  bool ping_tells_loading = false;
  // Paths that Vertex AI chooses: of a check like /ready, and of a batch as its predictions; empty: none.
  std::string health_route, predict_route;
  int http_threads = 0;  // that move bytes; 0: one for every eight CPUs, at least one
  // What /v1/models says and `model` in a request names; empty: the model folder's name, "shoal" for the
  // built-in voice.
  std::string model_name;
  // Further models of this process, "NAME=FOLDER" separated by commas: parse_models. Each has its own engine
  // with the settings of the first.
  std::string models;
  // A model of several that nobody has used for so many seconds is unloaded, and loaded again for its next
  // request, which waits; 0: never.
  int model_ttl_s = 0;
  // Folders below this one are models that may come by POST /models and go by DELETE /models/NAME
  // (SageMaker's multi-model endpoints); empty: those routes do not exist.
  std::string models_root;
  bool strict = false;  // of every request: SpeechRequest::strict
  // Voices under further names, "NAME=VOICE" with commas between: parse_voice_aliases. They come before the
  // names that the server knows by itself (OpenAI's).
  std::string voice_aliases;

  // With any key, every route except health checks requires `Authorization: Bearer KEY`. A file has one key
  // per line, KEY or NAME:KEY; lines that begin with # are comments. Logs and metrics show NAME, never the
  // key.
  std::string api_key;
  std::string api_key_file;
  // Opens /v1/admin; without it those routes do not exist.
  std::string admin_key;
  std::string admin_key_file;
  std::string tls_certificate, tls_key;  // PEM files; both or none
  bool list_without_key = false;         // GET /v1/audio/voices and /v1/audio/models ask for no key
  std::string cors_origins;              // "*", or origins with commas between; empty: no CORS headers

  int max_connections = 4096;
  int max_body_mb = 64;           // of one request
  int max_body_memory_mb = 1024;  // of all bodies being received or handled
  // Requests at once that speak or otherwise keep a model busy, including waiting ones; one more gets 429. 0:
  // as many as the engine queues.
  int max_concurrency = 0;
  int max_concurrency_per_key = 0;  // 0: no limit per key
  int max_text_length = 0;          // characters; 0: the engine's limit (256 KiB)
  int max_reference_s = 90;         // of one decoded clip
  int max_references = 8;           // clips of one request
  int max_batch_items = 64;
  int max_timeout_s = 600;  // the longest deadline that a request may ask for

  int header_timeout_s = 10;  // from the first byte of a request, or the connection, to the end of its head
  int body_timeout_s = 60;    // without progress
  int min_body_rate = 1024;   // bytes a second that a body must average once body_timeout_s is over; 0: any
  int idle_timeout_s = 75;    // between requests of a connection
  int write_timeout_s = 60;   // without the client reading a byte
  // SIGTERM: requests inside may end for so long.
  int grace_s = 30;

  bool metrics = true;  // GET /metrics
  bool web_page = true;
  std::string log_format = "text";  // text, json
  std::string log_level = "info";   // debug, info, warning, error
  std::string trace;  // file for a trace of engine steps (Perfetto, chrome://tracing); empty: none

  // Ranges and combinations, without touching disk or network. Throws Error(invalid_argument) naming the
  // field.
  void validate() const;
  bool operator==(const ServerConfig&) const = default;
};

struct NamedModel {
  std::string name, dir;
};

// "kokoro=/srv/Kokoro-82M, german=/srv/de": in order; blanks around a name or folder are ignored. Throws
// Error(invalid_argument): a part without a name or folder, an invalid or duplicate name.
std::vector<NamedModel> parse_models(std::string_view list);

struct WyomingAddress {
  std::string listen;  // host:port or [v6]:port of TCP; empty: a UNIX socket
  std::string path;    // of the UNIX socket
};

// "tcp://127.0.0.1:10200, unix:///run/shoal/wyoming.sock": in order; blanks around a part are ignored. Looks
// nothing up. Throws Error(invalid_argument): another scheme, an address or path that none could have, one
// that stands there twice.
std::vector<WyomingAddress> parse_wyoming(std::string_view list);

struct VoiceAlias {
  std::string name;
  std::string voice;  // a voice, a mix of a Kokoro model's, or "default"
};

// "alloy=clara, alloy=af_heart, narrator=default": in order; a name with several entries means the first of
// their voices that a model has. Blanks around a name or voice are ignored. Throws Error(invalid_argument): a
// part without a name or voice, a name that no voice could have, a name of the model's own voice.
std::vector<VoiceAlias> parse_voice_aliases(std::string_view list);

}  // namespace shoal
