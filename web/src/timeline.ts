// Which sample sounds when. Positions are samples of the speech, times are samples of the audio clock: whole numbers,
// so that pieces meet without a gap.

interface Run {
  time: number; // of its first sample
  position: number;
  length: number;
}

export class Timeline {
  private runs: Run[] = []; // in order, without overlaps
  gaps = 0; // times the listener ran dry

  // `lead`: how far ahead of the clock sound begins. It doubles whenever the listener runs dry, up to `longestLead`: a
  // server that is slower than speech is heard in long stretches and not in crumbs.
  constructor(
    private lead: number,
    private readonly longestLead = lead,
  ) {}

  // Puts `length` samples from `position` behind what there is and says when they begin. A piece that comes too late
  // begins a lead after now.
  place(now: number, position: number, length: number): number {
    const last = this.runs.at(-1);
    const end = last ? last.time + last.length : -Infinity;
    if (last && end >= now && last.position + last.length === position) {
      last.length += length;
      return end;
    }
    if (last) {
      ++this.gaps;
      this.lead = Math.min(2 * this.lead, this.longestLead);
    }
    const time = now + this.lead;
    this.runs.push({ time, position, length });
    return time;
  }

  // The position that is heard at `now`: while nothing sounds, the one that will be next.
  positionAt(now: number): number {
    let position = this.runs[0]?.position ?? 0;
    for (const run of this.runs) {
      if (run.time > now) break;
      position = run.position + Math.min(now - run.time, run.length);
    }
    return position;
  }

  // When the last sample has been heard; -Infinity when there is none.
  end(): number {
    const last = this.runs.at(-1);
    return last ? last.time + last.length : -Infinity;
  }

  // Forgets everything that was placed: the listener jumps elsewhere.
  clear(): void {
    this.runs = [];
  }
}
