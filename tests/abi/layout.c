/* Prints the size of every struct of the C interface and where its fields lie. */
#include <stdio.h>

#include "shoal/shoal.h"

#define SIZE(type) printf("struct " #type " %zu\n", sizeof(type))
#define FIELD(type, field) \
  printf("field " #type "." #field " %zu %zu\n", offsetof(type, field), sizeof(((type*)0)->field))
#define NUMBER(name) printf("number " #name " %d\n", (int)(name))

static void print_numbers(void) {
  NUMBER(SHOAL_ABI_VERSION);
  NUMBER(SHOAL_NOT_YET);
  NUMBER(SHOAL_END);
  NUMBER(SHOAL_OK);
  NUMBER(SHOAL_INVALID_ARGUMENT);
  NUMBER(SHOAL_NOT_FOUND);
  NUMBER(SHOAL_ALREADY_EXISTS);
  NUMBER(SHOAL_UNSUPPORTED);
  NUMBER(SHOAL_CORRUPT_FILE);
  NUMBER(SHOAL_TOO_LARGE);
  NUMBER(SHOAL_CANCELLED);
  NUMBER(SHOAL_DEADLINE_EXCEEDED);
  NUMBER(SHOAL_RESOURCE_EXHAUSTED);
  NUMBER(SHOAL_IO);
  NUMBER(SHOAL_UNAVAILABLE);
  NUMBER(SHOAL_INTERNAL);
  NUMBER(SHOAL_LOG_DEBUG);
  NUMBER(SHOAL_LOG_INFO);
  NUMBER(SHOAL_LOG_WARNING);
  NUMBER(SHOAL_LOG_ERROR);
}

static void print_summary(void) {
  SIZE(shoal_summary);
  FIELD(shoal_summary, size);
  FIELD(shoal_summary, seed);
  FIELD(shoal_summary, samples);
  FIELD(shoal_summary, frames);
  FIELD(shoal_summary, utterances);
  FIELD(shoal_summary, prompt_columns);
  FIELD(shoal_summary, cached_columns);
  FIELD(shoal_summary, computed_columns);
  FIELD(shoal_summary, preemptions);
  FIELD(shoal_summary, cut_at_frames);
  FIELD(shoal_summary, underruns);
  FIELD(shoal_summary, prepared_s);
  FIELD(shoal_summary, admitted_s);
  FIELD(shoal_summary, first_audio_s);
  FIELD(shoal_summary, total_s);
  FIELD(shoal_summary, audio_s);
  FIELD(shoal_summary, sample_rate_hz);
  FIELD(shoal_summary, reserved);
}

static void print_others(void) {
  SIZE(shoal_code);
  SIZE(shoal_error);
  FIELD(shoal_error, size);
  FIELD(shoal_error, code);
  FIELD(shoal_error, reserved);
  FIELD(shoal_error, message);
  SIZE(shoal_progress);
  FIELD(shoal_progress, size);
  FIELD(shoal_progress, fraction);
  FIELD(shoal_progress, frames);
  FIELD(shoal_progress, audio_s);
  SIZE(shoal_callbacks);
  FIELD(shoal_callbacks, size);
  FIELD(shoal_callbacks, user);
  FIELD(shoal_callbacks, on_audio);
  FIELD(shoal_callbacks, on_end);
  SIZE(shoal_batch_options);
  FIELD(shoal_batch_options, size);
  FIELD(shoal_batch_options, seed);
  FIELD(shoal_batch_options, has_seed);
  FIELD(shoal_batch_options, max_in_flight);
  FIELD(shoal_batch_options, max_item_s);
  FIELD(shoal_batch_options, mailbox);
  FIELD(shoal_batch_options, token);
}

int main(void) {
  print_numbers();
  print_others();
  print_summary();
  return 0;
}
