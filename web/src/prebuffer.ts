// When playback may begin, so that it need not stop again. Pure: times come from outside.
//
// Two kinds of engines send sound: those that decode a few frames at a time (pieces below a second), and those that
// speak a whole chunk of text at once, the next chunk up to four times as long (src/text/phonemes/chunks.h).

const kLeast_s = 0.15; // of sound, however fast the server is
const kMargin = 1.25; // for work that is uneven
const kShortPiece_s = 1; // below it an engine decodes frames
const kLongestFrames_s = 0.8; // that such an engine sends at once (src/runtime/schedule/codec_schedule.h)
const kGrowth = 4;
const kLongestChunk_s = 36;
const kLongestHold_s = 10; // beyond it a gap is the lesser evil
const kRateFrom_s = 0.08; // of sound after the first piece: its pace says more than the wait for the first

export class Prebuffer {
  private first_s = 0; // when the first piece arrived
  private firstLength_s = 0;
  private last_s = 0;
  private sound_s = 0;
  private longest_s = 0; // piece

  // `expected_s`: of sound, about; the request was made at time 0.
  constructor(private readonly expected_s = Infinity) {}

  arrived(time_s: number, length_s: number): void {
    if (this.sound_s === 0) {
      this.first_s = time_s;
      this.firstLength_s = length_s;
    }
    this.last_s = time_s;
    this.sound_s += length_s;
    this.longest_s = Math.max(this.longest_s, length_s);
  }

  // Seconds after the last piece at which playback may begin, if nothing arrives before.
  get hold_s(): number {
    const enough = Math.max(kLeast_s, kMargin * this.rate * this.next_s);
    const hold = Math.min(enough - this.sound_s, this.first_s + kLongestHold_s - this.last_s);
    return Math.max(0, hold);
  }

  // Seconds of work for a second of sound, as seen so far.
  private get rate(): number {
    const later_s = this.sound_s - this.firstLength_s;
    if (later_s >= kRateFrom_s) return (this.last_s - this.first_s) / later_s;
    if (this.longest_s >= kShortPiece_s) return this.last_s / this.sound_s;
    return 1;
  }

  // The longest piece that may be next.
  private get next_s(): number {
    const longest = this.longest_s < kShortPiece_s ? kLongestFrames_s : Math.min(kGrowth * this.longest_s, kLongestChunk_s);
    return Math.min(longest, Math.max(0, this.expected_s - this.sound_s));
  }
}

// Seconds of sound of a text, more rather than less: 12 bytes a second, which is slow speech in letters and usual speech
// in Chinese characters.
export function expectedSound_s(text: string): number {
  return new TextEncoder().encode(text).length / 12;
}
