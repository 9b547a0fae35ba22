// G.711, the codec of telephones, by libsndfile: bare mu-law or A-law bytes at 8 kHz, one for each sample.
#include <memory>
#include <sndfile.h>

#include "audio/coder.h"
#include "base/error.h"

namespace shoal::audio {
namespace {

// Where libsndfile writes. It calls these from C, so they must not throw: push() has made room.
struct ByteTarget {
  Bytes* out = nullptr;
  sf_count_t written = 0;

  static ByteTarget& of(void* self) { return *static_cast<ByteTarget*>(self); }
  static sf_count_t size(void* self) { return of(self).written; }
  static sf_count_t seek(sf_count_t, int, void* self) { return of(self).written; }
  static sf_count_t read(void*, sf_count_t, void*) { return 0; }
  static sf_count_t write(const void* from, sf_count_t count, void* self) {
    ByteTarget& target = of(self);
    append(*target.out, {static_cast<const std::byte*>(from), static_cast<size_t>(count)});
    target.written += count;
    return count;
  }
};

struct CloseG711 {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

class G711Coder final : public Coder {
 public:
  explicit G711Coder(int subtype) {
    SF_VIRTUAL_IO io{ByteTarget::size, ByteTarget::seek, ByteTarget::read, ByteTarget::write,
                     ByteTarget::size};
    SF_INFO info{};
    info.samplerate = kG711RateHz;
    info.channels = 1;
    info.format = SF_FORMAT_RAW | subtype;
    file_.reset(sf_open_virtual(&io, SFM_WRITE, &info, &target_));
    if (!file_) fail(ErrorCode::internal, "G.711: ", sf_strerror(nullptr));
  }

  void push(std::span<const int16_t> samples, Bytes& out) override {
    out.reserve(out.size() + samples.size());
    target_.out = &out;
    const sf_count_t count = static_cast<sf_count_t>(samples.size());
    if (sf_write_short(file_.get(), samples.data(), count) != count)
      fail(ErrorCode::internal, "G.711: ", sf_strerror(file_.get()));
  }
  void finish(Bytes&) override {}

 private:
  ByteTarget target_;  // outlives file_
  std::unique_ptr<SNDFILE, CloseG711> file_;
};

std::unique_ptr<Coder> make_g711_coder(std::string_view name, int subtype, const EncoderOptions& options) {
  if (options.sample_rate_hz != kG711RateHz)
    fail(ErrorCode::invalid_argument, name, " sample rate: expected ", kG711RateHz, " Hz, got ",
         options.sample_rate_hz);
  return std::make_unique<G711Coder>(subtype);
}

}  // namespace

std::unique_ptr<Coder> make_ulaw_coder(const EncoderOptions& options) {
  return make_g711_coder("ulaw", SF_FORMAT_ULAW, options);
}
std::unique_ptr<Coder> make_alaw_coder(const EncoderOptions& options) {
  return make_g711_coder("alaw", SF_FORMAT_ALAW, options);
}

}  // namespace shoal::audio
