/**
 * How models refuse, as data: the first words of an answer, in the languages most asked in. Pure. It is a warning only: the
 * target said so and the ids are right; a person decides whether a drafter should learn it. Refusals in other words or
 * other languages are not found, and an answer that quotes one at its very beginning is.
 */

/** Openings are matched in this much of an answer: a refusal comes first, and a long answer is read no further. */
const OPENING_CHARACTERS = 240;

const OPENINGS: readonly RegExp[] = [
  /^(i'?m|i am) (very |really |so )?sorry,? (but )?(i|as an ai|this|that)\b.{0,40}\b(can'?t|cannot|can not|am not able|'?m not able|am unable|'?m unable|won'?t)\b/,
  /^(sorry|i apologi[sz]e|my apologies|unfortunately),? (but )?(i|as an ai)\b.{0,40}\b(can'?t|cannot|can not|am not able|'?m not able|am unable|'?m unable|won'?t)\b/,
  /^i (can'?t|cannot|can not|won'?t|will not|am not able to|am unable to|must decline to) (help|assist|provide|comply|fulfill|fulfil|answer|do that|create|write|generate|discuss|engage|support|participate)\b/,
  /^i'?m (not able|unable) to (help|assist|provide|comply|fulfill|fulfil|answer|create|write|generate|discuss|engage)\b/,
  /^as an? (ai|artificial intelligence|language model)\b.{0,80}\b(can'?t|cannot|can not|unable|not able|won'?t)\b/,
  /^(es )?tut mir (sehr )?leid,? .{0,40}\b(kann|darf|werde)\b.{0,80}\b(nicht|keine?n?)\b/,
  /^ich (kann|darf|werde) .{0,60}\bnicht (helfen|unterstützen|beantworten|dienen)\b/,
  /^(je suis |je m'excuse|désolée?|je regrette).{0,40}\bje ne (peux|puis|suis) pas\b/,
  /^je ne (peux|puis) pas (vous |t'|t’)?(aider|répondre|fournir|assister)\b/,
  /^lo (siento|lamento),? (mucho,? )?(pero )?no (puedo|me es posible)\b/,
  /^no puedo (ayudar|proporcionar|asistir|responder|cumplir)/,
  /^(desculpe|sinto muito|lamento),? (mas )?(eu )?não (posso|consigo)\b/,
  /^não posso (ajudar|fornecer|responder|atender)/,
  /^(mi dispiace|spiacente),? (ma )?non (posso|sono in grado)\b/,
  /^(извините|простите|к сожалению|мне жаль),? .{0,30}не (могу|смогу)/,
  /^(很?抱歉|对不起|對不起|不好意思)[,，。]?.{0,20}(不能|无法|無法|不可以)/,
  /^(我无法|我不能|我無法)(提供|帮助|幫助|协助|協助|回答|满足|滿足)/,
  /^(申し訳|すみません|ごめんなさい).{0,60}(できません|できかねます|お答えでき)/,
  /^(죄송|미안).{0,60}(없습니다|수 없어요|어렵습니다)/,
];

export function isRefusal(answer: string): boolean {
  const opening = answer.slice(0, OPENING_CHARACTERS).trimStart().toLowerCase().replaceAll('’', "'").replace(/\s+/g, ' ');
  return OPENINGS.some((pattern) => pattern.test(opening));
}
