/** A row → one line of JSON. Pure. */

/** Python's `str.splitlines`, by which Automodel cuts a file, also ends lines at these, which JSON allows inside a text. */
const PYTHON_LINE_ENDS = /[\u0085\u2028\u2029]/g;

export function renderJsonLine(row: object): string {
  const text = JSON.stringify(row);
  return text.replace(PYTHON_LINE_ENDS, (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
