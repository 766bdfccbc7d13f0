// The names of languages and policies on the page.

const SPEECH = { de: "de-DE", en: "en-US", zh: "zh-CN", fr: "fr-FR", es: "es-ES", it: "it-IT", ja: "ja-JP", ru: "ru-RU" };
const NAMES = new Intl.DisplayNames(["en"], { type: "language" });

export function nameOf(code) {
  try {
    return NAMES.of(code);
  } catch {
    return code;
  }
}

export function speechCode(code) {
  return SPEECH[code] ?? code;
}

/** Whether the language puts spaces between words; otherwise the server splits the text into words. */
export function spaced(code) {
  return code.split("-")[0] !== "zh";
}

/** The last step of the slider: the whole sentence. */
export const FULL_STEP = 13;

export function policyAt(step) {
  return step >= FULL_STEP ? "full" : `wait-k:${step}`;
}

/** k of a policy, Infinity for the whole sentence, NaN for one that has no fixed k. */
export function kOf(policy) {
  if (policy === "full" || policy === "wait-k:inf") return Infinity;
  const found = /^wait-k:(\d+)$/.exec(policy);
  return found ? Number(found[1]) : NaN;
}

/** The policy whose lag depends on the confidence of the model, as in `stacl translate`. */
export const ADAPTIVE = "confidence:2-6";
const LEAST_LAG = 2;

/** The least number of words that a policy waits for. */
export function leastLag(policy) {
  const k = kOf(policy);
  return Number.isNaN(k) ? LEAST_LAG : k;
}

export function policyName(policy) {
  const k = kOf(policy);
  if (policy === ADAPTIVE) return "adaptive";
  if (k === Infinity) return "full sentence";
  return Number.isNaN(k) ? policy : `wait ${k}`;
}

/** The text in a track that has no words yet. */
export function promise(policy) {
  const k = kOf(policy);
  if (k === Infinity) return "waits for the whole sentence";
  if (policy === ADAPTIVE) return "stays 2 to 6 words behind";
  if (Number.isNaN(k)) return policy;
  return k === 1 ? "stays 1 word behind" : `stays ${k} words behind`;
}
