#include "cli/server_load_json.h"

#include <nlohmann/json.hpp>

#include "bench/load/request_figures.h"
#include "bench/runs/provenance.h"

namespace shoal::cli {
namespace {

using nlohmann::ordered_json;

ordered_json levels_json(const std::vector<load::LevelPlan>& plans) {
  ordered_json levels = ordered_json::array();
  for (const load::LevelPlan& plan : plans) {
    ordered_json level = {{"loop", plan.open_loop() ? "open" : "closed"}};
    if (plan.open_loop())
      level["rate_per_s"] = plan.rate_per_s;
    else
      level["concurrency"] = plan.users;
    level["requests"] = plan.requests;
    level["duration_s"] = plan.duration_s;
    level["cancel_share"] = plan.leave_share;
    level["listening"] = plan.real_time ? "real-time" : "fast";
    level["slow_share"] = plan.slow_share;
    levels.push_back(std::move(level));
  }
  return levels;
}

// Clips of --reference, or null.
ordered_json references_json(const ServerLoadOptions& o, const load::References& references) {
  if (references.clips.empty()) return nullptr;
  return {{"clips", o.references}, {"fresh", o.fresh.empty() ? "no" : o.fresh}};
}

// What the load is, whichever server gets it.
ordered_json load_settings(const ServerLoadOptions& o, const std::string& slo,
                           const load::GeneratorOptions& generator,
                           const std::vector<load::LevelPlan>& plans) {
  const load::Question& question = generator.question;
  return {{"api", load::name_of(generator.target.api)},
          {"seed", o.seed},
          {"speech",
           {{"format", o.format},
            {"model", question.model},
            {"voices", question.voices},
            {"texts", o.texts},
            {"texts_count", question.texts.size()},
            {"items", question.items},
            {"references", references_json(o, question.references)},
            {"speech_seed", o.speech_seed ? ordered_json(*o.speech_seed) : ordered_json()},
            {"fields", o.fields}}},
          {"keep_audio", o.keep_audio},
          {"pcm_rate_hz", o.pcm_rate_hz},
          {"silence_db", o.silence_db},
          {"buffers_ms", load::kBuffers_ms},
          {"timeout_s", o.timeout_s},
          {"slo", slo},
          {"sweep", o.sweep},
          {"levels", levels_json(plans)}};
}

}  // namespace

ordered_json run_json(const ServerLoadOptions& o, const std::string& slo,
                      const load::GeneratorOptions& generator, const std::vector<load::LevelPlan>& plans) {
  const ordered_json settings = load_settings(o, slo, generator, plans);
  ordered_json run = {{"kind", "load"}};
  run.update(runs::provenance());
  run["config_hash"] = runs::config_hash(settings);
  run["url"] = generator.target.url.text();
  run.update(settings);
  // Not of the settings: each run has its own.
  if (!o.fresh.empty()) run["references_salt"] = generator.question.references.salt;
  return run;
}

}  // namespace shoal::cli
