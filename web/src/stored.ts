// What this tab remembers until it is closed. A browser that keeps nothing (all cookies blocked) only forgets.

export function recall(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

// Null forgets.
export function remember(name: string, value: string | null): void {
  try {
    if (value === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
  } catch {
    // Full or forbidden: a reload then begins anew.
  }
}
