/* Speaks a sentence from C and writes a sound file while the sound is being made:
 *
 *   example_speak "Hello there." hello.flac
 */
#include <stdio.h>
#include <string.h>

#include "shoal/shoal.h"

/* What the program holds; NULL is free to be freed. */
struct speaker {
  shoal_engine* engine;
  shoal_request* request;
  shoal_speech* speech;
  shoal_encoder* encoder;
  FILE* file;
};

/* Writes a buffer and frees it. */
static void write_bytes(FILE* file, shoal_buffer* bytes) {
  if (file) fwrite(shoal_buffer_data(bytes), 1, shoal_buffer_size(bytes), file);
  shoal_buffer_free(bytes);
}

/* Every function that can fail returns a code and tells why in `error`. */
static shoal_code begin(struct speaker* s, const char* text, const char* format, shoal_error* error) {
  shoal_code code;
  int32_t rate_hz = 0;
  /* NULL is the default configuration: the built-in voice on every CPU. */
  if ((code = shoal_engine_new(NULL, &s->engine, error)) != SHOAL_OK) return code;
  if ((code = shoal_engine_start(s->engine, error)) != SHOAL_OK) return code;
  if ((code = shoal_request_new(&s->request, error)) != SHOAL_OK) return code;
  if ((code = shoal_request_set(s->request, "text", text, error)) != SHOAL_OK) return code;
  if ((code = shoal_request_set(s->request, "voice", "clara", error)) != SHOAL_OK) return code;
  if ((code = shoal_request_set(s->request, "seed", "7", error)) != SHOAL_OK) return code;
  if ((code = shoal_engine_submit(s->engine, s->request, NULL, &s->speech, error)) != SHOAL_OK) return code;
  if ((code = shoal_speech_sample_rate(s->speech, &rate_hz, error)) != SHOAL_OK) return code;
  return shoal_encoder_new(format, rate_hz, 0, &s->encoder, error);
}

static shoal_code stream(struct speaker* s, shoal_error* error) {
  shoal_code code;
  shoal_buffer* bytes = NULL;
  shoal_buffer* samples = NULL;
  /* -1 waits for the next piece; the first comes after a few milliseconds. */
  while ((code = shoal_speech_next(s->speech, -1, &samples, error)) == SHOAL_OK) {
    const size_t count = shoal_buffer_size(samples) / sizeof(float);
    code = shoal_encoder_write(s->encoder, shoal_buffer_data(samples), count, &bytes, error);
    shoal_buffer_free(samples);
    if (code != SHOAL_OK) return code;
    write_bytes(s->file, bytes);
  }
  if (code != SHOAL_END) return code;
  if ((code = shoal_encoder_finish(s->encoder, &bytes, error)) == SHOAL_OK) write_bytes(s->file, bytes);
  return code;
}

static void end(struct speaker* s) {
  if (s->file) fclose(s->file);
  shoal_encoder_free(s->encoder);
  shoal_speech_free(s->speech);
  shoal_request_free(s->request);
  shoal_engine_free(s->engine);
}

int main(int argc, char** argv) {
  const char* text = argc > 1 ? argv[1] : "Hello there. This is a sentence from C.";
  const char* path = argc > 2 ? argv[2] : NULL;
  const char* ending = path ? strrchr(path, '.') : NULL;
  struct speaker s = {NULL, NULL, NULL, NULL, NULL};
  shoal_error error = SHOAL_ERROR_INIT;
  shoal_summary summary = SHOAL_SUMMARY_INIT;

  shoal_code code = begin(&s, text, ending ? ending + 1 : "wav", &error);
  if (code == SHOAL_OK && path) s.file = fopen(path, "wb");
  if (code == SHOAL_OK) code = stream(&s, &error);
  if (code == SHOAL_OK) code = shoal_speech_summary(s.speech, &summary, &error);
  if (code == SHOAL_OK)
    printf("%.1f s of speech at %d Hz, the first after %.0f ms\n", summary.audio_s,
           (int)summary.sample_rate_hz, summary.first_audio_s * 1e3);
  else
    fprintf(stderr, "%s: %s\n", shoal_code_name(code), error.message);
  end(&s);
  return code == SHOAL_OK ? 0 : shoal_is_callers_fault(code) ? 2 : 1;
}
