"""The wall-clock budget of a training run, as a progress from 0 to 1 that drives all schedules."""
import time

from inputs import InputError


class Budget:
    """Counts from its construction, just before the first step, to the end of the run.

    The run began at `begun` (time.time()) and may take `seconds` from then on, set-up included. It ends
    earlier after max_steps steps. Progress begins at `start`, late for a run that goes on from saved weights.
    """

    def __init__(self, seconds: float, max_steps: int, begun: float, start: float = 0.0):
        self.begun = begun
        self._max_steps = max_steps
        self._start = start
        self._loop_begun = time.time()
        self._loop_seconds = seconds - (self._loop_begun - begun)
        if self._loop_seconds <= 0:
            raise InputError(
                f"--seconds {seconds:g} is too short: the set-up alone took {self.elapsed():.0f} s"
            )

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.time() - self.begun

    def progress(self, step: int) -> float:
        """The larger share of the time and of the steps; the run is over at 1."""
        spent = max((time.time() - self._loop_begun) / self._loop_seconds, step / self._max_steps)
        return self._start + (1 - self._start) * spent


class StepClock:
    """Measures the time of a step between two calls."""

    def __init__(self):
        self._time, self._step = time.time(), 0

    def milliseconds_per_step(self, step: int) -> float:
        """The mean since the last call (or the construction)."""
        now = time.time()
        milliseconds = (now - self._time) / (step - self._step) * 1e3
        self._time, self._step = now, step
        return milliseconds
