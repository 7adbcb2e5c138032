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

export interface ReadMessage {
  readonly role: string;
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly object[];
  readonly tool_call_id?: string;
}

export interface ReadMessageRow {
  readonly id?: string;
  readonly conversation_id?: string;
  readonly messages: readonly ReadMessage[];
  readonly tools?: readonly object[];
}

export interface ReadEagleRow {
  readonly id: string;
  readonly conversations: readonly { readonly from: string; readonly value: string }[];
}

export interface ReadExport {
  readonly findings: readonly ExportFault[];
  readonly tokenRows: readonly ReadTokenRow[];
  readonly conversationRows: readonly ReadConversationRow[];
  readonly messageRows: readonly ReadMessageRow[];
  readonly eagleRows: readonly ReadEagleRow[];
  /** Below the folder. */
  readonly files: readonly string[];
}

export function readExport(
  folder: string,
  limits?: { readonly vocabularySize?: number; readonly maxLength?: number; readonly extendedMask?: boolean },
): ReadExport;
