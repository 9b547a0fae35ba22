// The clipboard, where there is one.

// Copies what `element` says. False: it could not, and the text is selected, ready for the keyboard.
export async function copyText(element: HTMLElement): Promise<boolean> {
  const text = element.textContent ?? "";
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Only secure contexts have a clipboard, and a person may forbid it.
  }
  getSelection()?.selectAllChildren(element);
  if (!document.execCommand("copy")) return false;
  getSelection()?.removeAllRanges();
  return true;
}
