// Writing an audio file that is either complete or not there.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audio/encoder.h"
#include "audio/stream_resampler.h"

namespace shoal::audio {

// Encodes into a temporary file in the target's folder; commit() renames it to the target. Without commit()
// the temporary file is removed and an older target keeps its content. An existing target that is not a
// regular file
// (/dev/null, a FIFO, a terminal) is written directly, as a stream: opening a FIFO waits for its reader, and
// a reader that leaves raises SIGPIPE unless the program ignores it. Samples at options.sample_rate_hz become
// 8 kHz where the format is G.711. Not synced to disk: after a power
// failure the file may be missing.
class AudioFileWriter {
 public:
  enum class Mode {
    replace,  // as above
    stream,  // each piece goes to the target at once, with a stream's header; "-" is standard output. Without
             // commit() a new file is removed; one that was there keeps its content up to the first piece,
             // and then holds what was written.
  };

  // Opens the target, so that a bad path fails before anything is synthesised. options.rewritable_header is
  // set here. Throws Error: invalid_argument (empty path, a folder, bad options), not_found (no such folder),
  // io (not writable).
  AudioFileWriter(const std::string& path, Format format, EncoderOptions options, Mode mode = Mode::replace);
  ~AudioFileWriter();
  AudioFileWriter(const AudioFileWriter&) = delete;
  AudioFileWriter& operator=(const AudioFileWriter&) = delete;

  // The temporary file, or the new file being streamed into: remove it if the process is killed before
  // commit(). Empty: nothing to remove.
  const std::string& unfinished_path() const;
  // Mono samples. Throws Error: io, resource_exhausted (disk full), too_large (a wav over 4 GiB).
  void write(std::span<const float> mono);
  // Finishes the file and moves it into place. Exactly once. Throws as write does.
  void commit();

 private:
  class Output;  // the open file
  std::unique_ptr<Output> output_;
  std::optional<StreamResampler> resampler_;
  std::vector<float> resampled_;
  std::unique_ptr<Encoder> encoder_;
};

}  // namespace shoal::audio
