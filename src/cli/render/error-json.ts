/** An error as the one JSON document of `--json`. */
export interface ErrorJson {
  readonly code: string;
  readonly message: string;
  readonly because: string;
  readonly remedy: string;
  readonly evidence?: readonly string[];
  readonly facts: Readonly<Record<string, string | number | boolean>>;
}

export function renderErrorJson(error: ErrorJson): string {
  return `${JSON.stringify({ aerie: 1, error })}\n`;
}
