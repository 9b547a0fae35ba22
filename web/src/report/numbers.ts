// Numbers as the report writes them.

// As many digits as a reader can use; thousands apart.
export function plain(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

export function percent(share: number): string {
  const value = 100 * share;
  return `${value.toLocaleString("en-US", { maximumFractionDigits: value > 0 && value < 1 ? 2 : 1 })} %`;
}

export function milliseconds(value: number): string {
  return value >= 10_000 ? `${plain(value / 1000)} s` : `${plain(value)} ms`;
}

export function megabytes(bytes: number): string {
  return bytes >= 1e9 ? `${plain(bytes / 1e9)} GB` : `${plain(bytes / 1e6)} MB`;
}

export function seconds(value: number): string {
  const whole = Math.round(value);
  if (whole < 100) return `${whole} s`;
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}
