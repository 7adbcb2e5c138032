/**
 * What chat templates write between messages, as data. Pure. In a text it is no text: trainers that render conversations
 * find the answers by these very strings, and a tokenizer makes control tokens of its own model's.
 */

const MARKERS: readonly string[] = [
  ...['<|im_start|>', '<|im_end|>', '<|im_middle|>', '<|endoftext|>', '<|end_of_text|>', '<|begin_of_text|>'],
  ...['<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>', '<|eom_id|>', '<|python_tag|>', '<|header_start|>', '<|eot|>'],
  ...['<start_of_turn>', '<end_of_turn>', '[INST]', '[/INST]', '<<SYS>>', '<</SYS>>', '[AVAILABLE_TOOLS]', '[TOOL_CALLS]'],
  ...['<|user|>', '<|assistant|>', '<|system|>', '<|observation|>', '<|im_user|>', '<|im_assistant|>', '<|im_system|>'],
  ...['<|start|>', '<|channel|>', '<|message|>', '<|return|>', '<|call|>', '<|tool_calls_section_begin|>', '<|end|>'],
  ...['<｜User｜>', '<｜Assistant｜>', '<｜begin▁of▁sentence｜>', '<｜end▁of▁sentence｜>', '<｜tool▁calls▁begin｜>'],
];

/** `own`: the special tokens of the run's own tokenizer. */
export function hasTemplateMarker(text: string, own: readonly string[] = []): boolean {
  // All of them have one of these; most texts have neither, and are looked through once.
  if (!text.includes('<') && !text.includes('[')) return own.some((marker) => text.includes(marker));
  return MARKERS.some((marker) => text.includes(marker)) || own.some((marker) => text.includes(marker));
}
