# What the sanitizers test, and what is left to the release build. Sourced.
#   asan_modules, tsan_modules: one word each.   asan_left_out, tsan_left_out: arguments of tools/module_tests.py

# All that reads bytes from outside or handles memory, and the library under Python. The routes and the program take too
# long under these sanitizers: the routes run under the other one, and tools/test.sh asan has everything.
asan_modules='base tensor weights ops dual_ar dac kokoro text text_phonemes audio settings kv schedule batching voices
  runtime allocation capi server_body server_http server_access server_observe fleet fleet_routes'

# The engine's determinism and prosody, and voices, speakers and quantised folders compared sound by sound take too long
# here: they differ in batches, prompts, speeds and numbers, not in what is done with memory: the tests of audio stretch
# and fade sound of every length, those of weights read folders. So do plans of memory, which are sums; how soon a
# megabyte of text is read; how near calibrated weights are; what counts draws by the hundred thousand; portable kernels
# against themselves, which the other machines of these tests run, too.
counted='*.DrawsFollowTheDistribution/*:*.NoiseIsNormal/*:*.TheWholeVocabulary:Machine/DrawBatch.*EqualThePortableKernels/portable'
same_sound='Determinism.*:ProsodyOfSpeech.*:CalibratedModel.Has*:Voices.NothingLeaks*:Speakers.ADialogue*:Quantised*.*Speaks*'
asan_left_out=(--without "runtime_test:$same_sound" --without "ops_test:$counted"
  --without 'kokoro_test:*/MemorySizes.*' --without 'dac_test:*/CodecPlan.*'
  --without text_test:NormaliseEnglish.AMegabyteOfAnythingIsQuick)

# Kernels share nothing but what the thread team (instrumented) gives them, and would take most of the time. The other
# modules have no threads.
tsan_modules='base voices runtime allocation capi server_http server_access server_observe server_routes server fleet fleet_routes'

# What asks field by field, format by format or with random calls, one request after another, through the same threads
# as the rest. tools/test.sh tsan has everything.
alone='Determinism.*:Voices.*:ProsodyOfSpeech.*:QuantisedModel.*:CalibratedModel.*:ModelSizes/*:Speakers.*'
fields='*.EveryFieldReachesTheEngine:*.EveryFormatDecodesToTheEnginesSound:*.FieldsWithoutEffectAreReportedOrRefusedWhenStrict'
fields+=':*.HostileBodiesAreTheCallersFault:*.RandomCalls*:*.SpeedChangesTheLengthAndStreamsEqualFiles:*.AcceptsAVoiceAsNameOrObject'
fields+=':LiveText.SegmentsHold*:LiveText.TextAfterAFlush*:SpeechLimits.WholeAnswers*'
tsan_left_out=(--without "runtime_test:$alone" --without "server_routes_test:$fields")
