/**
 * Takes keys out of text that nobody has named to us: by how such keys look, and by the names they stand behind. Pure. For logs and
 * command lines of servers that somebody else has started; what is known by value goes through `redact.ts`.
 */
import type { Redact } from './redact.ts';

const REPLACED = '[secret]';

/** Names that a key stands behind; `max_new_tokens` and `token usage` are none. */
const NAME =
  /(?:api[_-]?key|hf[_-]?token|auth[_-]?token|access[_-]?token|hugging_face_hub_token|password|passwd|secret(?:[_-]?key)?)/i;
/** `api_key='…'`, `--api-key …`, `"password": "…"`; None and null are no keys. */
const NAMED = new RegExp(
  `(${NAME.source}["']?\\s*(?:[=:]\\s*|\\s))(["']?)(?!None\\b|null\\b|\\$|\\[secret\\])([^\\s"',)}\\]]{4,})`,
  'gi',
);
/** Hugging Face, OpenAI and those that copy it, GitHub, AWS; what is sent as `Bearer`. */
const SHAPES =
  /\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{12,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16})\b|(?<=Bearer )[A-Za-z0-9._~+/=-]{8,}/g;

export const redactShapes: Redact = (text) =>
  text.replaceAll(SHAPES, REPLACED).replaceAll(NAMED, (_whole, before: string, quote: string) => `${before}${quote}${REPLACED}`);

/** All texts of a value, and what stands under the name of a key. */
export function redactAll<T>(value: T, redact: Redact): T {
  return walk(value, redact) as T;
}

function walk(value: unknown, redact: Redact): unknown {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((one) => walk(one, redact));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      new RegExp(`^(?:admin[_-])?${NAME.source}$`, 'i').test(key) && typeof one === 'string' && one !== 'None' && one !== ''
        ? REPLACED
        : walk(one, redact),
    ]),
  );
}
