/** Types of `read-export.mjs`, which is plain JavaScript so that it can be run by itself. */
export interface ExportFault {
  readonly file: string;
  /** Counted from 1; 0 = the file as a whole. */
  readonly line: number;
  readonly code: string;
}

export interface ReadTokenRow {
  readonly id: string;
  readonly primary_id: string;
  readonly input_ids: readonly number[];
  readonly loss_mask: readonly number[];
  readonly text: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface ReadConversationRow {
  readonly id: string;
  readonly status: string;
  readonly conversations: readonly { readonly role: string; readonly content: string; readonly reasoning_content?: string }[];
}

export interface ReadExport {
  readonly findings: readonly ExportFault[];
  readonly tokenRows: readonly ReadTokenRow[];
  readonly conversationRows: readonly ReadConversationRow[];
  /** Below the folder. */
  readonly files: readonly string[];
}

export function readExport(
  folder: string,
  limits?: { readonly vocabularySize?: number; readonly maxLength?: number },
): ReadExport;
