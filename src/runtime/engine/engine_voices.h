// The voices of an engine: those of the serving model, or else a folder of voices plus the clips that came
// with the model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/engine/speech_pipeline.h"
#include "runtime/voices/named_voices.h"

namespace shoal::runtime {

class EngineVoices : public Voices {
 public:
  // serving: the pipeline that serves, or null; called from any thread.
  EngineVoices(std::string dir, std::function<std::shared_ptr<SpeechPipeline>()> serving)
      : dir_(std::move(dir)), serving_(std::move(serving)) {}

  const std::string& dir() const { return dir_; }

  std::vector<VoiceInfo> list() const override {
    const Held voices = held();
    return voices.own ? voices.own->list() : named(voices).list();
  }
  VoiceInfo get(const std::string& name) const override {
    const Held voices = held();
    return voices.own ? voices.own->get(name) : named(voices).get(name);
  }
  void create(const std::string& name, const NewVoice& voice) override { changeable().create(name, voice); }
  void rename(const std::string& name, const std::string& new_name) override {
    changeable().rename(name, new_name);
  }
  void remove(const std::string& name) override { changeable().remove(name); }
  std::string note(const std::string& name) const override {
    const Held voices = held();
    return voices.own ? voices.own->note(name) : named(voices).note(name);
  }
  void set_note(const std::string& name, const std::string& note) override {
    changeable().set_note(name, note);
  }

 private:
  struct Held {
    std::shared_ptr<SpeechPipeline> pipeline;  // keeps the target of `own` alive
    const Voices* own = nullptr;
  };
  Held held() const {
    Held held{.pipeline = serving_()};
    if (held.pipeline) held.own = held.pipeline->own_voices();
    return held;
  }
  NamedVoices named(const Held& voices) const {
    return {dir_, voices.pipeline ? voices.pipeline->shipped_voices_dir() : ""};
  }
  NamedVoices changeable() const {
    const Held voices = held();
    if (voices.own)
      fail(ErrorCode::unsupported,
           "voices: this model has voices of its own, files of its folder; put them there or take them away "
           "and load it again");
    return named(voices);
  }

  std::string dir_;
  std::function<std::shared_ptr<SpeechPipeline>()> serving_;
};

}  // namespace shoal::runtime
