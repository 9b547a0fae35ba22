"""How far a training run is, from 0 to 1, and when its stretch of time ends."""
import time


class Budget:
    """Progress drives all schedules. A run may be cut into stretches; each begins where the last ended.

    Progress goes from `start` to 1 in (1 - start) * `seconds` of wall-clock time, or in as large a share of
    max_steps steps if that is sooner. The stretch ends at 1 or at `deadline` (time.time()), whichever is first.
    """

    def __init__(self, seconds: float, deadline: float, max_steps: int = 10**9, start: float = 0.0):
        self._seconds, self._deadline, self._max_steps, self._start = seconds, deadline, max_steps, start
        self._begun = time.time()

    def elapsed(self) -> float:
        """Seconds of this stretch."""
        return time.time() - self._begun

    def progress(self, step: int) -> float:
        """After so many steps of this stretch; at most 1."""
        spent = max(self.elapsed() / self._seconds, step / self._max_steps)
        return min(1.0, self._start + spent)

    def is_over(self, step: int) -> bool:
        """Whether there is no next step."""
        return self.progress(step) >= 1 or time.time() >= self._deadline


class StepClock:
    """Measures the time of a step between two calls."""

    def __init__(self):
        self._time, self._step = time.time(), 0

    def milliseconds_per_step(self, step: int) -> float:
        """The mean since the last call (or the construction)."""
        now = time.time()
        milliseconds = (now - self._time) / max(1, step - self._step) * 1e3
        self._time, self._step = now, step
        return milliseconds
