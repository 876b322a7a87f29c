// A text with all its characters visible: shows one that draws nothing, or reverses its neighbours, by its code point.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc]/gu;

export function visible(text) {
  return text.replace(UNSEEN, (char) => (char === "\n" || char === "\t" ? char : `[U+${char.codePointAt().toString(16).toUpperCase().padStart(4, "0")}]`));
}
