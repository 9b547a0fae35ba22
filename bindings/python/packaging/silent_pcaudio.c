/* Stands in for libpcaudio, through which libespeak-ng could play: it has no sound device, and says so. The
 * phonemizer only asks for phonemes, so nothing here is ever called. */
#include <stddef.h>

void *create_audio_device_object(const char *device, const char *application, const char *description) {
  (void)device, (void)application, (void)description;
  return NULL;
}
int audio_object_open(void *object, int format, unsigned rate, unsigned char channels) {
  (void)object, (void)format, (void)rate, (void)channels;
  return -1;
}
void audio_object_close(void *object) { (void)object; }
void audio_object_destroy(void *object) { (void)object; }
int audio_object_write(void *object, const void *data, size_t bytes) {
  (void)object, (void)data, (void)bytes;
  return -1;
}
int audio_object_drain(void *object) { return (void)object, 0; }
int audio_object_flush(void *object) { return (void)object, 0; }
const char *audio_object_strerror(void *object, int error) { return (void)object, (void)error, "no sound device"; }
